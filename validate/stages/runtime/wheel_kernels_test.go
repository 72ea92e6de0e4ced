package runtime

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/shaders"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/stagetest"
)

// Every kernel of v2.9.1's host build: translated, launched with operands as PyTorch gives them, and compared with the CPU operators of
// the same PyTorch. Accesses outside of them are findings.
func TestKernelsOfTheNewestWheel(t *testing.T) {
	built, root := stagetest.HostBuildOf(t.Context(), t, "v2.9.1", builds.Plain, false, false)
	library := filepath.Join(built.Dir, shaders.FileName)
	result := require.One(run.Command{Name: built.Python, Args: []string{"testdata/wheel/run.py", launcher(t, root), library}}.Run(t.Context()))(t)
	var found struct {
		Launched, Compared, Findings, Wrong, Faults []string
		WithoutCase                                 []string `json:"without_case"`
	}
	if err := json.Unmarshal(result.Stdout, &found); err != nil {
		t.Fatalf("%v: %s", err, result.Stdout)
	}
	t.Logf("%d kernels, %d launched, %d compared, %d wrong by themselves", built.Shaders, len(found.Launched), len(found.Compared), len(found.Faults))
	for _, problem := range slices.Concat(found.Findings, found.Wrong) {
		t.Error(problem)
	}
	for _, kernel := range found.WithoutCase {
		t.Errorf("%s is not launched", kernel)
	}
	if len(found.Compared)+len(found.Faults) != len(found.Launched) {
		t.Errorf("of %d kernels only %d are compared", len(found.Launched), len(found.Compared))
	}
}

// launcher compiles what launches kernels for a program in Python.
func launcher(t *testing.T, root *host.Root) string {
	t.Helper()
	dir := t.TempDir()
	object, library := filepath.Join(dir, "launch.o"), filepath.Join(dir, "launch.so")
	for _, args := range [][]string{
		{"-std=c++17", "-O1", "-fPIC", "-I../../../native", "-c", "../../../native/programs/launch_kernels.cc", "-o", object},
		{"--ld-path=" + root.Tool("ld.lld"), "-shared", object, "-o", library},
	} {
		require.One(run.Command{Name: root.Tool("clang"), Args: append([]string{"--driver-mode=g++"}, args...)}.Run(t.Context()))(t)
	}
	return library
}
