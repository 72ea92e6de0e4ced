package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/build"
	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/validate"
	"mpsforge/validate/stage"
)

func runCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "run", usage: "fetch, apply, build, verify and report in one go", ui: workUI, logs: true,
		about: `Steps that are done already are left out. The exit code is that of the first step that fails. On a Mac PyTorch is built
for the stages python and bench, which then test that build, unless --python names an environment that has it or --build=false
is given; elsewhere it is built only with --build.

  mpsforge run                                         PyTorch v2.9.1 in ./pytorch; Debian's 2.6.0 if GitHub cannot be reached
  mpsforge run --baseline v2.6.0 --checkout pt26       Debian's 2.6.0
  mpsforge run --dry-run                               the steps, where the source comes from, time and disk; does nothing
  mpsforge run --quick                                 run the short form of each stage
  mpsforge run --build                                 on Linux, too: build PyTorch, for the CPU`,
		flags: checkoutFlags(slices.Concat(fetchFlags(), verifyFlags(), settingFlags(), []cli.Flag{
			&cli.BoolFlag{Name: "build", Value: runtime.GOOS == "darwin", Usage: "build PyTorch before it is verified"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be done, with time and disk, and do nothing"}})...),
		action: func(ctx context.Context, c call) (result, error) {
			if c.IsSet("build") && c.Bool("build") && c.String("python") != "" {
				return result{}, usagef("--build makes an environment, and --python names another")
			}
			if _, err := c.verifyOptions(ctx); err != nil { // before a fetch and a build
				return result{}, err
			}
			if c.Bool("dry-run") {
				return c.planRun(ctx)
			}
			steps := []string{"apply"}
			if c.needsBuild() {
				steps = append(steps, "build")
			}
			c.sink.Emit(events.Pipeline{Steps: append(steps, validate.Steps(list(c.String("stages")))...)})
			if quicker := quickerWay(runtime.GOOS); quicker != "" && c.needsBuild() {
				c.sink.Emit(events.Message{Level: events.Info, Text: quicker})
			}
			if err := c.ensureCheckout(ctx); err != nil {
				return result{}, err
			}
			checkout, series, err := c.openCheckout(ctx)
			if err != nil {
				return result{}, err
			}
			_, err = checkout.Apply(ctx, series, fork.Options{}, c.sink)
			if err := errors.Join(err, checkout.Close()); err != nil {
				return result{}, err
			}
			if c.needsBuild() {
				if err := c.buildForVerify(ctx); err != nil {
					return result{}, err
				}
			}
			return c.verify(ctx)
		},
	})
}

// quickerWay is what a user of a system can have without a build, if anything.
func quickerWay(system string) string {
	if system != "darwin" {
		return ""
	}
	return "a build of PyTorch takes hours; a wheel over pip's torch takes minutes: mpsforge overlay build --platform macos"
}

// needsBuild reports whether to build: where that was asked for, else, on a Mac, when a stage is to run on the result.
func (c call) needsBuild() bool {
	if c.String("python") != "" {
		return false
	}
	if c.IsSet("build") {
		return c.Bool("build")
	}
	return c.Bool("build") && validate.Need(list(c.String("stages")), stage.NeedsTorch)
}

// buildForVerify builds PyTorch and has it verified.
func (c call) buildForVerify(ctx context.Context) error {
	plan, identity, err := c.preparePyTorch(ctx)
	if err != nil {
		return err
	}
	built, err := build.PyTorch(ctx, plan, identity, version(), c.sink)
	if err != nil {
		return err
	}
	if !built.MPS {
		// The Python parallel tests need device mps; on Linux they have it through the host build.
		c.sink.Emit(events.Message{Level: events.Info, Text: fmt.Sprintf("the built torch has no MPS backend; mpsforge shell opens its environment: %s",
			built.Python)})
		return nil
	}
	return c.Set("python", built.Python)
}

// ensureCheckout fetches unless the checkout is there. A fetch that was cut off is taken up again, and one with --from finds out by
// itself whether there is something to do.
func (c call) ensureCheckout(ctx context.Context) error {
	if c.String("from") != "" {
		_, err := c.fetch(ctx)
		return err
	}
	ready, err := c.checkoutReady(ctx)
	if err != nil || ready {
		return err
	}
	_, err = c.fetch(ctx)
	return err
}

// checkoutReady reports whether the checkout is there, and no fetch of it was cut off.
func (c call) checkoutReady(ctx context.Context) (bool, error) {
	checkout, err := fork.Open(ctx, c.String("checkout"), nil)
	if isMissing(err) || errors.Is(err, fork.ErrInterrupted) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return checkout.Ready(), checkout.Close()
}

// planRun says what run would do. Times are those that README has: of two cores, without downloads.
func (c call) planRun(ctx context.Context) (result, error) {
	type step struct {
		Name string `json:"name"`
		What string `json:"what"`
	}
	there, err := c.checkoutReady(ctx)
	if err != nil {
		return result{}, err
	}
	fetch := "PyTorch's repository at GitHub; where that cannot be reached, Debian's source package of 2.6.0, 30 MB"
	switch {
	case there:
		fetch = c.String("checkout") + " is there: left out"
	case c.String("from") != "":
		fetch = "from " + c.String("from")
	case c.String("baseline") == host.DebianBaseline:
		fetch = "Debian's source package, 30 MB"
	}
	steps := []step{{"fetch", fetch}, {"apply", "the series onto " + c.String("checkout") + ", in seconds; nothing if it is there"}}
	if c.needsBuild() {
		steps = append(steps, step{"build", "PyTorch, for hours and tens of GB of disk (not measured)"})
	}
	stages := strings.ReplaceAll(strings.Join(validate.Steps(list(c.String("stages"))), ", "), "verify ", "")
	verify := "20 minutes on two cores in the short form, 5 GB in the cache; 380 MB of Debian's packages the first time"
	if !c.Bool("quick") {
		verify = "hours on two cores in the long form (--quick is 20 minutes), 5 GB in the cache; 380 MB of Debian's packages the first time"
	}
	if runtime.GOOS == "darwin" {
		verify = "the stages that a Mac can run (not measured)"
	}
	steps = append(steps, step{"verify", stages + ": " + verify})
	value := struct {
		Steps []step `json:"steps"`
	}{steps}
	return result{value: value, message: fmt.Sprintf("steps: %d, done: 0", len(steps)), text: func(w io.Writer) {
		for _, one := range steps {
			for i, line := range words.Wrap(one.What, c.std.width()-9) {
				name := ""
				if i == 0 {
					name = one.Name
				}
				fmt.Fprintf(w, "%-8s %s\n", name, line)
			}
		}
	}}, nil
}
