package upstream

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

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

// suite is a process that has imported a file of PyTorch's tests and runs each test in a fork of itself.
type suite struct {
	*pytests.Server
	about
}

// about is what suite.py says of the file: its tests in their order, the macOS that they are reported, and what is installed beside torch,
// with versions.
type about struct {
	Names    []string `json:"names"`
	MacOS    string   `json:"macos"`
	Packages []string `json:"packages"`
}

// openSuite starts the process and waits until it has imported the file. The caller closes the suite.
func openSuite(ctx context.Context, subject *pytests.Subject, scripts string, file suiteFile, jobs int, l limits, settings []string) (*suite, error) {
	args := append([]string{filepath.Join(scripts, "suite.py"), file.path, "--jobs", fmt.Sprint(jobs), "--limit", fmt.Sprint(l.seconds), "--memory",
		fmt.Sprint(l.memory)}, file.options()...)
	served, err := subject.Serve(ctx, args, settings, time.Duration(l.seconds*float64(time.Second)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.name, err)
	}
	s := &suite{Server: served}
	if err := s.Next("tests", &s.about); err != nil {
		return nil, fmt.Errorf("%s: %w", file.name, errors.Join(err, s.Close()))
	}
	return s, nil
}

// run runs the tests with these names and gives each end to take, in the order in which they end.
func (s *suite) run(names []string, take func(ended) error) error {
	if len(names) == 0 {
		return nil
	}
	go func() { _ = s.Ask(strings.Join(names, "\n")) }() // if the process has gone, Next says so
	for range names {
		var end ended
		if err := s.Next("result", &end); err != nil {
			return err
		}
		if err := take(end); err != nil {
			return err
		}
	}
	return nil
}
