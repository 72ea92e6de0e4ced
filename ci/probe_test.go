package ci_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
	"mpsforge/validate/judge/stagetest"
)

// The probe finds what is planted, with the check that is for it, and says "not judged" of a virtual machine alone.
func TestProbeFindsWhatIsPlanted(t *testing.T) {
	built, _ := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	if built.Python == "" {
		t.Skipf("SKIP probe: %s", built.NoPython)
	}
	probe := require.One(os.ReadFile("probe.py"))(t)
	const main = "\nif __name__ =="
	if !strings.Contains(string(probe), main) {
		t.Fatalf("probe.py has no %q", main)
	}
	const virtual = "is_virtual = lambda: True\n"
	const wrongProduct = "torch.Tensor.__matmul__ = lambda a, b: torch.zeros(a.shape[0], b.shape[1], device=a.device) if a.is_mps else torch.mm(a, b)\n"
	for _, c := range []struct {
		name, planted, failed, detail string
		code                          int
	}{
		{"nothing", "", "", "", 0},
		{"nothing, in a virtual machine", virtual, "", "", 0},
		{"no memory", "def zeros(*_, **__): raise RuntimeError('MPS backend out of memory')\ntorch.zeros = zeros\n", "allocation kernel", "out of memory", 1},
		{"a wrong product", wrongProduct, "matmul", "not close", 1},
		{"a wrong product, in a virtual machine", wrongProduct + virtual, "matmul", "not close", 3},
		{"a kernel that does nothing", "import types\ntorch.mps._compile_shader = lambda _: types.SimpleNamespace(exp_kernel=lambda *_: None)\n",
			"kernel", "not close", 1},
		{"an assertion of Metal's", "torch.mps._compile_shader = lambda _: os.abort()\n", "kernel memory", "ended with -6", 1},
		{"a driver without memory", "torch.mps.driver_allocated_memory = lambda: 0\n", "memory", "nothing is allocated", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			planted := filepath.Join(t.TempDir(), "probe.py")
			require.NoError(t, os.WriteFile(planted, []byte(strings.Replace(string(probe), main, "\nimport os, torch\n"+c.planted+main, 1)), 0o644))
			output, err := exec.CommandContext(t.Context(), built.Python, planted).Output()
			code := 0
			if failure := (*exec.ExitError)(nil); errors.As(err, &failure) {
				code = failure.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			var report struct {
				Checks map[string]struct {
					Passed bool
					Detail string
				}
			}
			if err := json.Unmarshal(output, &report); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			var failed []string
			for _, name := range []string{"allocation", "matmul", "kernel", "memory"} {
				if check, ran := report.Checks[name]; !ran || !check.Passed {
					failed = append(failed, name)
					require.Contains(t, check.Detail, c.detail, name, "says")
				}
			}
			if names := strings.Join(failed, " "); names != c.failed || code != c.code {
				t.Errorf("failed: %q with exit code %d, want %q with %d", names, code, c.failed, c.code)
			}
		})
	}
}
