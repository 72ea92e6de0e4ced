package onethread

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

// programLimit is how long a program may take; the process ends one that takes longer.
const programLimit = 90 * time.Second

// server is a process that forks one for each program.
type server struct {
	*pytests.Server
	subject *pytests.Subject
	names   []string
}

// start starts the process and waits until it has imported everything.
func start(ctx context.Context, subject *pytests.Subject, scripts string, seed uint64, tests string) (*server, error) {
	args := []string{filepath.Join(scripts, "onethread.py"), "--seed", fmt.Sprint(seed), "--limit", fmt.Sprint(programLimit.Seconds())}
	if tests != "" {
		args = append(args, "--tests", tests)
	}
	served, err := subject.Serve(ctx, args, settings, programLimit)
	if err != nil {
		return nil, err
	}
	var programs struct{ Names []string }
	if err := served.Next("programs", &programs); err != nil {
		return nil, errors.Join(err, served.Close())
	}
	return &server{Server: served, subject: subject, names: programs.Names}, nil
}

// run runs programs, and gives their results in the order in which they are named.
func (s *server) run(names []string, done func(result)) error {
	go func() { _ = s.Ask(strings.Join(names, "\n")) }() // if the process has gone, Next says so
	for _, name := range names {
		var r result
		if err := s.Next("result", &r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if r.Name != name {
			return fmt.Errorf("%s: expected the result of %q, not of %q", s.subject.Name, name, r.Name)
		}
		done(r)
	}
	return nil
}
