package runtime

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/stagetest"
)

// shaderValues runs PyTorch's kernels by its operators, and compares them with the CPU.
func shaderValues(t *testing.T, settings ...string) (found struct{ Compared, Wrong, Findings []string }, built *host.Build) {
	t.Helper()
	built, root := stagetest.HostBuild(t.Context(), t, builds.Plain, false, true)
	if built.Shaders == 0 {
		t.Skip("SKIP Metal kernels: " + built.NoShaders)
	}
	environment := append(hosts.Environment(root, 1, false), settings...)
	result, err := run.Command{Name: built.Python, Args: []string{"testdata/shader_values.py"}, Env: run.Environment(environment, nil)}.Run(t.Context())
	require.NoError(t, err)
	if err := json.Unmarshal(result.Stdout, &found); err != nil {
		t.Fatalf("%v: %s", err, result.Stdout)
	}
	return found, built
}

// Threads of PyTorch's kernels do not race with each other, as its operators launch them, but for what is listed.
func TestThreadsOfTranslatedKernelsDoNotRace(t *testing.T) {
	found, _ := shaderValues(t, "MPSFORGE_METAL_CHECK_KERNELS=1", "MPSFORGE_METAL_ON_VIOLATION=record")
	known := []string{
		// Both are faults of Quantized.metal in PyTorch 2.6.0. After its loop it writes scales over a tile that other SIMD groups may
		// still read, without a barrier.
		"large_m_int8pack_mm_",
		// Lanes read scales that other lanes have stored; there is a simd_sum between, which orders no memory, and no barrier.
		"int8pack_mv_",
	}
	seen := map[string]bool{}
	for _, finding := range found.Findings {
		i := slices.IndexFunc(known, func(kernel string) bool { return strings.Contains(finding, kernel) })
		if i < 0 {
			t.Error(finding)
			continue
		}
		seen[known[i]] = true
	}
	for _, kernel := range known {
		if !seen[kernel] {
			t.Errorf("%s: no race was found, and one is known", kernel)
		}
	}
	t.Logf("%d kernels, %d findings", len(found.Compared), len(found.Findings))
}

// PyTorch's own Metal kernels, translated, compute what the CPU does. Which library PyTorch takes depends on the macOS.
func TestTranslatedKernelsComputeWhatTheCPUDoes(t *testing.T) {
	for _, c := range []struct {
		macos string
		least int // kernels whose values are compared
	}{{"15.5", 165}, {"13.3", 138}} {
		t.Run("macOS "+c.macos, func(t *testing.T) {
			found, built := shaderValues(t, "MPSFORGE_METAL_MACOS="+c.macos)
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
