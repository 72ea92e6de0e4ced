// Package hosttest gets what tests of host builds work on: Debian's packages and the real tree of 2.6.0. It holds no test.
package hosttest

import (
	"errors"
	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/host"
	"mpsforge/internal/events"
	"mpsforge/patches"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Inputs gives a root and the real tree of 2.6.0, both from the user's cache, where they are kept for all runs.
func Inputs(t testing.TB) (*host.Root, *host.Torch, *fork.Checkout, *patches.Series, string) {
	t.Helper()
	root, cache := Root(t)
	torch, err := host.OpenTorch(t.Context(), root, "", cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	tree, series := Tree(t, cache)
	checkout, err := fork.Open(t.Context(), tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checkout.Close() })
	return root, torch, checkout, series, cache
}

// Root gives Debian's packages alone, with their compiler, and the cache that they are in.
func Root(t testing.TB) (*host.Root, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIP host build: compiles with Debian's clang")
	}
	cache := os.Getenv("MPSFORGE_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "mpsforge")
	}
	root, err := host.OpenRoot(t.Context(), "", cache, events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP host build: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return root, cache
}

// Tree gives the real tree of 2.6.0 in a cache, and its series. Tests of several packages, which go test runs as processes at
// the same time, want it: the first one fetches it, and the others wait.
func Tree(t testing.TB, cache string) (dir string, series *patches.Series) {
	t.Helper()
	series, err := patches.Load(patches.Embedded(), host.DebianBaseline)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(cache, "test-tree.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() // which gives the lock back
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(cache, "trees", host.DebianBaseline)
	_, err = fork.Fetch(t.Context(), series, fork.FetchOptions{Dir: dir, Cache: cache}, events.Discard)
	if errors.Is(err, fork.ErrUnavailable) || errors.Is(err, fork.ErrEnvironment) {
		t.Skipf("SKIP real tree: Debian's source package of PyTorch 2.6.0 is not available here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, series
}
