package pytests

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// harnessSubject is a Python with torch that runs tests on the CPU, with those of testdata/python beside the real ones.
func harnessSubject(t *testing.T) *Subject {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Python with torch")
	}
	env := &stage.Env{Options: stage.Options{Cache: t.TempDir(), Python: stage.PythonOptions{Device: "cpu"}}, Sink: events.Discard}
	home := require.One(os.UserHomeDir())(t)
	// The root is in the user's cache, where it is kept for all runs.
	if cache := filepath.Join(home, ".cache", "mpsforge"); runtime.GOOS == "linux" && host.HaveRoot(cache) {
		env.Cache = cache
	}
	interpreter, err := harnessPython(t.Context(), env)
	if err != nil {
		t.Skipf("SKIP Python with torch: %v", err)
	}
	if err := exec.CommandContext(t.Context(), interpreter, "-c", "import torch").Run(); err != nil {
		t.Skipf("SKIP Python with torch: %s has none: %v", interpreter, err)
	}
	scripts := require.One(unpackPython(t.TempDir()))(t)
	planted := require.One(os.ReadFile("testdata/python/test_planted.py"))(t)
	require.NoError(t, os.WriteFile(filepath.Join(scripts, "test_planted.py"), planted, 0o644))
	return &Subject{Name: "cpu", interpreter: interpreter, Device: "cpu", scripts: scripts, wanted: wantedTorch{any: true}, limits: defaultLimits}
}

// What a test can do wrong without saying so is distinguished from a pass: by the counts, by the events, or by the watchdog.
func TestPythonRunnerFindsPlantedBugs(t *testing.T) {
	subject := harnessSubject(t)
	hasty := Limits{start: 3 * time.Minute, stall: 8 * time.Second, total: 5 * time.Minute, memory: 8 << 30}
	tight := hasty
	tight.memory = 700 << 20
	for _, c := range []struct {
		test, problem string
		output        string // among its words
		limits        Limits
	}{
		{test: "right"},
		{test: "swallowed-exception", problem: "operations done: 3 of 4"},
		{test: "some-never-compared", problem: "results compared: 3 of 4"},
		{test: "nothing-compared", problem: "no value was compared"},
		{test: "wrong-value", problem: "wrong values: 4 of 16, the first: thread 2[0]: 0.0, expected 1.0"},
		{test: "not-a-number", problem: "wrong values: 16 of 16"},
		{test: "exit-0-in-a-thread", problem: "exit code 0, but without a result"},
		{test: "own-thread-dies", problem: "errors: 1, the first: ZeroDivisionError"},
		{test: "thread-dies-after-the-result", problem: "errors: 1, the first: KeyError"},
		{test: "abort", problem: "died by signal aborted: -[IOGPUMetalCommandBuffer validate]"},
		{test: "abort-at-exit", problem: "after its result: died by signal aborted"},
		{test: "hang", problem: "hung: no progress for 8s", output: "in test_hang", limits: hasty},
		{test: "hang-with-the-interpreter-lock", problem: "hung: no progress for 8s", output: "in test_hang_with_the_interpreter_lock", limits: hasty},
		{test: "memory", problem: "too much memory", limits: tight},
	} {
		t.Run(c.test, func(t *testing.T) {
			if c.limits == (Limits{}) {
				c.limits = defaultLimits
			}
			end, _, err := Run{Subject: subject, Test: c.test, Threads: 4, Iterations: 1, limits: c.limits}.run(t.Context())
			require.NoError(t, err)
			if !strings.HasPrefix(end.Problem, c.problem) || (c.problem == "") != (end.Problem == "") {
				t.Errorf("problem %q, want %q\n%s", end.Problem, c.problem, end.Output)
			}
			require.Contains(t, end.Output, c.output)
			if c.test == "abort" && !strings.HasPrefix(end.Signature, "3") {
				t.Errorf("signature %q", end.Signature)
			}
		})
	}
	t.Run("skipped", func(t *testing.T) {
		end, _, err := Run{Subject: subject, Test: "skipped", Threads: 1, Iterations: 1, limits: defaultLimits}.run(t.Context())
		if err != nil || end.Problem != "" || !strings.Contains(end.Skipped, "what_no_torch_has") {
			t.Errorf("%q, %q, %v", end.Problem, end.Skipped, err)
		}
	})
}

// Where the first failure ends a stage, what has not begun by then does not run.
func TestFirstFailureEndsTheTests(t *testing.T) {
	subject := harnessSubject(t)
	env := &stage.Env{Options: stage.Options{FirstFailure: true}, Sink: events.Discard}
	r := Runner{Env: env, Stage: &reports.Stage{}, Step: "python"}
	jobs := []Job{r.Job(Test{Name: "wrong-value", iterations: 1}, subject, 4, false)}
	for range 4 * stage.AtOnce() {
		jobs = append(jobs, r.Job(Test{Name: "right", iterations: 1}, subject, 4, false))
	}
	ran := require.One(r.RunAll(t.Context(), jobs))(t)
	if len(Problems(ran)) != 1 || len(ran) == len(jobs) {
		t.Errorf("%d of %d jobs ran, %d with a problem", len(ran), len(jobs), len(Problems(ran)))
	}
}
