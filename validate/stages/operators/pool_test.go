package operators

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// A process that forks the jobs and dies is an error that says how, and can still be stopped.
func TestDeadWorkerIsAnError(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	died := errors.New("died by signal killed")
	w := &worker{jobs: writer, events: io.NopCloser(nil), lines: bufio.NewReader(strings.NewReader("")), ended: make(chan struct{}), failure: died}
	close(w.ended)
	_, err = w.do(plan{seed: 7}.job("add", "float32", "basic", 4))
	if !errors.Is(err, died) || !strings.Contains(err.Error(), "add, float32, basic, 4 threads, seed 7") {
		t.Errorf("%v", err)
	}
	if err := w.stop(); !errors.Is(err, died) {
		t.Errorf("%v", err)
	}
}

// What the process says of another job, or of none, is not a result.
func TestAnswerToAnotherJobIsAnError(t *testing.T) {
	for _, line := range []string{"{\"event\": \"result\", \"id\": 1, \"status\": \"right\"}\n", "{\"event\": \"result\", \"id\": 0}\n", "nonsense\n",
		"{\"event\": \"result\", \"id\": 0, \"status\": \"crashed\", \"exit\": 70, \"stderr\": \"KeyError\"}\n"} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		w := &worker{jobs: writer, lines: bufio.NewReader(strings.NewReader(line))}
		if found, err := w.do(plan{seed: 7}.job("add", "float32", "basic", 4)); err == nil {
			t.Errorf("%s: %+v", line, found)
		}
	}
}
