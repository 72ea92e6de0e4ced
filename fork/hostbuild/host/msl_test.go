package host_test

import (
	"testing"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/native"
)

// Shaders that are source at run time, compiled as a host build does it, and run without one.
func TestShadersFromSourceRun(t *testing.T) {
	root, cache := hosttest.Root(t)
	program, toolchain, err := host.ShaderProgram(t.Context(), root, cache, t.TempDir(), native.Sources, "programs/msl_shaders_test.cc")
	require.NoError(t, err)
	if result, err := (run.Command{Name: program, Args: []string{toolchain}}).Run(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, result.Stdout)
	}
}
