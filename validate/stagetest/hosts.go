package stagetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/host"
	"mpsforge/internal/events"
	"mpsforge/native"
	"mpsforge/patches"
)

// HostInputs gives a root and the real tree of 2.6.0, both from the user's cache, where they are kept for all runs.
func HostInputs(t testing.TB) (*host.Root, *host.Torch, *fork.Checkout, *patches.Series, string) {
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

func HostBuild(ctx context.Context, t testing.TB, flavour builds.Flavour, stock, tests bool) (*host.Build, *host.Root) {
	t.Helper()
	root, torch, checkout, series, cache := HostInputs(t)
	source, err := checkout.Patched(ctx, series, cache)
	if stock {
		source, err = checkout.Stock(ctx, cache)
	}
	if err != nil {
		t.Fatal(err)
	}
	facts, err := series.HostFacts()
	if err != nil {
		t.Fatal(err)
	}
	veneer, glue, err := native.HostBuildSources()
	if err != nil {
		t.Fatal(err)
	}
	built, err := host.Make(ctx, host.Options{Checkout: source.Dir, Identity: builds.Stamp{Baseline: series.Baseline.Name, Commit: source.Commit, Tree: source.Tree, Patches: append([]string{}, source.Patches...)},
		Facts: facts, Root: root, Torch: torch, Flavour: flavour, Cache: cache, Native: veneer, Glue: glue, Tests: tests}, events.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return built, root
}
