package repro

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
)

// Every reproducer is one file of valid Python that holds all that it uses.
func TestReproducersAreSelfContained(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	for _, scenario := range Scenarios() {
		t.Run(scenario, func(t *testing.T) {
			found, err := Write(t.Context(), Options{Scenario: scenario, Dir: t.TempDir(), Threads: 4, Iterations: 5, Graph: scenario == "linear"},
				events.Discard)
			require.NoError(t, err)
			report, err := os.ReadFile(found.Report)
			if err != nil || !strings.Contains(string(report), "Not run yet") || !strings.Contains(string(report), filepath.Base(found.File)) {
				t.Errorf("%v\n%s", err, report)
			}
			if !strings.Contains(string(report), "## Known cause\n\n") || strings.Contains(string(report), "Not known") ||
				scenario != appleScenario && !strings.Contains(string(report), "3 double-commit") {
				t.Errorf("no known cause in\n%s", report)
			}
			if scenario == appleScenario {
				return // TestAppleReproducerCompiles
			}
			source := require.One(os.ReadFile(found.File))(t)
			for _, foreign := range []string{"harness", "operations", "<no value>", "{{"} {
				if strings.Contains(string(source), "import "+foreign) || strings.Contains(string(source), "from "+foreign) ||
					strings.HasSuffix(foreign, ">") && strings.Contains(string(source), foreign) {
					t.Errorf("%q in\n%s", foreign, source)
				}
			}
			if output, err := exec.CommandContext(t.Context(), python, "-m", "py_compile", found.File).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\n%s", err, output, source)
			}
		})
	}
}

func TestNoSuchReproducer(t *testing.T) {
	if _, err := Write(t.Context(), Options{Scenario: "fork", Dir: t.TempDir()}, events.Discard); !errors.Is(err, ErrNone) ||
		!strings.Contains(err.Error(), "there are: matrix-multiplication") {
		t.Error(err)
	}
}

// The reproducer is run as often as asked for, and the report says how it ended. A shell stands in for a Python that dies.
func TestReportOfAReproducer(t *testing.T) {
	dir := t.TempDir()
	python := filepath.Join(dir, "python3")
	script := "#!/bin/sh\necho 'torch 2.9.1, git d38164a, Python 3.12'\necho '-[IOGPUMetalCommandBuffer validate]:215: failed assertion `commit an " +
		"already committed command buffer'\"'\" >&2\nkill -ABRT $$\n"
	require.NoError(t, os.WriteFile(python, []byte(script), 0o755))
	found := require.One(Write(t.Context(), Options{Scenario: "linear", Dir: dir, Threads: 8, Iterations: 50, Interpreter: python, Runs: 3,
		Limit: time.Minute}, events.Discard))(t)
	report := require.One(os.ReadFile(found.Report))(t)
	for _, part := range []string{"3 of 3 (95 %: 44 to 100 %)", "commit an already committed command buffer", "torch 2.9.1, git d38164a",
		"Signature 3 double-commit", "processes instead of threads"} {
		require.Contains(t, string(report), part)
	}
	if found.Failed != 3 || !strings.HasPrefix(found.Signature, "3 ") {
		t.Errorf("%+v", found)
	}
}

// The reproducer for Apple compiles against the headers of host builds. That finds slips; it is not a proof about Apple's.
func TestAppleReproducerCompiles(t *testing.T) {
	root, _, _, _, _ := hosttest.Inputs(t)
	args := []string{"-x", "objective-c++", "-std=c++17", "-fobjc-runtime=objfw", "-fobjc-exceptions", "-fblocks", "-fobjc-arc", "-Wall", "-Wextra",
		"-Wno-unused-parameter", "-Werror",
		"-fsyntax-only", "-I../../../native/objc/include", "templates/matrix_multiplication.mm"}
	if _, err := (run.Command{Name: root.Tool("clang"), Args: args}).Run(t.Context()); err != nil {
		t.Error(err)
	}
}
