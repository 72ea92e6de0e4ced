package operators

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// answers is a server that gives one line, or an error.
type answers struct {
	line string
	err  error
}

func (a answers) Ask(string) error { return nil }

func (a answers) Next(_ string, to any) error {
	if a.err != nil {
		return a.err
	}
	return json.Unmarshal([]byte(a.line), to)
}

func (a answers) Close() error { return nil }

// A process that forks the jobs and dies is an error that says how, and of which job.
func TestDeadWorkerIsAnError(t *testing.T) {
	died := errors.New("died by signal killed")
	_, err := (&worker{server: answers{err: died}}).do(plan{seed: 7}.job("add", "float32", "basic", 4))
	if !errors.Is(err, died) || !strings.Contains(err.Error(), "add, float32, basic, 4 threads, seed 7") {
		t.Errorf("%v", err)
	}
}

// What the process says of another job, or of none, is not a result.
func TestAnswerToAnotherJobIsAnError(t *testing.T) {
	for _, line := range []string{`{"id": 1, "status": "right"}`, `{"id": 0}`, "nonsense",
		`{"id": 0, "status": "crashed", "exit": 70, "stderr": "KeyError"}`} {
		if found, err := (&worker{server: answers{line: line}}).do(plan{seed: 7}.job("add", "float32", "basic", 4)); err == nil {
			t.Errorf("%s: %+v", line, found)
		}
	}
}
