package run_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/run"
)

func shell(script string) run.Command { return run.Command{Name: "sh", Args: []string{"-c", script}} }

func TestOutputIsCaptured(t *testing.T) {
	result, err := shell("echo out; echo err >&2").Run(t.Context())
	if err != nil || string(result.Stdout) != "out\n" || string(result.Stderr) != "err\n" {
		t.Errorf("%q, %q, %v", result.Stdout, result.Stderr, err)
	}
}

// The error names the command as one would type it, its exit code, and the last of what it said.
func TestErrorSaysWhatFailed(t *testing.T) {
	_, err := shell("echo the reason >&2; exit 3").Run(t.Context())
	if run.ExitCode(err) != 3 || err == nil || !strings.Contains(err.Error(), "sh -c 'echo the reason >&2; exit 3': exit status 3\n  the reason") {
		t.Errorf("exit code %d: %v", run.ExitCode(err), err)
	}
}

func TestMissingProgramIsTold(t *testing.T) {
	if _, err := (run.Command{Name: "no-such-program-here"}).Run(t.Context()); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// The end of the context ends the program and what it started itself.
func TestContextEndsTheWholeGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := time.Now()
	// The grandchild ignores SIGTERM and holds standard output open.
	command := shell(`(trap "" TERM; echo ready; sleep 3600) & wait`)
	command.Stdout = onWrite(cancel)
	if _, err := command.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if took := time.Since(started); took > 10*time.Minute { // it waited for the grandchild
		t.Errorf("it took %v", took)
	}
}

// onWrite calls a function when something is written.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// Of very long error output the end is kept.
func TestStandardErrorIsBounded(t *testing.T) {
	result, err := shell("i=0; while [ $i -lt 60000 ]; do echo 'a line of some eighty bytes a line of some eighty bytes a line of some eighty b' >&2; i=$((i+1)); done; echo last >&2").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Stderr) > 3<<20 || !strings.HasSuffix(string(result.Stderr), "last\n") {
		t.Errorf("%d bytes kept, ending %q", len(result.Stderr), result.Stderr[max(0, len(result.Stderr)-20):])
	}
}

// A program can have more file descriptors than the usual three, and its process id is reported while it runs.
func TestFilesAndStarted(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := shell("echo $$ >&3")
	command.Files = []*os.File{writer}
	pid := 0
	command.Started = func(started int) { pid = started; writer.Close() }
	if _, err := command.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	told, err := io.ReadAll(reader)
	if err != nil || string(told) != fmt.Sprintln(pid) {
		t.Errorf("%q, %d, %v", told, pid, err)
	}
}
