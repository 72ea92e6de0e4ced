package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork/builds"
	"mpsforge/fork/macos/build"
	"mpsforge/internal/suggest"
)

// pyTorchFlagNames are the flags of pyTorchFlags.
var pyTorchFlagNames = []string{"dry-run", "target", "mps-only", "launcher", "set", "venv", "no-venv", "python", "show-stamp"}

// pyTorchFlags say how PyTorch itself is built.
func pyTorchFlags() []cli.Flag {
	return append(settingFlags(),
		&cli.BoolFlag{Name: "dry-run", Usage: "check, print the environment and the commands, and run nothing"},
		&cli.StringSliceFlag{Name: "target", Usage: "build only ninja's `TARGET`, such as torch_cpu, and no wheel; may be repeated"},
		&cli.BoolFlag{Name: "mps-only", Usage: "build torch_cpu only, and refuse if more than the MPS backend has changed; no wheel"},
		&cli.BoolFlag{Name: "no-venv", Usage: "use the Python as it is and install nothing"},
		&cli.StringFlag{Name: "python", Usage: "build for the Python `FILE` (default: python3 of the path)"},
		&cli.StringFlag{Name: "show-stamp", Usage: "print the stamp in `FILE`, a library or a wheel, and build nothing"})
}

// settingFlags change how a build is made, not what is built.
func settingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "launcher", Usage: "run compilers through `NAME`: ccache, sccache, a path, or none (default: ccache or sccache, if installed)"},
		&cli.StringSliceFlag{Name: "set", Usage: "set `NAME=VALUE` in the build's environment; may be repeated"},
		venvFlag("make the Python environment in `DIR`"),
	}
}

func venvFlag(about string) cli.Flag {
	return &cli.StringFlag{Name: "venv", EnvVars: []string{"MPSFORGE_VENV"}, Usage: about + " (default: build/mpsforge/venv in the checkout)"}
}

// fromEnvironment reports that a flag was set by its variable, not on the command line.
func (c call) fromEnvironment(name string) bool {
	for _, flag := range c.Command.Flags {
		if flag, ok := flag.(*cli.StringFlag); ok && flag.Name == name {
			for _, variable := range flag.EnvVars {
				if value := os.Getenv(variable); value != "" && value == c.String(name) {
					return true
				}
			}
		}
	}
	return false
}

func showStamp(file string) (result, error) {
	stamp, err := build.ReadStamp(file)
	if err != nil {
		return result{}, err
	}
	return result{value: stamp, text: func(w io.Writer) { printJSON(w, stamp) }}, nil
}

// checkPyTorchFlags refuses what contradicts itself, before anything is looked at.
func (c call) checkPyTorchFlags() error {
	for _, entry := range c.StringSlice("set") {
		if name, _, found := strings.Cut(entry, "="); !found || name == "" {
			return usagef("--set %q is not NAME=VALUE", entry)
		}
	}
	switch {
	case c.Bool("mps-only") && len(c.StringSlice("target")) > 0:
		return usagef("--mps-only chooses the target: leave --target out")
	case c.Bool("no-venv") && c.IsSet("venv") && !c.fromEnvironment("venv"):
		return usagef("--venv and --no-venv exclude each other")
	}
	return c.checkPrograms("python")
}

// pyTorchPlan makes the plan for the checkout in dir.
func (c call) pyTorchPlan(ctx context.Context, dir string) (build.Plan, error) {
	recipe, err := build.ReadRecipe(dir)
	if err != nil {
		return build.Plan{}, err
	}
	launcher := c.String("launcher")
	switch launcher {
	case "", "none", "ccache", "sccache":
	default:
		path, err := exec.LookPath(launcher)
		if err != nil {
			return build.Plan{}, fmt.Errorf("%w: --launcher: %w%s", builds.ErrEnvironment, err, suggest.Meant(launcher, []string{"ccache", "sccache", "none"}))
		}
		if launcher, err = filepath.Abs(path); err != nil {
			return build.Plan{}, err
		}
	}
	options := build.PlanOptions{Jobs: c.Int("jobs"), Launcher: launcher, Targets: c.StringSlice("target"), MPSOnly: c.Bool("mps-only"),
		Set: c.StringSlice("set")}
	if !c.Bool("no-venv") {
		if options.Venv, err = c.venv(dir); err != nil {
			return build.Plan{}, err
		}
	}
	requested := map[string]string{"python3": c.String("python")}
	for _, entry := range options.Set {
		switch name, value, _ := strings.Cut(entry, "="); name {
		case "CC":
			requested["cc"] = value
		case "CXX":
			requested["c++"] = value
		}
	}
	machine, err := build.Probe(ctx, dir, requested)
	if err != nil {
		return build.Plan{}, err
	}
	return build.NewPlan(recipe, machine, options)
}

// venv is the Python environment of the checkout in dir.
func (c call) venv(dir string) (string, error) {
	return filepath.Abs(cmp.Or(c.String("venv"), build.DefaultVenv(dir)))
}

// preparePyTorch makes the plan for the checkout, and the stamp's part that is the checkout's.
func (c call) preparePyTorch(ctx context.Context) (build.Plan, builds.Stamp, error) {
	if err := c.checkPyTorchFlags(); err != nil {
		return build.Plan{}, builds.Stamp{}, err
	}
	identity, dir, _, err := c.identity(ctx)
	if err != nil {
		return build.Plan{}, builds.Stamp{}, err
	}
	plan, err := c.pyTorchPlan(ctx, dir)
	return plan, identity, err
}

func (c call) buildPyTorch(ctx context.Context) (result, error) {
	plan, identity, err := c.preparePyTorch(ctx)
	if err != nil {
		return result{}, err
	}
	if c.Bool("dry-run") {
		checks := plan.Preflight()
		shown := struct {
			Checks []build.Check `json:"checks"`
			Plan   build.Plan    `json:"plan"`
		}{checks, plan}
		return result{value: shown, text: func(w io.Writer) { writePlan(w, checks, plan) }}, build.Gaps(checks)
	}
	built, err := build.PyTorch(ctx, plan, identity, version(), c.sink)
	if err != nil {
		return result{}, err
	}
	targets := cmp.Or(strings.Join(built.Targets, ", "), "all")
	message := fmt.Sprintf("built %s, %d commands", targets, built.Compiled)
	next := ""
	if built.Torch != "" {
		next = c.onCheckout("shell")
	}
	return result{value: built, message: message, text: func(w io.Writer) {
		fmt.Fprintf(w, "target      %s, %d commands run\n", targets, built.Compiled)
		for _, library := range built.Libraries {
			fmt.Fprintf(w, "library     %s\n", library)
		}
		if built.Wheel != "" {
			fmt.Fprintf(w, "wheel       %s\n", built.Wheel)
		}
		if built.Torch != "" {
			fmt.Fprintf(w, "python      %s\ntorch       %s, MPS: %t\n", built.Python, built.Torch, built.MPS)
		}
		fmt.Fprintf(w, "from        %s, tree %s, patches: %s\nlog         %s\n", cmp.Or(built.Stamp.Baseline, "unknown"), built.Stamp.Tree,
			cmp.Or(strings.Join(built.Stamp.Patches, ", "), "none (stock)"), built.Log)
	}, next: next}, nil
}

// writePlan prints a plan as a script; what was checked is before it, as comments.
func writePlan(w io.Writer, checks []build.Check, plan build.Plan) {
	marks := map[build.State]string{build.Good: "✓", build.Advice: "!", build.Missing: "✗"}
	for _, check := range checks {
		fmt.Fprintf(w, "# %s %-20s %s\n", marks[check.State], check.Name, check.Found)
		if check.State != build.Good {
			fmt.Fprintf(w, "#   %-20s for %s; to fix it: %s\n", "", check.For, check.Fix)
		}
	}
	fmt.Fprintf(w, "\n%s", plan.Shell())
}
