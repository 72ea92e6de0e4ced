package overlay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/mac"
	"mpsforge/fork/macos/overlay"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
)

// likeXcode puts an xcrun on PATH that answers as Apple's does, with the clang, the linker and the libraries that Linux has in their place.
func likeXcode(t *testing.T, laid string) {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`#!/bin/sh
[ "$1 $2" = "--sdk macosx" ] || exit 64
case "$3 $4" in
"--show-sdk-path ") echo '%[1]s/MacOSX.sdk' ;;
"--find clang") echo '%[1]s/bin/clang' ;;
"--find ld") echo '%[1]s/bin/ld' ;;
*) exit 72 ;;
esac
`, laid)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "xcrun"), []byte(text), 0o755))
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// forMac are the options of a wheel for macOS of the whole series on 2.6.0.
func forMac(t *testing.T) overlay.MacOptions {
	t.Helper()
	root, _, checkout, series, cache := hosttest.Inputs(t)
	patched := require.One(checkout.Before(t.Context(), series, "", cache))(t)
	return overlay.MacOptions{Series: series, Root: root, Checkout: patched.Dir, Cache: cache, Dir: t.TempDir(), Identity: builds.Stamp{
		Baseline: series.Baseline.Name, Commit: patched.Commit, Tree: patched.Tree, Patches: append([]string{}, patched.Patches...), Series: series.Digest()}}
}

// On a Mac each compiler and linker gets what it gets on Linux, but for the program's own path and that of the SDK. The stand-in's are the same, so
// all of it is.
func TestMacGetsTheCommandsOfLinux(t *testing.T) {
	o := forMac(t)
	plan := func() (lines []string) {
		o.Plan = func(command run.Command) { lines = append(lines, command.Dir+"$ "+command.String()) }
		if _, _, _, err := overlay.WriteMac(t.Context(), o, events.Discard); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	linux := plan()
	likeXcode(t, filepath.Join(mac.Folder(o.Cache), "xcode"))
	o.Root = nil
	apple := plan()
	if len(linux) < 60 || !slices.Equal(linux, apple) {
		for i := range min(len(linux), len(apple)) {
			if linux[i] != apple[i] {
				t.Errorf("the first that differs:\n%s\n%s", linux[i], apple[i])
				break
			}
		}
		t.Errorf("%d commands on Linux, %d on a Mac", len(linux), len(apple))
	}
}

// torchgen has its own Python on a Mac, from PyPI.
func TestPythonOfAMacRunsTorchgen(t *testing.T) {
	_, cache := hosttest.Root(t)
	dir, _ := hosttest.Tree(t, cache)
	root, err := host.SystemRoot(t.Context(), "/nowhere", t.TempDir(), nil, events.Discard)
	if err != nil {
		t.Skipf("SKIP torchgen of a Mac: %v", err)
	}
	made, err := host.Registration(t.Context(), root, dir, t.TempDir(), events.Discard)
	if err != nil || len(made) == 0 {
		t.Errorf("%v, %v", made, err)
	}
}

// The whole way of a Mac, whose tools are the stand-ins: the same library, byte for byte, with the same checks.
func TestWheelOfAMacIsThatOfLinux(t *testing.T) {
	if os.Getenv("MPSFORGE_OVERLAY_XCODE") == "" {
		t.Skip("SKIP wheel made as on a Mac: compiles the backend twice, for minutes each; asked for by MPSFORGE_OVERLAY_XCODE=1")
	}
	o := forMac(t)
	wheel := func() (digest string, checked []string) {
		file, _, checked, err := overlay.WriteMac(t.Context(), o, events.Discard)
		require.NoError(t, err)
		site := t.TempDir()
		require.NoError(t, wheels.Unpack(file, site, []string{""}))
		digest = require.One(builds.FileSHA256(filepath.Join(site, "mpsforge_overlay", mac.OverlayLibrary)))(t)
		return digest, checked
	}
	linux, checkedLinux := wheel()
	likeXcode(t, filepath.Join(mac.Folder(o.Cache), "xcode"))
	o.Root = nil
	apple, checkedApple := wheel()
	if linux != apple || !slices.Equal(checkedLinux, checkedApple) {
		t.Errorf("%s\n%s\n%q\n%q", linux, apple, checkedLinux, checkedApple)
	}
}
