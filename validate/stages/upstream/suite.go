package upstream

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

// ended is how a test's process ended, as suite.py reports it.
type ended struct {
	Name    string  `json:"name"`    // Class.method
	Outcome string  `json:"outcome"` // one of unittest's, or crash, hang, memory
	Type    string  `json:"type,omitempty"`
	Text    string  `json:"text,omitempty"`   // of the exception that began it, or of the skip
	Own     bool    `json:"own,omitempty"`    // a skip that the test's file makes itself
	Unused  bool    `json:"unused,omitempty"` // stand-ins were to point the test at the device, and it used none
	Seconds float64 `json:"seconds"`
	Memory  int64   `json:"memory"` // peak, in KiB
	Output  string  `json:"output,omitempty"`

	Findings []script.Finding `json:"findings,omitempty"`
}

// options of suite.py.
func (f suiteFile) options() []string {
	var all []string
	for _, standin := range f.standins {
		all = append(all, "--standin", standin)
	}
	return all
}

// limits of a test's process.
type limits struct {
	seconds float64
	memory  int64 // bytes
}

// defaultLimits: a test takes a fraction of a second; a few take half a minute.
var defaultLimits = limits{seconds: 150, memory: 8 << 30}

// starting is how long PyTorch and a test file may take to be imported, and ending how long a process that has nothing to do may
// take to leave.
const (
	starting = 5 * time.Minute
	ending   = time.Minute
)

// suite is a process that has imported a file of PyTorch's tests and runs each test in a fork of itself.
type suite struct {
	subject *pytests.Subject
	limits  limits
	// Of the file: its tests in their order, the macOS that they are reported, the operators that have a kernel for MPS.
	names     []string
	macos     string
	operators []string
	packages  []string // that are installed beside torch, with their versions

	stdin  *os.File
	events chan message
	done   chan struct{} // closed when the process has ended, then:
	err    error
	stop   context.CancelFunc
}

// message is one event of suite.py.
type message struct {
	Event     string   `json:"event"`
	Names     []string `json:"names"`
	MacOS     string   `json:"macos"`
	Operators []string `json:"operators"`
	Packages  []string `json:"packages"`
	line      []byte
}

// openSuite starts the process and waits until it has imported the file. The caller closes the suite.
func openSuite(ctx context.Context, subject *pytests.Subject, scripts string, file suiteFile, jobs int, l limits, settings []string) (*suite, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	input, stdin, err := os.Pipe()
	if err != nil {
		reader.Close()
		writer.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &suite{subject: subject, limits: l, stdin: stdin, events: make(chan message), done: make(chan struct{}), stop: stop}
	args := append([]string{filepath.Join(scripts, "suite.py"), file.path, "--jobs", fmt.Sprint(jobs), "--limit", fmt.Sprint(l.seconds), "--memory",
		fmt.Sprint(l.memory), "--events", "3"}, file.options()...)
	command := subject.Program(args, settings)
	command.Stdin, command.Files = input, []*os.File{writer}
	command.Started = func(int) {
		input.Close()
		writer.Close()
	}
	go func() {
		defer close(s.done)
		_, s.err = command.Run(ctx)
		input.Close()
		writer.Close()
	}()
	go s.read(ctx, reader)
	if err := s.prepare(); err != nil {
		s.stop()
		<-s.done
		stdin.Close()
		return nil, fmt.Errorf("%s, %s: %w", file.name, subject.Name, err)
	}
	return s, nil
}

// read takes events until the process has closed its end.
func (s *suite) read(ctx context.Context, from *os.File) {
	defer from.Close()
	defer close(s.events)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		m := message{line: append([]byte(nil), lines.Bytes()...)}
		if err := json.Unmarshal(m.line, &m); err != nil {
			m.Event = fmt.Sprintf("no event: %v in %.200q", err, m.line)
		}
		select {
		case s.events <- m:
		case <-ctx.Done():
			return
		}
	}
}

// next gives the next event, or why there is none.
func (s *suite) next(patience time.Duration) (message, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case m, open := <-s.events:
		if open {
			return m, nil
		}
		<-s.done
		return m, fmt.Errorf("the process that runs the tests ended: %w", errors.Join(s.err, io.ErrUnexpectedEOF))
	case <-timer.C:
		s.stop()
		return message{}, fmt.Errorf("the process that runs the tests printed nothing for %s, and was stopped", patience)
	}
}

// prepare takes what the process reports before its first test.
func (s *suite) prepare() error {
	for {
		m, err := s.next(starting)
		if err != nil {
			return err
		}
		switch m.Event {
		case "identity":
			var found pytests.Identity
			if err := json.Unmarshal(m.line, &found); err != nil {
				return err
			}
			if err := s.subject.Check(found); err != nil {
				return err
			}
		case "tests":
			s.names, s.macos, s.operators, s.packages = m.Names, m.MacOS, m.Operators, m.Packages
			return nil
		default:
			return fmt.Errorf("unexpected: %s", m.Event)
		}
	}
}

// run runs the tests with these names and gives each end to take, in the order in which they end.
func (s *suite) run(names []string, take func(ended) error) error {
	if len(names) == 0 {
		return nil
	}
	go func() {
		// If the process has gone, next says so.
		_, _ = io.WriteString(s.stdin, strings.Join(names, "\n")+"\n")
	}()
	for range names {
		m, err := s.next(time.Duration(s.limits.seconds*float64(time.Second)) + starting)
		if err != nil {
			return fmt.Errorf("%s: %w", s.subject.Name, err)
		}
		var end ended
		if err := json.Unmarshal(m.line, &end); err != nil || m.Event != "result" {
			return fmt.Errorf("%s: unexpected: %s: %.200q", s.subject.Name, m.Event, m.line)
		}
		if err := take(end); err != nil {
			return err
		}
	}
	return nil
}

// close ends the process, which has nothing more to do, and reports what went wrong with it at its end.
func (s *suite) close() error {
	s.stdin.Close()
	select {
	case <-s.done:
	case <-time.After(ending):
		s.stop()
		<-s.done
	}
	s.stop()
	if s.err != nil {
		return fmt.Errorf("%s: the process that ran the tests: %s", s.subject.Name, words.FirstLine(s.err.Error()))
	}
	return nil
}
