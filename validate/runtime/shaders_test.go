package runtime

import (
	"encoding/json"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/validate/hosts"
	"mpsforge/validate/stagetest"
)

// PyTorch's own Metal kernels, translated, compute what the CPU does. Which library PyTorch takes depends on the macOS.
func TestTranslatedKernelsComputeWhatTheCPUDoes(t *testing.T) {
	built, root := stagetest.HostBuild(t.Context(), t, builds.Plain, false, true)
	if built.Shaders == 0 {
		t.Skip("SKIP Metal kernels: " + built.NoShaders)
	}
	for _, c := range []struct {
		macos string
		least int // kernels whose values are compared
	}{{"15.5", 165}, {"13.3", 138}} {
		t.Run("macOS "+c.macos, func(t *testing.T) {
			environment := append(hosts.Environment(root, 1), "MPSFORGE_METAL_MACOS="+c.macos)
			result, err := run.Command{Name: built.Python, Args: []string{"testdata/shader_values.py"}, Env: run.Environment(environment, nil)}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var found struct{ Compared, Wrong []string }
			if err := json.Unmarshal(result.Stdout, &found); err != nil {
				t.Fatalf("%v: %s", err, result.Stdout)
			}
			t.Logf("%d kernels compared, of %d in both libraries", len(found.Compared), built.Shaders)
			for _, wrong := range found.Wrong {
				t.Error(wrong)
			}
			if len(found.Compared) < c.least {
				t.Errorf("%d kernels were compared, want %d at least", len(found.Compared), c.least)
			}
		})
	}
}
