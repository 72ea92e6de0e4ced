package runtime

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/stagetest"
)

// inductorFound is what testdata/inductor.py prints.
type inductorFound struct {
	Models          map[string]struct{ Forward, Backward, Sources, Runs, Compared int }
	Wrong, Findings []string
}

func inductor(t *testing.T, args ...string) (found inductorFound) {
	t.Helper()
	built, root := stagetest.HostBuildOf(t.Context(), t, "v2.9.1", builds.Plain, false, false)
	models := hosttest.Packages(t, hosttest.Cache(t), built.Python, "../../../fork/macos/overlay/testdata/models.txt", nil)
	environment := run.Environment(append(hosts.Environment(root, 1, true), "MPSFORGE_METAL_ON_VIOLATION=record", "PYTHONPATH="+models), nil)
	result, err := run.Command{Name: built.Python, Args: append([]string{"testdata/inductor.py"}, args...), Env: environment}.Run(t.Context())
	require.NoError(t, err)
	if err := json.Unmarshal(result.Stdout, &found); err != nil {
		t.Fatalf("%v: %s", err, result.Stdout)
	}
	return found
}

// A kernel that computes something else is wrong in the first call, and in those of every thread.
func TestInductorsWrongKernelIsSeen(t *testing.T) {
	found := inductor(t, "BERT", "metal::exp(", "metal::exp2(")
	for _, thread := range []string{"thread 0", "thread 1", "thread 2", "thread 3"} {
		if !slices.ContainsFunc(found.Wrong, func(wrong string) bool { return strings.HasPrefix(wrong, "BERT, "+thread+": AssertionError: value ") }) {
			t.Errorf("%s: %q", thread, found.Wrong)
		}
	}
}

// torch.compile of PyTorch 2.9.1 on device mps: what Inductor's Metal kernels compute for six models, forward and backward, by four
// threads at once, is what the CPU computes. It does not distinguish stock from patched: stock passed it, too, in the one run that was made.
func TestInductorsKernelsComputeWhatTheCPUDoes(t *testing.T) {
	found := inductor(t)
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
	require.Equal(t, len(found.Models), 6, "models")
	t.Logf("%+v, %d reads outside of a buffer", found.Models, len(found.Findings))
}
