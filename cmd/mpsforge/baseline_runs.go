package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate"
)

func baselineRuns(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "baseline", name: "runs", usage: "record or show the last run of each stage", argument: "[REPORT...]",
		about: `With reports of mpsforge verify it writes runs.json below --patches: the last run of each stage on a real tree of the baseline,
with the series' digest, the tree, which of its files are exact, form, seed and how many checks passed. The checkout must be as it was
verified, with the whole series and nothing else; the reports must have the stage checkout. Several reports are recorded together: a
stage that is in all of them has one run for each. A stage that failed is recorded as failed, one that did not run with the reason.
lint warns when the series has changed since, and pr refuses.

Without reports it shows what is recorded. Runs are asked of v2.9.1, and of each other baseline whose folder has the file.

  mpsforge baseline runs
  mpsforge baseline runs --check                     exit code 4 unless every stage passed on the series as it is
  mpsforge verify --checkout pytorch --patches ./patches --report all.json
  mpsforge baseline runs --checkout pytorch --patches ./patches --excuse device all.json`,
		flags: []cli.Flag{&cli.BoolFlag{Name: "check", Usage: "end with exit code 4 unless every stage that is not excused passed on the series as it is"},
			&cli.StringFlag{Name: "excuse", Usage: "stages in `LIST` that cannot run there; they are recorded as not run, and pr does not ask for them"},
			&cli.StringFlag{Name: "baseline", Usage: "`NAME` of the one baseline to show (default: all), or to record (default: what the checkout is)"},
			checkoutFlag(), patchesFlag()},
		action: func(ctx context.Context, c call) (result, error) {
			if c.NArg() > 0 {
				if err := c.recordRuns(ctx); err != nil {
					return result{}, err
				}
			} else if c.IsSet("excuse") {
				return result{}, usagef("--excuse is for recording: name the reports of mpsforge verify")
			}
			return c.showRuns()
		},
	})
}

// toRecord is what a file in a baseline's folder is recorded from.
type toRecord struct {
	files    fs.FS // the folder of all series
	series   *patches.Series
	checkout *fork.Checkout // with exactly the series; the caller closes it
	exact    *fork.Exactness
	reports  []*reports.Report
}

// toRecord reads the reports that the command line names, and opens the checkout.
func (c call) toRecord(ctx context.Context, command string) (from toRecord, err error) {
	if c.String("patches") == "" {
		return from, usagef("to record reports %s needs --patches, the folder to write to", command)
	}
	for _, path := range c.Args().Slice() {
		if err := checkInput(command, path); err != nil {
			return from, err
		}
		report, err := reports.ReadFile(path)
		if err != nil {
			return from, err
		}
		from.reports = append(from.reports, report)
	}
	if from.files, err = c.seriesFiles(); err != nil {
		return from, err
	}
	if from.checkout, from.series, err = c.openCheckout(ctx); err != nil {
		return from, err
	}
	if from.exact, err = from.checkout.CheckExact(ctx, from.series); err != nil {
		return from, errors.Join(err, from.checkout.Close())
	}
	return from, nil
}

// write writes a file of a baseline's folder.
func (c call) write(baseline, name string, content any) error {
	text, err := patches.FileText(name, content)
	if err != nil {
		return err
	}
	_, err = patches.Rewrite(filepath.Join(c.String("patches"), baseline), map[string][]byte{name: text}, nil)
	return err
}

// recordRuns writes runs.json from the reports that the command line names.
func (c call) recordRuns(ctx context.Context) error {
	excused := list(c.String("excuse"))
	if err := validate.CheckNames(excused); err != nil {
		return err
	}
	from, err := c.toRecord(ctx, "baseline runs")
	if err != nil {
		return err
	}
	defer from.checkout.Close()
	tree := patches.Tree{Commit: from.exact.BaseCommit}
	if tree.Exact, tree.Whole, err = from.checkout.ExactFiles(ctx, from.series, from.exact.BaseCommit); err != nil {
		return err
	}
	runs, err := patches.ReadRuns(from.files, from.series.Baseline.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := validate.RecordRuns(&runs, from.series, from.exact, tree, excused, from.reports); err != nil {
		return err
	}
	return c.write(from.series.Baseline.Name, patches.RunsFile, runs)
}

// showRuns says of each stage what its last run is worth now. With --check a stage that did not pass on the series as it is is a failure.
func (c call) showRuns() (result, error) {
	shown, found, err := showRecords(c, func(files fs.FS, name string) (*patches.RunsResult, error) {
		return patches.LintRuns(files, name, validate.StageNames())
	}, (*patches.RunsResult).Summary, printRuns)
	var stale []string
	for _, one := range found {
		if why := one.Refusal(); why != "" {
			stale = append(stale, why)
		}
	}
	if c.Bool("check") && len(stale) > 0 {
		err = silentError{exitVerify, strings.Join(stale, "\n")}
	}
	return shown, err
}

func printRuns(w io.Writer, found *patches.RunsResult) {
	for _, stage := range found.Stages {
		fmt.Fprintf(w, "%-12s %s", stage.Stage, stage.State)
		if stage.Reason != "" {
			fmt.Fprintf(w, ": %s", stage.Reason)
		}
		fmt.Fprintln(w)
		for _, run := range stage.Last {
			one := run.Stages[0]
			fmt.Fprintf(w, "  %s, %s, %s, seed %d; checks passed: %d, failed: %d, not run: %d; mpsforge %s\n", run.Date.Format("2006-01-02"),
				one.Verdict, run.Form, run.Seed,
				one.Checks[string(reports.Passed)], one.Checks[string(reports.Failed)], one.Checks[string(reports.Skipped)]+
					one.Checks[string(reports.NotRun)], run.Tool)
		}
	}
	printFindings(w, found.Findings, true)
	fmt.Fprintf(w, "%s: %s\n", found.Baseline, found.Summary())
}
