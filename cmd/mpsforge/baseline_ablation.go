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

func baselineAblation(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "baseline", name: "ablation", usage: "record or show what notices a missing patch", argument: "[REPORT...]",
		about: `With reports of mpsforge verify --ablate it writes ablation.json below --patches: for each patch that was left out the scenarios that
noticed, by which signature, with the series' digest, form and seed. The checkout must be as it was verified, with the whole series and
nothing else; the reports must have the stage checkout. Rows of other patches stay. lint warns when the series has changed since, and
of patches that nothing notices.

Without reports it shows what is recorded.

  mpsforge baseline ablation
  mpsforge verify --stages checkout,runtime --ablate all --quick --seed 7 --patches ./patches --report ablation.json
  mpsforge baseline ablation --patches ./patches ablation.json`,
		flags: []cli.Flag{&cli.StringFlag{Name: "baseline",
			Usage: "`NAME` of the one baseline to show (default: all), or to record (default: what the checkout is)"}, checkoutFlag(), patchesFlag()},
		action: func(ctx context.Context, c call) (result, error) {
			if c.NArg() > 0 {
				if err := c.recordAblation(ctx); err != nil {
					return result{}, err
				}
			}
			return c.showAblation()
		},
	})
}

// recordAblation writes ablation.json from the reports that the command line names.
func (c call) recordAblation(ctx context.Context) error {
	from, err := c.toRecord(ctx, "baseline ablation")
	if err != nil {
		return err
	}
	defer from.checkout.Close()
	table, err := patches.ReadAblation(from.files, from.series.Baseline.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := validate.RecordAblation(&table, from.series, from.exact, from.reports); err != nil {
		return err
	}
	return c.write(from.series.Baseline.Name, patches.AblationFile, table)
}

// showAblation prints the tables, and what lint says of them.
func (c call) showAblation() (result, error) {
	count := func(found *patches.AblationResult) string {
		return fmt.Sprintf("patches that were left out: %d", len(found.Patches))
	}
	shown, _, err := showRecords(c, patches.LintAblation, count, func(w io.Writer, found *patches.AblationResult) {
		fmt.Fprintf(w, "%s: %s\n", found.Baseline, count(found))
		for _, p := range found.Patches {
			fmt.Fprintf(w, "%-24s %s, %s, %s, %s, seed %d: %s\n", p.Patch, p.Stage, p.Verdict, p.Date.Format("2006-01-02"), p.Form, p.Seed, p.Detail)
		}
		printFindings(w, found.Findings, true)
	})
	return shown, err
}
