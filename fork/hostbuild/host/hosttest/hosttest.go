// Package hosttest gets what tests of host builds work on: Debian's packages and real trees. It holds no test.
package hosttest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/apt"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// Inputs gives InputsOf 2.6.0, which every Debian system can get.
func Inputs(t testing.TB) (*host.Root, *host.Torch, *fork.Checkout, *patches.Series, string) {
	t.Helper()
	return InputsOf(t, host.DebianBaseline)
}

// InputsOf gives a root, a libtorch and the real tree of a baseline, all from the user's cache, where they are kept for all runs.
func InputsOf(t testing.TB, baseline string) (*host.Root, *host.Torch, *fork.Checkout, *patches.Series, string) {
	t.Helper()
	root, cache := Root(t)
	tree, series := TreeOf(t, cache, baseline)
	facts := require.One(series.HostFacts())(t)
	torch, err := host.OpenTorch(t.Context(), root, "", host.Libtorchs(facts), cache, nil)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP host build of %s: %v", baseline, err)
	}
	require.NoError(t, err)
	checkout := require.One(fork.Open(t.Context(), tree, nil))(t)
	t.Cleanup(func() { checkout.Close() })
	return root, torch, checkout, series, cache
}

// Cache is the user's cache folder.
func Cache(t testing.TB) string {
	t.Helper()
	cache := os.Getenv("MPSFORGE_CACHE")
	if cache == "" {
		home := require.One(os.UserHomeDir())(t)
		cache = filepath.Join(home, ".cache", "mpsforge")
	}
	return cache
}

// Root gives Debian's packages alone, with their compiler, and the cache that they are in.
func Root(t testing.TB) (*host.Root, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIP host build: compiles with Debian's clang")
	}
	cache := Cache(t)
	root, err := host.OpenRoot(t.Context(), "", cache, events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP host build: %v", err)
	}
	require.NoError(t, err)
	return root, cache
}

// Unpack unpacks a package of Debian's suite, without what it depends on, into folder. The test is skipped where the suite cannot be had.
func Unpack(t testing.TB, cache, name, folder string) {
	t.Helper()
	suite, err := apt.Open(t.Context(), filepath.Join(cache, "debian", host.DebianSuite+"-binary"), host.DebianSuite)
	if err == nil {
		err = suite.Update(t.Context())
	}
	if err != nil {
		t.Skipf("SKIP Debian's %s: %v", name, err)
	}
	file, err := suite.Package(t.Context(), name, t.TempDir())
	if err == nil {
		_, err = run.Command{Name: "dpkg-deb", Args: []string{"--extract", file, folder}}.Run(t.Context())
	}
	require.NoError(t, err)
}

// Tree gives TreeOf 2.6.0.
func Tree(t testing.TB, cache string) (dir string, series *patches.Series) {
	t.Helper()
	return TreeOf(t, cache, host.DebianBaseline)
}

// TreeOf gives the real tree of a baseline in a cache, and its series. Tests of several packages, which go test runs as processes at
// the same time, want it: the first one fetches it, and the others wait. Only Debian's is fetched.
func TreeOf(t testing.TB, cache, baseline string) (dir string, series *patches.Series) {
	t.Helper()
	series = require.One(patches.Load(patches.Embedded(), baseline))(t)
	dir = fork.CachedTree(cache, baseline)
	if baseline != host.DebianBaseline {
		if !builds.Exists(dir) {
			t.Skipf("SKIP real tree of %s: the cache has none: mpsforge fetch --baseline %s --checkout %s", baseline, baseline, dir)
		}
		return dir, series
	}
	require.NoError(t, os.MkdirAll(cache, 0o755))
	lock := require.One(os.Create(filepath.Join(cache, "test-tree.lock")))(t)
	defer lock.Close() // which gives the lock back
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	_, err := fork.Fetch(t.Context(), series, fork.FetchOptions{Dir: dir, Cache: cache}, events.Discard)
	if errors.Is(err, fork.ErrUnavailable) || errors.Is(err, fork.ErrEnvironment) {
		t.Skipf("SKIP real tree: Debian's source package of PyTorch 2.6.0 is not available here: %v", err)
	}
	require.NoError(t, err)
	return dir, series
}
