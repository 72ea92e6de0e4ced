package host_test

import (
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/stagetest"
)

// PyPI's libtorch of 2.9.1 is a CUDA build. Over it a program has one accelerator, mps, and can do what a user does: train, load
// data by worker processes with pin_memory, compile, and pass tensors on by DLPack. What asks for CUDA ends with a clear error.
func TestAProgramOverALibtorchForCUDAHasMPSAlone(t *testing.T) {
	built, _ := stagetest.HostBuildOf(t.Context(), t, "v2.9.1", builds.Plain, false, false)
	if built.Python == "" {
		t.Fatalf("the host build of v2.9.1 has no Python: %s", built.NoPython)
	}
	for _, c := range []struct{ part, want string }{
		{"accelerator", "mps, no CUDA"},
		{"backward", "right"},
		{"data", "right"},
		{"compile", "right"},
		{"dlpack", "right"},
		{"cuda", "RuntimeError: Cannot initialize CUDA without ATen_cuda library"},
	} {
		t.Run(c.part, func(t *testing.T) {
			result, err := run.Command{Name: built.Python, Args: []string{"testdata/without_cuda.py", c.part}}.Run(t.Context())
			if err != nil || !strings.HasPrefix(string(result.Stdout), c.want) {
				t.Errorf("%s: %v\nit says %s", c.part, err, result.Stdout)
			}
		})
	}
}
