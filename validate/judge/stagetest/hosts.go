package stagetest

import (
	"context"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/native"
	"mpsforge/patches"
)

// HostBuild gives HostBuildOf 2.6.0.
func HostBuild(ctx context.Context, t testing.TB, flavour builds.Flavour, stock, tests bool) (*host.Build, *host.Root) {
	t.Helper()
	return HostBuildOf(ctx, t, host.DebianBaseline, flavour, stock, tests)
}

// HostBuildOf builds the real tree of a baseline, stock or with the series. A machine without what that needs skips the test.
func HostBuildOf(ctx context.Context, t testing.TB, baseline string, flavour builds.Flavour, stock, tests bool) (*host.Build, *host.Root) {
	t.Helper()
	return hostBuild(ctx, t, baseline, nil, flavour, stock, tests)
}

// HostBuildOfFirst builds the real tree of a baseline with its first pull request alone.
func HostBuildOfFirst(ctx context.Context, t testing.TB, baseline string) (*host.Build, *host.Root, *patches.Series) {
	t.Helper()
	series := require.One(patches.LoadFirst(patches.Embedded(), baseline))(t)
	built, root := hostBuild(ctx, t, baseline, series, builds.Plain, false, false)
	return built, root, series
}

// hostBuild builds a series; nil is the whole one.
func hostBuild(ctx context.Context, t testing.TB, baseline string, series *patches.Series, flavour builds.Flavour,
	stock, tests bool) (*host.Build, *host.Root) {
	t.Helper()
	root, torch, checkout, whole, cache := hosttest.InputsOf(t, baseline)
	if series == nil {
		series = whole
	}
	source, err := checkout.Patched(ctx, series, cache)
	if stock {
		source, err = checkout.Stock(ctx, cache)
	}
	require.NoError(t, err)
	facts := require.One(series.HostFacts())(t)
	layer, glue, err := native.HostBuildSources()
	require.NoError(t, err)
	built, err := host.Make(ctx, host.Options{Checkout: source.Dir, Identity: builds.Stamp{Baseline: series.Baseline.Name, Commit: source.Commit,
		Tree: source.Tree, Patches: append([]string{}, source.Patches...)},
		Facts: facts, Root: root, Torch: torch, Flavour: flavour, Cache: cache, Native: layer, Glue: glue, Tests: tests}, events.Discard)
	require.NoError(t, err)
	return built, root
}
