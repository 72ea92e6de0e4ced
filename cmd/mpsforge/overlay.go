package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"mpsforge/fork/builds"
	"mpsforge/fork/host"
	"mpsforge/fork/overlay"
	"mpsforge/internal/run"
	"mpsforge/native"
)

func overlayCommand(std streams) *cli.Command {
	return &cli.Command{
		Name: "overlay", Usage: "put the patched MPS backend over an installed torch", HideHelpCommand: true,
		Description: `  mpsforge overlay build --baseline v2.6.0 --checkout pytorch --out dist
  mpsforge overlay status --python venv/bin/python3`,
		Action:      showGroup,
		Subcommands: []*cli.Command{overlayBuild(std), overlayStatus(std)},
	}
}

func overlayBuild(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "overlay", name: "build", usage: "make a wheel with the patched backend", ui: workUI,
		about: `Compiles the checkout's MPS backend and makes a wheel of it that needs no build of PyTorch: over an installed torch, device mps
is the patched backend, and without the wheel it is torch's own again. The wheel fits one torch, the one that it was built for, and any
Python; over another one it warns and changes nothing. MPSFORGE_OVERLAY=0 in the environment of a process leaves torch's own copy.

On Linux the torch that it goes over is the host build of the stock sources ("mpsforge build --host"). A wheel for macOS cannot be made
yet.

  mpsforge overlay build --baseline v2.6.0 --checkout pytorch --out dist`,
		flags: checkoutFlags(hostFlags(&cli.StringFlag{Name: "out", Value: ".", Usage: "`DIR` for the wheel"})...),
		action: func(ctx context.Context, c call) (result, error) {
			return c.buildOverlay(ctx)
		},
	})
}

func (c call) buildOverlay(ctx context.Context) (result, error) {
	options, series, err := c.hostOptions(ctx)
	if err != nil {
		return result{}, err
	}
	if len(options.Identity.Patches) == 0 {
		return result{}, usagef("the checkout %s has no patch of the series: mpsforge apply puts them on", options.Checkout)
	}
	checkout, _, err := c.openCheckout(ctx)
	if err != nil {
		return result{}, err
	}
	defer checkout.Close()
	snapshot, err := checkout.Stock(ctx, options.Cache)
	if err != nil {
		return result{}, err
	}
	stock := options
	stock.Checkout, stock.Subject = snapshot.Dir, "stock"
	stock.Identity = builds.Stamp{Baseline: series.Baseline.Name, Commit: snapshot.Commit, Tree: snapshot.Tree, Patches: []string{}}
	options.Subject = "overlay"
	if options.Overlay, err = native.OverlaySources(); err != nil {
		return result{}, err
	}
	o := overlay.Options{Checkout: options.Checkout, Dir: c.String("out"), TorchVersion: options.Torch.VersionFile()}
	if o.Stock, err = host.Make(ctx, stock, c.sink); err != nil {
		return result{}, err
	}
	if o.Patched, err = host.Make(ctx, options, c.sink); err != nil {
		return result{}, err
	}
	wheel, stamp, err := overlay.Write(o)
	if err != nil {
		return result{}, fmt.Errorf("overlay: %w", err)
	}
	if wheel, err = filepath.Abs(wheel); err != nil {
		return result{}, err
	}
	value := struct {
		Wheel string        `json:"wheel"`
		Over  string        `json:"over"` // a Python with the torch that it goes over
		Stamp overlay.Stamp `json:"stamp"`
	}{wheel, o.Stock.Python, stamp}
	return result{value: value, message: "wheel " + wheel, text: func(w io.Writer) {
		fmt.Fprintf(w, "wheel    %s\nfor      torch %s, commit %s\nover     %s of %s\nseries   %s\n", wheel, stamp.Torch, stamp.Git, stamp.Stock, value.Over, stamp.Series)
	}}, nil
}

func overlayStatus(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "overlay", name: "status", usage: "say which copy of the backend a Python has",
		about: `Asks a process of that Python, by what is in use there: hooks, allocator, device guard, fallback, the library of each registered
kernel, symbol pointers. The exit code is 1 if torch's own copy answers.

  mpsforge overlay status --python venv/bin/python3
  venv/bin/python3 -m mpsforge_overlay                  the same, without mpsforge`,
		flags: []cli.Flag{&cli.StringFlag{Name: "python", Value: "python3", Usage: "the `INTERPRETER` to ask"}},
		action: func(ctx context.Context, c call) (result, error) {
			ran, err := run.Command{Name: c.String("python"), Args: []string{"-m", overlay.Module}, Dir: "."}.Run(ctx)
			found, broken := overlay.ReadStatus(ran.Stdout)
			if broken != nil {
				return result{}, fmt.Errorf("%s has no %s that answers: %w", c.String("python"), overlay.Module, errors.Join(err, broken))
			}
			if !found.Active {
				err = fmt.Errorf("torch's own copy of the backend answers: %s", found.Why())
			}
			return result{value: found, text: func(w io.Writer) { writeOverlayStatus(w, found) }}, err
		},
	})
}

func writeOverlayStatus(w io.Writer, s overlay.Status) {
	fmt.Fprintf(w, "torch      %s, commit %s\n", s.Torch, s.Git)
	if s.Library == "" {
		return
	}
	fmt.Fprintf(w, "library    %s\nseries     %s\nhooks      %s\nallocator  %s\nguard      %s\nfallback   %s\n", s.Library, s.Stamp.Series, s.Hooks, s.Allocator, s.Guard, s.Fallback)
	for _, key := range slices.Sorted(maps.Keys(s.Kernels)) {
		for _, library := range slices.Sorted(maps.Keys(s.Kernels[key])) {
			fmt.Fprintf(w, "kernels    %s: %d in %s\n", key, s.Kernels[key][library], library)
		}
	}
	for _, image := range slices.Sorted(maps.Keys(s.Rebound)) {
		fmt.Fprintf(w, "pointers   %d of %s lead to the overlay\n", s.Rebound[image], image)
	}
}
