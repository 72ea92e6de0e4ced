package overlay

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/mac"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// MacOptions say of what a wheel for macOS is made.
type MacOptions struct {
	Series   *patches.Series
	Root     *host.Root   // nil on a Mac, whose own tools are used
	Checkout string       // patched
	Identity builds.Stamp // as host.Options has it
	Jobs     int
	Cache    string
	Part     string // as Options has it
	Dir      string // for the wheel
	// Plan, unless nil, is given each command of a compiler and linker in the place of running it, and there is no wheel.
	Plan func(command run.Command)
}

// notRun is in the description of a wheel for macOS.
const notRun = "It was linked with PyTorch's wheel, and not run on a Mac.\n\n"

// WriteMac compiles the backend for arm64 macOS, makes a wheel over PyTorch's own wheel of that version, and says what of the library was
// checked. The same sources give the same bytes.
func WriteMac(ctx context.Context, o MacOptions, sink events.Sink) (file string, stamp Stamp, checked []string, err error) {
	facts, err := o.Series.MacFacts()
	if err != nil {
		return "", stamp, nil, err
	}
	classes, err := o.Series.HostFacts()
	if err != nil {
		return "", stamp, nil, err
	}
	if o.Checkout, err = filepath.Abs(o.Checkout); err != nil {
		return "", stamp, nil, err
	}
	kit, err := mac.Open(ctx, o.Root, o.Cache, facts, sink)
	if err != nil {
		return "", stamp, nil, err
	}
	defer kit.Close()
	if err := kit.CheckFmt(ctx, o.Checkout); err != nil {
		return "", stamp, nil, err
	}
	kit.Plan = o.Plan
	build := o.Identity
	build.Format, build.Flavour, build.Torch = builds.StampFormat, builds.Plain, wheels.Wheel(facts.Wheel).Name()
	if build.Sources, err = builds.SourcesDigest(o.Checkout); err != nil {
		return "", stamp, nil, err
	}
	tree := mac.Tree{Subject: "overlay", Dir: o.Checkout}
	if tree.Sources, err = mac.Sources(o.Checkout, classes, facts); err != nil {
		return "", stamp, nil, err
	}
	if tree.Generated, err = host.Registration(ctx, kit.Root, o.Checkout, o.Cache, sink); err != nil {
		return "", stamp, nil, err
	}
	library, err := kit.Overlay(ctx, tree, facts, build, o.Jobs, sink)
	if err != nil || o.Plan != nil {
		return "", stamp, nil, err
	}
	if checked, err = kit.CheckOverlay(library, o.Checkout); err != nil {
		return "", stamp, nil, err
	}
	if stamp, err = overWheel(o.Series.Baseline.Name, facts, kit.Stock()); err != nil {
		return "", stamp, nil, err
	}
	platform := "macosx_" + strings.ReplaceAll(kit.Minimum, ".", "_") + "_arm64"
	file, stamp, err = contents{stamp, library.Stamp, library.File, platform, notRun, o.Checkout, o.Part}.write(o.Dir)
	return file, stamp, checked, err
}

// overWheel is the stamp of an overlay over PyTorch's wheels of a version, one of which has the library stock.
func overWheel(baseline string, facts patches.MacFacts, stock string) (Stamp, error) {
	stamp := Stamp{Torch: strings.TrimPrefix(baseline, "v"), Git: facts.Git, Stock: filepath.Base(stock), StockSHA256: strings.Join(facts.LibtorchCPU, " ")}
	sum, err := builds.FileSHA256(stock)
	if err != nil {
		return stamp, fmt.Errorf("the library to go over: %w", err)
	}
	if stamp.Git == "" || !slices.Contains(facts.LibtorchCPU, sum) {
		return stamp, fmt.Errorf("mac.json of %s does not name the wheel's git_version and %s of its %s: %q, %q", baseline, sum, stamp.Stock, stamp.Git,
			facts.LibtorchCPU)
	}
	return stamp, nil
}
