package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mpsforge/fork/hostbuild/host/hosttest"
)

// TestShaderScripts runs kernels of Metal source files, as written in testdata/shader, with the compiler of host builds.
func TestShaderScripts(t *testing.T) {
	_, cache := hosttest.Root(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/shader", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("MPSFORGE_CACHE", cache)
			env.Setenv("LC_ALL", "C")
			return nil
		},
	})
}
