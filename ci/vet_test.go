package ci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mpsforge/internal/require"
)

// The gate vets with GOFLAGS=-trimpath and a cache that other clones filled, of which some are gone.
func TestVetReadsNoClonesThatAreGone(t *testing.T) {
	makefile := require.One(filepath.Abs("../Makefile"))(t)
	t.Setenv("GOFLAGS", "-trimpath")
	root := t.TempDir()
	clones := [2]string{filepath.Join(root, "one"), filepath.Join(root, "two")}
	for _, clone := range clones {
		require.Files(t, clone, map[string]string{
			"go.mod":           "module vetted\n",
			"plain/plain.go":   "package plain\n",
			"native/native.go": "package native\n\nimport \"C\"\n\n// In is " + root + ".\nfunc In() C.int { return 1 }\n",
			"native/nocgo.go":  "//go:build !cgo\n\npackage native\n",
		})
	}
	sh(t, clones[0], "go", "build", "./...")
	require.NoError(t, os.RemoveAll(clones[0]))
	vet := exec.Command("go", "vet", "./...")
	vet.Dir = clones[1]
	if output, err := vet.CombinedOutput(); err == nil {
		t.Fatalf("go vet no longer reads the clone that is gone; make vet need not treat cgo packages apart\n%s", output)
	}
	sh(t, clones[1], "make", "--no-print-directory", "-f", makefile, "vet")
}
