package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

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
			&cli.StringFlag{Name: "baseline", Usage: "`NAME` of the one baseline to show (default: all), or to record (default: what the checkout is)"}, checkoutFlag(), patchesFlag()},
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

// recordRuns writes runs.json from the reports that the command line names.
func (c call) recordRuns(ctx context.Context) error {
	dir := c.String("patches")
	if dir == "" {
		return usagef("to record reports baseline runs needs --patches, the folder to write to")
	}
	excused := list(c.String("excuse"))
	if err := validate.CheckNames(excused); err != nil {
		return err
	}
	var read []*reports.Report
	for _, path := range c.Args().Slice() {
		if err := checkInput("baseline runs", path); err != nil {
			return err
		}
		report, err := reports.ReadFile(path)
		if err != nil {
			return err
		}
		read = append(read, report)
	}
	checkout, series, err := c.openCheckout(ctx)
	if err != nil {
		return err
	}
	defer checkout.Close()
	exact, err := checkout.CheckExact(ctx, series)
	if err != nil {
		return err
	}
	tree := patches.Tree{Commit: exact.BaseCommit}
	if tree.Exact, tree.Whole, err = checkout.ExactFiles(ctx, series, exact.BaseCommit); err != nil {
		return err
	}
	files, err := c.seriesFiles()
	if err != nil {
		return err
	}
	runs, err := patches.ReadRuns(files, series.Baseline.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := validate.RecordRuns(&runs, series, exact, tree, excused, read); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := runs.Write(&text); err != nil {
		return err
	}
	_, err = patches.Rewrite(filepath.Join(dir, series.Baseline.Name), map[string][]byte{patches.RunsFile: text.Bytes()}, nil)
	return err
}

// showRuns says of each stage what its last run is worth now.
func (c call) showRuns() (result, error) {
	files, err := c.seriesFiles()
	if err != nil {
		return result{}, err
	}
	names := []string{c.String("baseline")}
	if names[0] == "" {
		if names, err = patches.Baselines(files); err != nil {
			return result{}, err
		}
	}
	var all []*patches.RunsResult
	var summaries, stale []string
	for _, name := range names {
		found, err := patches.LintRuns(files, name, validate.StageNames())
		if err != nil {
			return result{}, err
		}
		all = append(all, found)
		if found.Asked {
			summaries = append(summaries, name+": "+found.Summary())
		}
		if why := found.Refusal(); why != "" {
			stale = append(stale, why)
		}
	}
	shown := result{value: all, message: strings.Join(summaries, "; "), text: func(w io.Writer) {
		for _, found := range all {
			printRuns(w, found)
		}
	}}
	if c.Bool("check") && len(stale) > 0 {
		return shown, silentError{exitVerify, strings.Join(stale, "\n")}
	}
	return shown, nil
}

func printRuns(w io.Writer, found *patches.RunsResult) {
	if !found.Asked {
		fmt.Fprintf(w, "%s: no runs are recorded, and none are asked for\n", found.Baseline)
		return
	}
	for _, stage := range found.Stages {
		fmt.Fprintf(w, "%-12s %s", stage.Stage, stage.State)
		if stage.Reason != "" {
			fmt.Fprintf(w, ": %s", stage.Reason)
		}
		fmt.Fprintln(w)
		for _, run := range stage.Last {
			one := run.Stages[0]
			fmt.Fprintf(w, "  %s, %s, %s, seed %d; checks passed: %d, failed: %d, not run: %d; mpsforge %s\n", run.Date.Format("2006-01-02"), one.Verdict, run.Form, run.Seed,
				one.Checks[string(reports.Passed)], one.Checks[string(reports.Failed)], one.Checks[string(reports.Skipped)]+one.Checks[string(reports.NotRun)], run.Tool)
		}
	}
	printRunFindings(w, found)
}
