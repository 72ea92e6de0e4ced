package run_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mpsforge/internal/require"
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
	_, err := run.Command{Name: "no-such-program-here"}.Run(t.Context())
	require.Is(t, err, exec.ErrNotFound)
}

// The end of the context ends the program and what it started itself.
func TestContextEndsTheWholeGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := time.Now()
	// The grandchild ignores SIGTERM and holds standard output open.
	command := shell(`(trap "" TERM; echo ready; sleep 3600) & wait`)
	command.Stdout = onWrite(cancel)
	_, err := command.Run(ctx)
	require.Is(t, err, context.Canceled)
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

// Of a flood of error output the end is kept, and no more memory is used than for that. MPSFORGE_FLOOD is another number of bytes.
func TestFloodOfErrorsIsBounded(t *testing.T) {
	flood := cmp.Or(os.Getenv("MPSFORGE_FLOOD"), "209715200")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result := require.One(shell("head -c " + flood + " /dev/zero >&2; echo last >&2").Run(t.Context()))(t)
	runtime.ReadMemStats(&after)
	if len(result.Stderr) > 3<<20 || !strings.HasSuffix(string(result.Stderr), "last\n") {
		t.Errorf("%d bytes kept, ending %q", len(result.Stderr), result.Stderr[max(0, len(result.Stderr)-20):])
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
		t.Errorf("this process has %d MiB more than before", grown>>20)
	}
}

// A program whose standard output cannot be kept is ended, and what was kept of it is no result.
func TestFloodOfOutputIsAnError(t *testing.T) {
	_, err := shell("cat /dev/zero").Run(t.Context())
	require.Is(t, err, run.ErrFlood, "endless output")
	_, err = shell("head -c 268435457 /dev/zero").Run(t.Context())
	require.Is(t, err, run.ErrFlood, "a byte too much")
}

// A program that ends leaves nothing behind that holds its output open.
func TestWhatIsLeftOfAnEndedProgramIsEnded(t *testing.T) {
	result, err := shell(`sleep 3600 & echo $!`).Run(t.Context())
	if !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatalf("%q, %v", result.Stdout, err)
	}
	waitUntilEnded(t, strings.TrimSpace(string(result.Stdout)))
}

func waitUntilEnded(t *testing.T, pid string) {
	t.Helper()
	for range 1000 { // a killed process is there, as a zombie, until its parent has taken note of it
		state, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
		if err != nil || strings.HasPrefix(string(state), "Z") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %s is there still", pid)
}

// What a program leaves behind in a session of its own holds up nothing, either; a kill of the group does not reach it.
func TestWhatLeftTheGroupHoldsUpNothing(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skipf("SKIP: %v", err)
	}
	result, err := shell(`setsid sleep 3600 & echo $!`).Run(t.Context())
	if pid, notANumber := strconv.Atoi(strings.TrimSpace(string(result.Stdout))); notANumber == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	require.Is(t, err, exec.ErrWaitDelay, string(result.Stdout))
}

// A program that forks without end is ended with all that it has started. It runs as a user of its own with a limit of processes,
// which has to have been seen to hold first.
func TestManyProcessesAreEnded(t *testing.T) {
	user := strconv.Itoa(1_000_000_000 + os.Getpid())
	limited := func(args ...string) run.Command {
		return run.Command{Name: "setpriv", Args: append([]string{"--reuid", user, "--clear-groups", "prlimit", "--nproc=60"}, args...)}
	}
	probe, err := limited("sh", "-c", "for i in $(seq 100); do sleep 3 >/dev/null 2>&1 & done").Run(t.Context())
	if err == nil || !strings.Contains(string(probe.Stderr), "fork") {
		t.Skipf("SKIP: no limit of processes that holds: %v: %.200q", err, probe.Stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	bomb := limited("python3", "-c", `import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        os.fork()
    except OSError:
        os.write(1, b"full")
        time.sleep(0.1)`)
	bomb.Stdout = onWrite(cancel)
	_, err = bomb.Run(ctx)
	require.Is(t, err, context.Canceled)
	for range 1000 { // killed processes are there until somebody has taken note of them
		left, _ := exec.Command("ps", "-o", "stat=", "-u", user).Output() // it fails where there are none
		if strings.Trim(string(left), "Z+s\n ") == "" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("processes of user %s are there still", user)
}

// A program can have more file descriptors than the usual three, and its process id is reported while it runs.
func TestFilesAndStarted(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	command := shell("echo $$ >&3")
	command.Files = []*os.File{writer}
	pid := 0
	command.Started = func(started int) { pid = started; writer.Close() }
	require.One(command.Run(t.Context()))(t)
	told, err := io.ReadAll(reader)
	if err != nil || string(told) != fmt.Sprintln(pid) {
		t.Errorf("%q, %d, %v", told, pid, err)
	}
}

// What mpsforge has started ends when mpsforge is killed, were it to hang. This test is started again as the one that is killed.
func TestProgramsEndWithTheirParent(t *testing.T) {
	const again = "MPSFORGE_RUN_AS_PARENT"
	if os.Getenv(again) != "" {
		command := shell("echo $$; exec sleep 3600")
		command.Stdout = os.Stdout
		_, err := command.Run(t.Context())
		t.Fatal(err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("SKIP: only Linux ends children with their parent")
	}
	parent := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	parent.Env = append(os.Environ(), again+"=1")
	output := require.One(parent.StdoutPipe())(t)
	require.NoError(t, parent.Start())
	pid := 0
	_, err := fmt.Fscan(output, &pid)
	_ = parent.Process.Kill()
	_ = parent.Wait() // killed
	require.NoError(t, err)
	waitUntilEnded(t, strconv.Itoa(pid))
}
