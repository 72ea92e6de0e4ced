package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/suggest"
	"mpsforge/native"
	"mpsforge/patches"
)

func buildCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "build", usage: "build PyTorch, or with --host its MPS backend for Linux", ui: workUI, logs: true,
		about: `Builds the checkout into a wheel, with the MPS backend on a Mac and for the CPU on Linux, and installs it into a Python
environment of its own, which "mpsforge shell" opens. The environment and the commands are fixed; --dry-run shows them. Finished
steps are not repeated: after Ctrl-C, a full disk or a fixed error the same command continues.

  mpsforge build --dry-run                              checks, the environment and the commands; runs nothing
  mpsforge build                                        the checkout in ./pytorch
  mpsforge build --mps-only                             only the MPS backend's changed files, and libtorch_cpu linked again
  mpsforge build --target c10                           one target of ninja's; no wheel
  mpsforge build --set USE_KINETO=0 --launcher sccache  another setting; another compiler cache
  mpsforge build --show-stamp FILE                      from what a library or a wheel was built

ccache or sccache is used when it is on the path. Their own settings (CCACHE_..., SCCACHE_..., the configuration files in
your home) are passed on, so sccache's shared and distributed modes work as its documentation says.

With --host, on Linux: compiles the checkout's real MPS sources, stock or patched, unchanged, against the software
Metal and a libtorch of the same version. The result is a library that registers the backend for the MPS dispatch key
when it is loaded, a program that runs scenarios with it, and a stamp inside the library that says from which tree and
series it came. The compiler and PyTorch 2.6.0's libtorch come from Debian trixie's packages, unpacked into the cache
(380 MB to download, 2.1 GB on disk, no privileges needed); compiled objects are kept there too. For v2.9.1 libtorch is
PyTorch's CPU wheel from its own index, or PyPI's (900 MB, a third of it kept), whose CUDA is left out.

The result also has a script python3. The Python that it starts has torch with device mps: the checkout's own bindings
(torch/csrc/mps) replace the prebuilt ones, and torch.mps is the checkout's package. Programs need no change.

  mpsforge build --host                                 the checkout in ./pytorch
  mpsforge build --host --flavour tsan                  with ThreadSanitizer
  mpsforge build --host --torch DIR                     another libtorch: a folder that pip install --target filled
  mpsforge build --host --root /                        this system's own packages; it must be Debian trixie`,
		flags: checkoutFlags(append(pyTorchFlags(), hostFlags(
			&cli.BoolFlag{Name: "host", Usage: "build for this Linux machine, over the software Metal"},
			&cli.StringFlag{Name: "flavour", Value: string(builds.Plain), Usage: "with --host, `NAME`: " + flavourNames()})...)...),
		action: func(ctx context.Context, c call) (result, error) { return c.build(ctx) },
	})
}

// hostFlags say with what a host build is made.
func hostFlags(more ...cli.Flag) []cli.Flag {
	return append(more,
		&cli.StringFlag{Name: "torch", EnvVars: []string{"MPSFORGE_TORCH"},
			Usage: "`DIR` with torch/ in it: libtorch of the checkout's version (default: Debian's for 2.6.0, PyTorch's wheel for v2.9.1)"},
		rootFlag(),
		&cli.IntFlag{Name: "jobs", Aliases: []string{"j"},
			Usage: "run `N` compilers at once (default: one for each processor; for PyTorch itself fewer where memory is short)"})
}

func rootFlag() cli.Flag {
	return &cli.StringFlag{Name: "root", EnvVars: []string{"MPSFORGE_ROOT"}, Usage: "root `DIR` of a Debian trixie system (default: one made in the cache)"}
}

func flavourNames() string {
	var names []string
	for _, flavour := range builds.Flavours() {
		names = append(names, string(flavour))
	}
	return strings.Join(names, ", ")
}

// flavours reads names of flavours.
func flavours(names []string) ([]builds.Flavour, error) {
	var known []builds.Flavour
	for _, name := range names {
		if !slices.Contains(builds.Flavours(), builds.Flavour(name)) {
			return nil, usagef("there is no flavour %q%s", name, suggest.Names(name, strings.Split(flavourNames(), ", ")))
		}
		known = append(known, builds.Flavour(name))
	}
	return known, nil
}

func (c call) build(ctx context.Context) (result, error) {
	switch {
	case c.String("show-stamp") != "":
		return showStamp(c.String("show-stamp"))
	case c.Bool("host"):
		for _, name := range pyTorchFlagNames {
			if c.IsSet(name) {
				return result{}, usagef("--%s is for the build of PyTorch: leave it out with --host", name)
			}
		}
		return c.buildHost(ctx)
	}
	for _, name := range []string{"flavour", "torch", "root"} {
		if c.IsSet(name) && !c.fromEnvironment(name) {
			return result{}, usagef("--%s needs --host", name)
		}
	}
	return c.buildPyTorch(ctx)
}

// identity is what the checkout says of itself, for a stamp.
func (c call) identity(ctx context.Context) (builds.Stamp, string, *patches.Series, error) {
	checkout, series, err := c.openCheckout(ctx)
	if err != nil {
		return builds.Stamp{}, "", nil, err
	}
	defer checkout.Close()
	status, err := checkout.Status(ctx, series)
	if err != nil {
		return builds.Stamp{}, "", nil, err
	}
	identity := builds.Stamp{Baseline: checkout.Baseline(), Patches: status.Applied()}
	if identity.Commit, identity.Tree, err = checkout.Head(ctx); err != nil {
		return builds.Stamp{}, "", nil, err
	}
	if len(identity.Patches) == len(series.Patches) {
		identity.Series = series.Digest()
	}
	if !c.Bool("host") {
		identity.Changes, err = checkout.Changes(ctx)
	}
	return identity, checkout.Dir(), series, err
}

// hostOptions are those of a host build of the checkout.
func (c call) hostOptions(ctx context.Context) (options host.Options, series *patches.Series, err error) {
	cache, err := openCache()
	if err != nil {
		return options, nil, err
	}
	options = host.Options{Checkout: c.String("checkout"), Flavour: builds.Plain, Jobs: c.Int("jobs"), Cache: cache}
	if options.Native, options.Glue, err = native.HostBuildSources(); err != nil {
		return options, nil, err
	}
	if options.Identity, _, series, err = c.identity(ctx); err != nil {
		return options, nil, err
	}
	if options.Root, err = host.OpenRoot(ctx, c.String("root"), cache, c.sink); err != nil {
		return options, nil, err
	}
	if options.Facts, err = series.HostFacts(); err != nil {
		return options, nil, err
	}
	options.Torch, err = host.OpenTorch(ctx, options.Root, c.String("torch"), host.Libtorchs(options.Facts), cache, c.sink)
	return options, series, err
}

func (c call) buildHost(ctx context.Context) (result, error) {
	requested, err := flavours([]string{c.String("flavour")})
	if err != nil {
		return result{}, err
	}
	options, _, err := c.hostOptions(ctx)
	if err != nil {
		return result{}, err
	}
	options.Flavour = requested[0]
	built, err := host.Make(ctx, options, c.sink)
	if err != nil {
		return result{}, err
	}
	message := fmt.Sprintf("%s build in %s", built.Stamp.Flavour, built.Dir)
	return result{value: built, message: message, text: func(w io.Writer) {
		fmt.Fprintf(w, "library     %s\nmetal       %s\nscenarios   %s\npython      %s\n", built.Library, built.Metal, built.Driver,
			cmp.Or(built.Python, "none: "+built.NoPython))
		fmt.Fprintf(w, "kernels     %s\n", cmp.Or(built.NoShaders, fmt.Sprintf("%d of PyTorch's wheel for macOS", built.Shaders)))
		fmt.Fprintf(w, "from        %s, tree %s, patches: %s\n", cmp.Or(built.Stamp.Baseline, "unknown"), built.Stamp.Tree,
			cmp.Or(strings.Join(built.Stamp.Patches, ", "), "none (stock)"))
		fmt.Fprintf(w, "torch       %s\nsources     %d compiled, %d left out\noperators   %d registered, %d without a compiled kernel\n",
			built.Stamp.Torch, len(built.Compiled), len(built.Excluded), built.Kernels, len(built.Dropped))
	}, next: c.onCheckout("verify --stages python --quick")}, nil
}
