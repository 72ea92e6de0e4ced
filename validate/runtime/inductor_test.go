package runtime

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/validate/hosts"
	"mpsforge/validate/stagetest"
)

// What torch.compile of PyTorch 2.9.1 generates for Metal computes what the CPU does, forward and backward, by four
// threads at once. A host build of v2.9.1 needs a checkout that is not available here: its Inductor runs under the release
// from PyPI (3 GB, with what it depends on), and its programs run over the patched backend of 2.6.0.
func TestInductorsKernelsComputeWhatTheCPUDoes(t *testing.T) {
	python := os.Getenv("MPSFORGE_INDUCTOR_PYTHON")
	if python == "" {
		t.Skip("SKIP Inductor: MPSFORGE_INDUCTOR_PYTHON does not name a Python with torch 2.9.1 and transformers 4.57.3 from PyPI")
	}
	built, root := stagetest.HostBuild(t.Context(), t, builds.Plain, false, true)
	graphs := filepath.Join(t.TempDir(), "graphs.pt")
	if _, err := (run.Command{Name: python, Args: []string{"testdata/inductor_generate.py", graphs}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	environment := run.Environment(append(hosts.Environment(root, 1), "MPSFORGE_METAL_ON_VIOLATION=record"), nil)
	result, err := run.Command{Name: built.Python, Args: []string{"testdata/inductor_run.py", graphs}, Env: environment}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Models          map[string]struct{ Forward, Backward, Sources int }
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
	if len(found.Models) < 5 {
		t.Errorf("%d models, want 5 at least", len(found.Models))
	}
	t.Logf("%+v, %d reads outside of a buffer", found.Models, len(found.Findings))
}
