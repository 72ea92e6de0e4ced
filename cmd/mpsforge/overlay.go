package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/overlay"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/native"
	"mpsforge/patches"
)

func overlayCommand(std streams) *cli.Command {
	return &cli.Command{
		Name: "overlay", Usage: "give an installed torch the patched MPS backend", HideHelpCommand: true,
		Description: `  mpsforge overlay build --baseline v2.6.0 --checkout pytorch --out dist
  mpsforge overlay status --python venv/bin/python3
  mpsforge overlay compare mpsforge-selftest.json`,
		Action:      showGroup,
		Subcommands: []*cli.Command{overlayBuild(std), overlayStatus(std), overlayCompare(std)},
	}
}

func overlayBuild(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "overlay", name: "build", usage: "make a wheel with the patched backend", ui: workUI, logs: true,
		about: `Compiles the checkout's MPS backend and makes a wheel of it; PyTorch itself is not built. Once that wheel is installed beside torch,
device mps is the patched backend; once it is uninstalled, device mps is torch's own backend again. The wheel works with one version of
torch, the one that it was built for, and with any Python; with another torch it warns and changes nothing. A process with
MPSFORGE_OVERLAY=0 in its environment uses torch's own backend.

A wheel for Linux is for the host build of the stock sources ("mpsforge build --host"). A wheel for macOS is for PyTorch's own wheels
for Apple silicon, with any Python. On a Mac it is made with Apple's command line tools (xcode-select --install), on Linux with clang,
zig's headers and lld; what is compiled, how, and what is checked of the library are the same. Neither has been run on a Mac yet.

--dry-run prints the commands of the compiler and the linker. For that it fetches PyTorch's wheel for macOS and runs torchgen, and
compiles nothing.

The checkout must have the whole series, or the patches up to the end of a part. With the part fixes there are no streams: threads are safe and
take turns. With the part streams copies between the CPU and the GPU are as in stock, and nothing says that the GPU has failed.

  mpsforge overlay build --platform macos --out dist           for pip's torch on a Mac, of the release in ./pytorch
  mpsforge overlay build --platform macos --dry-run
  mpsforge overlay build --checkout pt26 --out dist            on Linux, for a host build of ./pt26
  mpsforge apply --part fixes --checkout pytorch && mpsforge overlay build --checkout pytorch --out dist-fixes`,
		flags: checkoutFlags(hostFlags(&cli.StringFlag{Name: "out", Value: ".", Usage: "`DIR` for the wheel"},
			&cli.StringFlag{Name: "platform", Usage: "what the wheel is for, `NAME`: " + strings.Join(overlayPlatforms, " or ") +
				" (default: this system)"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the commands for a wheel for macOS, and make none"})...),
		action: func(ctx context.Context, c call) (result, error) {
			switch platform := cmp.Or(c.String("platform"), map[string]string{"darwin": "macos"}[runtime.GOOS], "linux"); platform {
			case "macos":
				return c.buildOverlayForMac(ctx)
			case "linux":
				if c.Bool("dry-run") {
					return result{}, usagef("--dry-run is for --platform macos")
				}
				return c.buildOverlay(ctx)
			default:
				return result{}, usagef("--platform %s: use one of %s", platform, strings.Join(overlayPlatforms, ", "))
			}
		},
	})
}

var overlayPlatforms = []string{"linux", "macos"}

// buildOverlayForMac makes a wheel over PyTorch's own.
func (c call) buildOverlayForMac(ctx context.Context) (result, error) {
	if c.IsSet("torch") {
		return result{}, usagef("--torch is for Linux; a wheel for macOS is always for PyTorch's own wheel")
	}
	if runtime.GOOS == "darwin" && c.IsSet("root") {
		return result{}, usagef("--root is for Linux; on a Mac the tools are Apple's")
	}
	cache, err := openCache()
	if err != nil {
		return result{}, err
	}
	o := overlay.MacOptions{Checkout: c.String("checkout"), Jobs: c.Int("jobs"), Cache: cache, Dir: c.String("out")}
	if o.Identity, _, o.Series, err = c.identity(ctx); err != nil {
		return result{}, err
	}
	if o.Identity.Series, o.Part, err = overlayPart(o.Checkout, o.Identity, o.Series); err != nil {
		return result{}, err
	}
	if runtime.GOOS != "darwin" {
		if o.Root, err = host.OpenRoot(ctx, c.String("root"), cache, c.sink); err != nil {
			return result{}, err
		}
	}
	if c.Bool("dry-run") {
		return planOverlayForMac(ctx, o, c.sink)
	}
	wheel, stamp, checked, err := overlay.WriteMac(ctx, o, c.sink)
	if err != nil {
		return result{}, fmt.Errorf("overlay: %w", err)
	}
	found, err := overlayResult(wheel, "pip's torch", stamp, append(checked, "not run: this needs a Mac"))
	where, file := "on the Mac", filepath.Base(wheel)
	if runtime.GOOS == "darwin" {
		where, file = "here", wheel
	}
	found.next = fmt.Sprintf("%s, python3 -m pip install torch==%s %s && python3 -m mpsforge_overlay", where, stamp.Torch, file)
	return found, err
}

// planOverlayForMac gives the commands, and runs none.
func planOverlayForMac(ctx context.Context, o overlay.MacOptions, sink events.Sink) (result, error) {
	type command struct {
		Dir  string   `json:"dir"`
		Argv []string `json:"argv"`
	}
	commands := []command{}
	var lines []string
	o.Plan = func(planned run.Command) {
		commands = append(commands, command{planned.Dir, append([]string{planned.Name}, planned.Args...)})
		lines = append(lines, "cd "+run.Command{Name: planned.Dir}.String()+" && "+planned.String())
	}
	if _, _, _, err := overlay.WriteMac(ctx, o, sink); err != nil {
		return result{}, fmt.Errorf("overlay: %w", err)
	}
	value := struct {
		Commands []command `json:"commands"`
	}{commands}
	return result{value: value, message: fmt.Sprintf("commands: %d, run: 0", len(commands)), text: func(w io.Writer) {
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	}}, nil
}

// overlayPart refuses a checkout whose patches are neither the whole series nor parts of it, for which an overlay has bindings, and gives the
// digest of those that it has, and the last part's name unless it is the whole.
func overlayPart(checkout string, identity builds.Stamp, series *patches.Series) (digest, name string, err error) {
	part, name := series.Applied(identity.Patches)
	if !slices.Equal(identity.Patches, part.Names()) {
		return "", "", usagef("the checkout %s has %d of the series' %d patches, and an overlay takes all or those up to the end of a part: "+
			"mpsforge apply, or mpsforge apply --part NAME, puts them on", checkout, len(identity.Patches), len(series.Patches))
	}
	return part.Digest(), name, nil
}

func (c call) buildOverlay(ctx context.Context) (result, error) {
	options, series, err := c.hostOptions(ctx)
	if err != nil {
		return result{}, err
	}
	o := overlay.Options{Checkout: options.Checkout, Dir: c.String("out"), TorchVersion: options.Torch.VersionFile()}
	if options.Identity.Series, o.Part, err = overlayPart(options.Checkout, options.Identity, series); err != nil {
		return result{}, err
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
	return overlayResult(wheel, o.Stock.Python, stamp, nil)
}

// overlayResult is a wheel over the torch of a Python, and what of it was checked.
func overlayResult(wheel, over string, stamp overlay.Stamp, checked []string) (result, error) {
	wheel, err := filepath.Abs(wheel)
	if err != nil {
		return result{}, err
	}
	value := struct {
		Wheel   string        `json:"wheel"`
		Over    string        `json:"over"` // a Python with the torch that it goes over
		Stamp   overlay.Stamp `json:"stamp"`
		Checked []string      `json:"checked,omitempty"`
	}{wheel, over, stamp, checked}
	return result{value: value, message: "wheel " + wheel, text: func(w io.Writer) {
		fmt.Fprintf(w, "wheel    %s\nfor      torch %s, commit %s\nover     %s of %s\nseries   %s\n", wheel, stamp.Torch, stamp.Git, stamp.Stock, over,
			stamp.Series)
		for _, line := range checked {
			fmt.Fprintf(w, "checked  %s\n", line)
		}
	}}, nil
}

func overlayStatus(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "overlay", name: "status", usage: "show which MPS backend a Python uses",
		about: `Starts that Python and looks at what is in use there: hooks, allocator, device guard, fallback, the library of each registered
kernel, symbol pointers. The exit code is 1 if torch's own copy answers.

  mpsforge overlay status --python venv/bin/python3
  venv/bin/python3 -m mpsforge_overlay                  the same, without mpsforge`,
		flags: []cli.Flag{&cli.StringFlag{Name: "python", Value: "python3", Usage: "the `INTERPRETER` to start"}},
		action: func(ctx context.Context, c call) (result, error) {
			ran, err := run.Command{Name: c.String("python"), Args: []string{"-m", overlay.Module}, Dir: "."}.Run(ctx)
			if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
				return result{}, usagef("--python %s: there is no such program; name a Python that has the wheel", c.String("python"))
			}
			found, broken := overlay.ReadStatus(ran.Stdout)
			if broken != nil {
				return result{}, fmt.Errorf("%s has no working %s; install an overlay's wheel into it, or name another --python: %w",
					c.String("python"), overlay.Module, cmp.Or(err, broken))
			}
			if !found.Active {
				err = fmt.Errorf("torch's own copy of the backend is in use: %s", found.Why())
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
	fmt.Fprintf(w, "library    %s\nseries     %s\nhooks      %s\nallocator  %s\nguard      %s\nfallback   %s\n", s.Library, s.Stamp.Series, s.Hooks,
		s.Allocator, s.Guard, s.Fallback)
	for _, key := range slices.Sorted(maps.Keys(s.Kernels)) {
		for _, library := range slices.Sorted(maps.Keys(s.Kernels[key])) {
			fmt.Fprintf(w, "kernels    %s: %d in %s\n", key, s.Kernels[key][library], library)
		}
	}
	fmt.Fprintf(w, "patches    %s\n", strings.Join(s.Patches, ", "))
	for _, image := range slices.Sorted(maps.Keys(s.Rebound)) {
		fmt.Fprintf(w, "pointers   %d of %s lead to the overlay\n", s.Rebound[image], image)
	}
}
