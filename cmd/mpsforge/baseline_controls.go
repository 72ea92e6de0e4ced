package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/events"
	"mpsforge/patches"
	"mpsforge/validate"
)

func baselineControls(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "baseline", name: "controls", usage: "show what makes each check fail", ui: workUI, logs: true,
		about: `A check that passes shows something only if it can fail. For each scenario of the stage runtime and each test of the stage python this
shows what makes it fail: stock sources, a patch that is left out, a mutant, or a control: a fault that was chosen for it. The controls are
in controls.json beside the series. People write there what to plant and which checks must fail with it.

--judge puts one after the other on the checkout, which must hold the whole series and nothing else, runs those checks, takes it off again,
and writes how they ended. It takes minutes for each. lint warns of checks that did not fail, and when the series has changed.

  mpsforge baseline controls
  mpsforge baseline controls --patches ./patches --checkout pytorch --judge all                those that were never planted
  mpsforge baseline controls --patches ./patches --checkout pytorch --judge no-order           this one again`,
		flags: append([]cli.Flag{
			&cli.StringFlag{Name: "judge", Usage: "plant these `CONTROLS`, separated by commas, or all that were not planted yet"},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` for the random choices of the stages (default: 7)"},
			&cli.StringFlag{Name: "baseline", Usage: "`NAME` of the baseline (default: what the checkout is, or " + patches.DefaultBaseline +
				"; to show: all)"}, checkoutFlag(), patchesFlag()}, hostFlags()...),
		action: func(ctx context.Context, c call) (result, error) {
			if c.IsSet("judge") {
				return c.judgeControls(ctx)
			}
			return c.showControls()
		},
	})
}

// judgeControls plants those that the command line names, one after the other, and writes at once how the checks of each ended.
func (c call) judgeControls(ctx context.Context) (result, error) {
	if err := c.needsFolder("controls", patches.ControlsFile); err != nil {
		return result{}, err
	}
	options, err := c.judgeOptions(ctx)
	if err != nil {
		return result{}, err
	}
	defer options.Checkout.Close()
	files, err := c.seriesFiles()
	if err != nil {
		return result{}, err
	}
	baseline := options.Series.Baseline.Name
	table, err := patches.ReadControls(files, baseline)
	if err != nil {
		return result{}, fmt.Errorf("read the controls of %s: %w", baseline, err)
	}
	names := list(c.String("judge"))
	if slices.Equal(names, []string{patches.AllPatches}) {
		names = table.Names(func(one patches.Control) bool { return one.Seen == nil })
	}
	for i, name := range names {
		control, err := table.Control(name)
		if err != nil {
			return result{}, usagef("--judge: %v", err)
		}
		c.sink.Emit(events.Message{Level: events.Info, Text: fmt.Sprintf("%s, %d of %d: %s", name, i+1, len(names), control.Fault)})
		if control.Seen, err = validate.JudgeControl(ctx, options, *control, c.sink); err != nil {
			return result{}, err
		}
		if err := c.write(baseline, patches.ControlsFile, table); err != nil {
			return result{}, err
		}
		for _, check := range control.Checks {
			c.sink.Emit(events.Message{Level: events.Info, Text: fmt.Sprintf("%s: %s %s", name, check,
				map[bool]string{true: "fails", false: "PASSES"}[control.SeenToFail(check)])})
		}
	}
	return c.showControls()
}

// shownControls is what baseline controls shows of one baseline.
type shownControls struct {
	*patches.ControlsResult
	Checks []validate.CheckControl `json:"checks"`
}

// showControls prints what shows of each check that it can fail. A baseline without controls is not asked for any.
func (c call) showControls() (result, error) {
	shown, _, err := showRecords(c, controlsOf, shownControls.count, func(w io.Writer, found shownControls) {
		fmt.Fprintf(w, "%s: %s\n", found.Baseline, found.count())
		for _, check := range found.Checks {
			fmt.Fprintf(w, "  %-40s %s\n", check.Check, cmp.Or(check.Control, "nothing has shown that it can fail"))
		}
		for _, control := range found.Controls.Controls {
			fmt.Fprintf(w, "%s: %s (%s)\n", control.Name, control.Fault, control.Path)
		}
		printFindings(w, found.Findings, true)
	})
	return shown, err
}

// count says how many of the checks have nothing that shows that they can fail.
func (s shownControls) count() string {
	without := 0
	for _, check := range s.Checks {
		if check.Control == "" {
			without++
		}
	}
	return fmt.Sprintf("checks: %d, of which nothing has shown that they can fail: %d; controls: %d", len(s.Checks), without, len(s.Controls.Controls))
}

// controlsOf reads what is recorded of a baseline.
func controlsOf(files fs.FS, baseline string) (shown shownControls, err error) {
	if shown.ControlsResult, err = patches.LintControls(files, baseline); err != nil {
		return shown, err
	}
	ablation, err := patches.ReadAblation(files, baseline)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return shown, err
	}
	mutants, err := patches.ReadMutants(files, baseline)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return shown, err
	}
	shown.Checks = validate.CheckControls(ablation, mutants, shown.Controls)
	return shown, nil
}
