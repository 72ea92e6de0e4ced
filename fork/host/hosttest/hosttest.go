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
	"testing"
)

// Inputs gives a root and the real tree of 2.6.0, both from the user's cache, where they are kept for all runs.
func Inputs(t testing.TB) (*host.Root, *host.Torch, *fork.Checkout, *patches.Series, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles PyTorch's sources")
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
	torch, err := host.OpenTorch(root, "")
	if err != nil {
		t.Fatal(err)
	}
	series, err := patches.Load(patches.Embedded(), host.DebianBaseline)
	if err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(cache, "trees", host.DebianBaseline)
	if _, err := fork.Fetch(t.Context(), series, fork.FetchOptions{Dir: tree, Cache: cache}, events.Discard); errors.Is(err, fork.ErrUnavailable) || errors.Is(err, fork.ErrEnvironment) {
		t.Skipf("SKIP host build: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	checkout, err := fork.Open(t.Context(), tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checkout.Close() })
	return root, torch, checkout, series, cache
}
