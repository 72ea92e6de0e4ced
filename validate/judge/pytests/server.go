package pytests

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"mpsforge/internal/words"
)

const (
	// starting is how long PyTorch and what a program imports with it may take until the program writes anything.
	starting = 5 * time.Minute
	// ending is how long a program that has nothing to do may take to leave.
	ending = time.Minute
)

// Server is a process that has imported PyTorch and forks itself for each thing that it is asked for: it reads lines, and writes events on
// file descriptor 3, each a line of JSON. It is used, but for Ask, by one goroutine, which closes it.
type Server struct {
	name     string // of the subject
	patience time.Duration
	input    io.WriteCloser
	events   *os.File
	lines    *bufio.Reader
	stop     context.CancelFunc
	ended    chan struct{} // closed when the process has ended, then:
	failure  error
}

// Serve starts a program of Python's with its arguments and settings, to which it adds where events are to be written, and waits until it
// has said which torch it loaded; the error wraps ErrOtherTorch if that is not the subject's. What the process is asked for ends within
// limit by itself.
func (s *Subject) Serve(ctx context.Context, args, settings []string, limit time.Duration) (*Server, error) {
	stdin, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	events, output, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), input.Close())
	}
	command := s.Program(append(args, "--events", "3"), settings)
	command.Stdin, command.Files = stdin, []*os.File{output}
	ctx, stop := context.WithCancel(ctx)
	served := &Server{name: s.Name, patience: starting + limit, input: input, events: events, lines: bufio.NewReaderSize(events, 1<<20), stop: stop,
		ended: make(chan struct{})}
	go func() {
		defer close(served.ended)
		found, err := command.Run(ctx)
		for _, end := range []*os.File{stdin, output, input} {
			_ = end.Close() // who reads or writes sees their end now
		}
		if err != nil {
			served.failure = fmt.Errorf("%w\n%s", err, words.LastLines(string(found.Stderr), 12))
		}
	}()
	var identity Identity
	err = served.Next("identity", &identity)
	if err == nil {
		err = s.Check(identity)
	}
	if err != nil {
		return nil, errors.Join(err, served.Close())
	}
	return served, nil
}

// Ask writes lines, and waits while the process does not read. It may run beside Next.
func (s *Server) Ask(lines string) error {
	_, err := io.WriteString(s.input, lines+"\n")
	return err
}

// Next reads an event, which is to be of a kind. That there is none more is an error, with what the process said. One that writes nothing
// for longer than it may take is stopped.
func (s *Server) Next(kind string, to any) error {
	if err := s.events.SetReadDeadline(time.Now().Add(s.patience)); err != nil {
		return err
	}
	line, err := s.lines.ReadBytes('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.stop()
		return fmt.Errorf("%s: the process wrote nothing for %s, and was stopped", s.name, s.patience)
	case err != nil:
		_ = s.input.Close()
		<-s.ended
		return fmt.Errorf("%s: the process ended: %w", s.name, cmp.Or(s.failure, io.ErrUnexpectedEOF))
	}
	var head struct{ Event string }
	if err := json.Unmarshal(line, &head); err != nil || head.Event != kind {
		return fmt.Errorf("%s: expected the event %s: %.200q", s.name, kind, line)
	}
	return json.Unmarshal(line, to)
}

// Close ends the process by ending its input, and says how it ended.
func (s *Server) Close() error {
	_ = s.input.Close() // it may be closed already, by the process's end
	select {
	case <-s.ended:
	case <-time.After(ending):
		s.stop()
		<-s.ended
	}
	s.stop()
	return errors.Join(s.failure, s.events.Close())
}
