package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/urfave/cli/v2"

	"mpsforge/patches"
	"mpsforge/validate"
)

func baselineCoverage(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "baseline", name: "coverage", usage: "show which lines of the series have run", ui: workUI, logs: true,
		about: `A line that never ran was never tested. This shows which of the lines that the series adds outside its tests ran in the host build, under
the stages runtime, python and operators in their short form, as recorded in coverage.json beside the series.

--measure builds the checkout, which must hold the whole series and nothing else, with LLVM's counters, runs those stages and writes the
file. A line that has not run keeps the reason that people have written for it. lint warns where more than 3 of 100 lines have not run,
where one has no reason, and when the series has changed.

  mpsforge baseline coverage
  mpsforge baseline coverage --patches ./patches --checkout pytorch --measure`,
		flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "measure", Usage: "run the stages on the checkout, and write which lines ran"},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` for the random choices of the stages (default: 7)"},
			&cli.StringFlag{Name: "baseline", Usage: "`NAME` of the baseline (default: what the checkout is, or " + patches.DefaultBaseline +
				"; to show: all)"}, checkoutFlag(), patchesFlag()}, hostFlags()...),
		action: func(ctx context.Context, c call) (result, error) {
			if c.Bool("measure") {
				if err := c.measureCoverage(ctx); err != nil {
					return result{}, err
				}
			}
			return c.showCoverage()
		},
	})
}

// measureCoverage runs the stages, and writes which lines ran.
func (c call) measureCoverage(ctx context.Context) error {
	if err := c.needsFolder("coverage", patches.CoverageFile); err != nil {
		return err
	}
	options, err := c.judgeOptions(ctx)
	if err != nil {
		return err
	}
	defer options.Checkout.Close()
	files, err := c.seriesFiles()
	if err != nil {
		return err
	}
	baseline := options.Series.Baseline.Name
	earlier, err := patches.ReadCoverage(files, baseline)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the coverage of %s: %w", baseline, err)
	}
	covered, err := validate.Measure(ctx, options, c.sink)
	if err != nil {
		return err
	}
	covered.KeepReasons(earlier)
	return c.write(baseline, patches.CoverageFile, covered)
}

// showCoverage prints which lines have not run, and what lint says of it.
func (c call) showCoverage() (result, error) {
	shown, _, err := showRecords(c, patches.LintCoverage, (*patches.CoverageResult).Summary, func(w io.Writer, found *patches.CoverageResult) {
		fmt.Fprintf(w, "%s: %s\n", found.Baseline, found.Summary())
		for _, line := range found.Unrun {
			fmt.Fprintf(w, "  %s:%d: %s\n", line.Path, line.Line, line.Text)
			if line.Reason != "" {
				fmt.Fprintf(w, "      %s\n", line.Reason)
			}
		}
		printFindings(w, found.Findings, true)
	})
	return shown, err
}
