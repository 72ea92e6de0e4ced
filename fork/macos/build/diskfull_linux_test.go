package build

import (
	"errors"
	"os"
	"testing"

	"mpsforge/internal/require"

	"golang.org/x/sys/unix"
)

// A full disk is reported as such, not as an error in the sources; with space, the build goes on.
func TestFullDisk(t *testing.T) {
	p := newProject(t)
	require.NoError(t, os.MkdirAll(p.path("build"), 0o755))
	if err := unix.Mount("tmpfs", p.path("build"), "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("no small tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(p.path("build"), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p.write("aten/Context.cpp", "char big[4000000] = {1};\n")
	_, err := p.build(t.Context())
	if !errors.Is(err, ErrDiskFull) {
		t.Fatal(err)
	}
	wantIn(t, err.Error(), "free some space")
	require.NoError(t, unix.Mount("tmpfs", p.path("build"), "tmpfs", unix.MS_REMOUNT, "size=100m"))
	p.mustBuild()
}
