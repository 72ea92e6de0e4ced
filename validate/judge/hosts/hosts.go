// Package hosts makes the host builds that stages run: of stock sources, of patched ones, and with patches left out. Package
// host compiles them; no compiler flag and no list of source files belongs in it.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/native"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// Builder builds the sources under test: stock, patched, or with patches left out.
type Builder struct {
	Env   *stage.Env
	Root  *host.Root
	Torch *host.Torch
	// AllSources has builds with a sanitizer, and those with a patch left out, compile all sources, too, and not only those that the
	// scenarios need.
	AllSources bool
	// First has builds compile only what the first scenario needs.
	First bool
	// Overlay has builds make an overlay, too.
	Overlay bool
}

// New finds, or gets, what host builds are made with.
func New(ctx context.Context, env *stage.Env, report *reports.Stage) (*Builder, error) {
	facts, err := env.Series.HostFacts()
	if err != nil && !errors.Is(err, patches.ErrNoHostFacts) { // without them no libtorch is known either, which is said below
		return nil, err
	}
	libtorchs := host.Libtorchs(facts)
	if env.Host.Torch == "" && len(libtorchs) == 0 && env.Series.Baseline.Name != host.DebianBaseline {
		return nil, stage.Skipf("needs a libtorch of %s: name its folder with --torch (pip install --target DIR torch==%s)", env.Series.Baseline.Name,
			strings.TrimPrefix(env.Series.Baseline.Name, "v"))
	}
	asked := slices.Contains(env.Stages, report.Name) || slices.Contains(env.Require, report.Name)
	if !asked && env.Host.Root == "" && !host.HaveRoot(env.Cache) {
		return nil, stage.Skipf("needs some 380 MB of packages of Debian %s, downloaded only when this stage is requested: mpsforge verify --stages %s",
			host.DebianSuite, report.Name)
	}
	if !asked && env.Host.Torch == "" && !host.HaveLibtorch(libtorchs, env.Cache) {
		return nil, stage.Skipf("needs PyTorch's wheel of %s for Linux, downloaded only when this stage is requested: mpsforge verify --stages %s",
			env.Series.Baseline.Name, report.Name)
	}
	root, err := host.OpenRoot(ctx, env.Host.Root, env.Cache, env.Sink)
	if err != nil {
		return nil, err
	}
	torch, err := host.OpenTorch(ctx, root, env.Host.Torch, libtorchs, env.Cache, env.Sink)
	if err != nil {
		return nil, err
	}
	report.Seeds = append(report.Seeds, env.Seed)
	return &Builder{Env: env, Root: root, Torch: torch}, nil
}

// Build builds sources in a flavour. With Counted, the whole series is built to count
// instead of plainly.
func (b *Builder) Build(ctx context.Context, source *fork.Snapshot, flavour builds.Flavour) (*host.Build, error) {
	identity := builds.Stamp{Baseline: b.Env.Series.Baseline.Name, Commit: source.Commit, Tree: source.Tree, Patches: append([]string{}, source.Patches...)}
	if len(source.Patches) == len(b.Env.Series.Patches) {
		identity.Series = b.Env.Series.Digest()
		if b.Env.Host.Counted != nil && flavour == builds.Plain {
			flavour = builds.Coverage
		}
	}
	facts, err := b.Env.Series.HostFacts()
	if err != nil {
		return nil, err
	}
	layer, glue, err := native.HostBuildSources()
	if err != nil {
		return nil, err
	}
	options := host.Options{Checkout: source.Dir, Identity: identity, Facts: facts, Root: b.Root, Torch: b.Torch, Flavour: flavour, Jobs: b.Env.Host.Jobs,
		Cache: b.Env.Cache, Native: layer, Glue: glue, Subject: b.Subject(source.Patches), Extent: b.extent(source, flavour)}
	if b.Overlay {
		if options.Overlay, err = native.OverlaySources(); err != nil {
			return nil, err
		}
	}
	name := fmt.Sprint(source.Tree, source.Patches, flavour, options.Extent, b.Overlay) // root and libtorch are those of the run
	return b.Env.Built.Once(name, func() (*host.Build, error) {
		built, err := host.Make(ctx, options, b.Env.Sink)
		if err == nil && flavour == builds.Coverage {
			err = b.Env.Host.Counted(built)
		}
		return built, err
	})
}

func (b *Builder) extent(source *fork.Snapshot, flavour builds.Flavour) host.Extent {
	partial := len(source.Patches) > 0 && len(source.Patches) < len(b.Env.Series.Patches)
	switch {
	case b.First:
		return host.First
	case (partial || flavour != builds.Plain && flavour != builds.Coverage) && !b.AllSources:
		return host.Core
	}
	return host.Whole
}

// Subject names sources by the patches on them.
func (b *Builder) Subject(applied []string) string {
	var without []string
	for _, patch := range b.Env.Series.Patches {
		if !slices.Contains(applied, patch.Name) {
			without = append(without, patch.Name)
		}
	}
	switch {
	case len(without) == 0:
		return "patched"
	case len(applied) == 0:
		return "stock"
	}
	return "without " + strings.Join(without, ", ")
}

// Environment is what a process over the software Metal runs in: it aborts as Metal does, delays from the seed widen every
// window, and a blocked call that nothing can end any more is a deadlock after some seconds. With the whole series no wait may be
// committed before its signal (guard rule 4).
func Environment(tools *host.Root, seed uint64, whole bool) []string {
	waits := "MPSFORGE_METAL_CHECK_WAITS=0"
	if whole {
		waits = "MPSFORGE_METAL_CHECK_WAITS=1"
	}
	return append([]string{
		waits,
		fmt.Sprintf("MPSFORGE_METAL_SEED=%d", seed), "MPSFORGE_METAL_MAX_DELAY_US=100", "MPSFORGE_METAL_ON_VIOLATION=abort", "MPSFORGE_METAL_WATCHDOG_MS=20000",
		// Apple's words say that a graph "might" commit while it is encoded; whether it does is drawn for each.
		"MPSFORGE_METAL_GRAPH_SPLIT=seed",
		"PYTORCH_ENABLE_MPS_FALLBACK=0",
	}, Sanitizers(tools)...)
}

// Sanitizers are the settings of the sanitizers and of libtorch's own libraries.
func Sanitizers(tools *host.Root) []string {
	symbolizer := " external_symbolizer_path=" + tools.Tool("llvm-symbolizer")
	return []string{
		// Debian's libtorch brings UCX, which catches the signals of crashes otherwise.
		"UCX_ERROR_SIGNALS=SIGBUS", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
		"TSAN_OPTIONS=exitcode=66 report_thread_leaks=0 report_signal_unsafe=0 history_size=4" + symbolizer,
		"ASAN_OPTIONS=exitcode=67 detect_leaks=0" + symbolizer,
	}
}
