package runtime

import (
	"encoding/json"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/host/hosttest"
	"mpsforge/internal/run"
	"mpsforge/validate/hosts"
	"mpsforge/validate/stagetest"
)

// torch.compile of PyTorch 2.9.1 on device mps: what Inductor's Metal kernels compute for six models, forward and backward, by four
// threads at once, is what the CPU computes.
func TestInductorsKernelsComputeWhatTheCPUDoes(t *testing.T) {
	built, root := stagetest.HostBuildOf(t.Context(), t, "v2.9.1", builds.Plain, false, false)
	models := hosttest.Packages(t, hosttest.Cache(t), built.Python, "../../fork/overlay/testdata/models.txt", nil)
	environment := run.Environment(append(hosts.Environment(root, 1), "MPSFORGE_METAL_ON_VIOLATION=record", "PYTHONPATH="+models), nil)
	result, err := run.Command{Name: built.Python, Args: []string{"testdata/inductor.py"}, Env: environment}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Models          map[string]struct{ Forward, Backward, Sources, Runs, Compared int }
		Wrong, Findings []string
	}
	if err := json.Unmarshal(result.Stdout, &found); err != nil {
		t.Fatalf("%v: %s", err, result.Stdout)
	}
	for _, wrong := range found.Wrong {
		t.Error(wrong)
	}
	// Inductor of 2.9.1 loads first, and looks then whether the index is in range: [0-1+i] of a padded row, for example.
	for _, finding := range found.Findings {
		if !strings.Contains(finding, "generated_kernel") || !strings.Contains(finding, " reads ") {
			t.Error(finding)
		}
	}
	for name, model := range found.Models {
		if model.Forward == 0 || model.Backward == 0 || model.Sources == 0 {
			t.Errorf("%s: %d graphs forward, %d backward, %d Metal sources", name, model.Forward, model.Backward, model.Sources)
		}
	}
	if len(found.Models) != 6 {
		t.Errorf("%d models, want 6", len(found.Models))
	}
	t.Logf("%+v, %d reads outside of a buffer", found.Models, len(found.Findings))
}
