package onethread

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mpsforge/internal/words"
	"mpsforge/native/script"
	"mpsforge/validate/judge/pytests"
)

// memory is in bytes: what tensors hold, and what Metal has given.
type memory struct {
	Current int64 `json:"current"`
	Driver  int64 `json:"driver"`
}

// result is what onethread.py writes of a program.
type result struct {
	Name     string           `json:"name"`
	Outcome  string           `json:"outcome"` // passed, error, crash, hang, memory
	Text     string           `json:"text"`
	Values   []string         `json:"values"`
	End      memory           `json:"end"`   // when the program has ended
	After    memory           `json:"after"` // when nothing of it is left
	Record   string           `json:"record"`
	Findings []script.Finding `json:"findings"`
	Output   string           `json:"output"`
}

// settings are the environment in which two runs of a program do the same: the GPU takes each command buffer at once, without delays,
// and no graph commits by itself. What has no kernel for MPS runs on the CPU, with the backend's copies.
var settings = []string{
	"MPSFORGE_METAL_RECORD=1", "MPSFORGE_METAL_IN_STEP=1", "MPSFORGE_METAL_MAX_DELAY_US=0", "MPSFORGE_METAL_GRAPH_SPLIT=0",
	"PYTORCH_ENABLE_MPS_FALLBACK=1", "PYTHONHASHSEED=0",
	"PYTORCH_TEST_WITH_SLOW=1", "CI=",
}

// patience is how long the process may take for anything; it ends a program that hangs itself, before.
const (
	patience     = 5 * time.Minute
	programLimit = 90 // seconds
)

// server is a process that forks one for each program. It is used by one goroutine.
type server struct {
	subject *pytests.Subject
	names   []string
	input   io.WriteCloser
	events  *os.File
	lines   *bufio.Reader
	ended   chan struct{} // closed when the process has ended, then:
	failure error
}

// start starts the process and waits until it has imported everything.
func start(ctx context.Context, subject *pytests.Subject, scripts string, seed uint64, tests string) (*server, error) {
	stdin, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	events, output, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), input.Close())
	}
	args := []string{filepath.Join(scripts, "onethread.py"), "--seed", fmt.Sprint(seed), "--limit", fmt.Sprint(programLimit), "--events", "3"}
	if tests != "" {
		args = append(args, "--tests", tests)
	}
	command := subject.Program(args, settings)
	command.Stdin, command.Files = stdin, []*os.File{output}
	s := &server{subject: subject, input: input, events: events, lines: bufio.NewReaderSize(events, 1<<20), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		found, err := command.Run(ctx)
		_, _ = stdin.Close(), output.Close() // the reader of events sees their end now
		if err != nil {
			s.failure = fmt.Errorf("%w\n%s", err, words.LastLines(string(found.Stderr), 12))
		}
	}()
	var identity pytests.Identity
	var programs struct{ Names []string }
	if err := errors.Join(s.next("identity", &identity), s.next("programs", &programs)); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.names = programs.Names
	if err := subject.Check(identity); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// next reads an event of a kind.
func (s *server) next(kind string, to any) error {
	if err := s.events.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		_ = s.input.Close()
		return fmt.Errorf("%s: the process that forks the programs: %w", s.subject.Name, err)
	}
	var head struct{ Event string }
	if err := json.Unmarshal(line, &head); err != nil || head.Event != kind {
		return fmt.Errorf("%s: expected the event %s: %.200q", s.subject.Name, kind, line)
	}
	return json.Unmarshal(line, to)
}

// run runs programs, and gives their results in the order in which they are named.
func (s *server) run(names []string, done func(result)) error {
	go func() { _, _ = io.WriteString(s.input, strings.Join(names, "\n")+"\n") }() // if the process has gone, next says so
	for _, name := range names {
		var r result
		if err := s.next("result", &r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if r.Name != name {
			return fmt.Errorf("%s: expected the result of %q, not of %q", s.subject.Name, name, r.Name)
		}
		done(r)
	}
	return nil
}

// close ends the process by ending its input.
func (s *server) close() error {
	_ = s.input.Close()
	<-s.ended
	return errors.Join(s.failure, s.events.Close())
}
