package pytests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/stagetest"
)

// A host build's Python runs programs on device mps over the checkout's own bindings and package, not over those that the
// prebuilt torch has, stock and patched.
func TestHostPython(t *testing.T) {
	for name, stock := range map[string]bool{"stock": true, "patched": false} {
		t.Run(name, func(t *testing.T) {
			built, _ := stagetest.HostBuild(t.Context(), t, builds.Plain, stock, false)
			program := require.One(filepath.Abs("testdata/python/device.py"))(t)
			found := runPythonTests(t, built, program)
			var said struct{ Stamp string }
			if err := json.Unmarshal(found.Stdout, &said); err != nil {
				t.Fatalf("%v in %s", err, found.Stdout)
			}
			if want, err := built.Stamp.Text(); err != nil || said.Stamp != want {
				t.Errorf("the loaded library is from %s, want %s, %v", said.Stamp, want, err)
			}
		})
	}
}

// The programs after public reports find what goes wrong in them, so that a pass means something where stock survives, too.
func TestReportedProgramsFindPlantedFaults(t *testing.T) {
	built, _ := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	program := require.One(filepath.Abs("testdata/python/planted_reported.py"))(t)
	runPythonTests(t, built, program)
}

// The tests that the series adds to PyTorch pass on the patched sources.
func TestSeriesOwnTestsPass(t *testing.T) {
	_, _, checkout, series, cache := hosttest.Inputs(t)
	source := require.One(checkout.Patched(t.Context(), series, cache))(t)
	files := require.One(filepath.Glob(filepath.Join(source.Dir, "test/test_mps_*.py")))(t)
	if len(files) == 0 {
		t.Skip("SKIP: this series has no tests of its own yet")
	}
	built, _ := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { runPythonTests(t, built, file) })
	}
}

var unittestRan = regexp.MustCompile(`(?m)^Ran (\d+) tests? in`)

// metalEnvironment has the software Metal end a process that breaks a rule. With CI set, PyTorch's run_tests writes JUnit files through
// xmlrunner, which is not a part of torch.
var metalEnvironment = []string{"CI=", "MPSFORGE_METAL_ON_VIOLATION=abort", "MPSFORGE_METAL_MAX_DELAY_US=100", "MPSFORGE_METAL_WATCHDOG_MS=20000",
	"PYTORCH_ENABLE_MPS_FALLBACK=0", "OMP_NUM_THREADS=1"}

// runPythonTests runs a file of unittest; a skipped test is a failure, as device mps is there.
func runPythonTests(t *testing.T, built *host.Build, file string) run.Result {
	t.Helper()
	if built.NoPython != "" {
		t.Fatal(built.NoPython)
	}
	found, err := run.Command{Name: built.Python, Args: []string{file}, Env: run.Environment(metalEnvironment, nil)}.Run(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, found.Stdout)
	}
	match := unittestRan.FindSubmatch(found.Stderr)
	if match == nil || !strings.HasSuffix(strings.TrimSpace(string(found.Stderr)), "\nOK") {
		t.Fatalf("not all tests ran: %s", found.Stderr)
	}
	if count, err := strconv.Atoi(string(match[1])); err != nil || count == 0 {
		t.Fatalf("no test ran: %s", found.Stderr)
	}
	return found
}

// A second build of the same sources leaves what others may run on as it is: a stage ends with a failure when the library that
// it tests changes underneath it.
func TestSecondHostBuildChangesNoFile(t *testing.T) {
	built, _ := stagetest.HostBuild(t.Context(), t, builds.Plain, true, false)
	extensions, err := filepath.Glob(filepath.Join(filepath.Dir(built.Python), "python", "*.so"))
	if err != nil || len(extensions) != 1 {
		t.Fatalf("extensions: %v, %v", extensions, err)
	}
	files := []string{built.Library, built.Driver, built.Metal, built.Python, extensions[0]}
	state := func() (all []os.FileInfo) {
		for _, file := range files {
			info := require.One(os.Stat(file))(t)
			all = append(all, info)
		}
		return all
	}
	before := state()
	stagetest.HostBuild(t.Context(), t, builds.Plain, true, false)
	for i, after := range state() {
		if !os.SameFile(before[i], after) || !before[i].ModTime().Equal(after.ModTime()) {
			t.Errorf("%s was written again", files[i])
		}
	}
}
