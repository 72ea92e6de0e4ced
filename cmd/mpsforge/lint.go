package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/events"
	"mpsforge/patches"
	"mpsforge/validate"
)

func lintCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "lint", usage: "check the series without any checkout",
		about: `Strict, in memory: format, message, paths, bounds, and every context and removed line against the baseline's line
digests. Hunks in files without digests are listed as unverified; they never count as passed. It warns of stages of verify that
were not run on the series as it is, and of patches that nothing notices when they are left out; a warning does not fail.

  mpsforge lint                             all baselines
  mpsforge lint --baseline v2.9.1
  mpsforge lint --patches ./patches         a folder instead of the series built in
  mpsforge lint --patches ./patches --fix   rewrite its patch files in canonical form first
  mpsforge lint --compare                   also compare each baseline's series with that of v2.9.1, patch by patch: each
                                            difference in added and removed lines needs a reason in differences.json,
                                            which --fix updates, except for the reasons`,
		flags: []cli.Flag{&cli.StringFlag{Name: "baseline", Usage: "`NAME` of the one baseline to check (default: all)"}, patchesFlag(),
			&cli.BoolFlag{Name: "fix", Usage: "first rewrite the patch files below --patches in canonical form, and with --compare update differences.json"},
			&cli.BoolFlag{Name: "compare", Usage: "also compare the series of the baselines with each other"},
			&cli.BoolFlag{Name: "notes", Usage: "also list the notes: changes to classes whose layout other code may rely on"}},
		action: func(ctx context.Context, c call) (result, error) {
			files, names, err := c.baselines()
			if err != nil {
				return result{}, err
			}
			if len(names) == 0 {
				return result{}, fmt.Errorf("%w: --patches %s holds no folder with a baseline.json", patches.ErrUnknownBaseline, c.String("patches"))
			}
			if c.Bool("fix") {
				if err := c.fixSeries(names); err != nil {
					return result{}, err
				}
			}
			var found []lintFound
			errors := 0
			for _, name := range names {
				finish := events.Step(c.sink, "lint "+name)
				one, bad, err := lintBaseline(files, name, c.Bool("compare"))
				if err != nil {
					finish(events.Failed, "")
					return result{}, err
				}
				found = append(found, one)
				errors += bad
				finish(map[bool]events.StepOutcome{true: events.OK, false: events.Failed}[bad == 0], "")
			}
			listed := result{value: found, message: fmt.Sprintf("baselines: %d, errors: %d", len(found), errors), text: func(w io.Writer) {
				for _, one := range found {
					printLint(w, one.LintResult, c.Bool("notes"))
					if one.Comparison != nil {
						printComparison(w, one.Comparison)
					}
					if one.Runs != nil {
						printFindings(w, one.Runs.Findings, true)
						if one.Runs.Asked {
							fmt.Fprintf(w, "%s: %s\n", one.Runs.Baseline, one.Runs.Summary())
						}
						printFindings(w, slices.Concat(one.Ablation.Findings, one.Mutants.Findings, one.Controls.Findings,
							one.Coverage.Findings), c.Bool("notes"))
					}
				}
			}}
			if errors > 0 {
				return listed, silentError{exitFailed, fmt.Sprintf("lint found errors: %d", errors)}
			}
			return listed, nil
		},
	})
}

// lintBaseline checks one baseline's series and counts what is wrong.
func lintBaseline(files fs.FS, name string, compare bool) (one lintFound, bad int, err error) {
	if one.LintResult, err = patches.Lint(files, name, validate.ScenarioNames()); err != nil {
		return one, 0, err
	}
	bad = len(one.Of(patches.SeverityError))
	if compare && name != patches.DefaultBaseline {
		if one.Comparison, err = patches.LintCompare(files, name); err != nil {
			return one, 0, err
		}
		bad += len(one.Comparison.Findings)
	}
	if bad > 0 { // what is to be run is known of a whole series only
		return one, bad, nil
	}
	var errs [5]error
	one.Runs, errs[0] = patches.LintRuns(files, name, validate.StageNames())
	one.Ablation, errs[1] = patches.LintAblation(files, name)
	one.Mutants, errs[2] = patches.LintMutants(files, name)
	one.Controls, errs[3] = patches.LintControls(files, name)
	one.Coverage, errs[4] = patches.LintCoverage(files, name)
	if err := cmp.Or(errs[:]...); err != nil {
		return one, 0, err
	}
	errors := [][]patches.LintFinding{one.Runs.Errors(), one.Ablation.Errors(), one.Mutants.Errors(), one.Controls.Errors(), one.Coverage.Errors()}
	return one, len(slices.Concat(errors...)), nil
}

// lintFound is what lint found about one baseline.
type lintFound struct {
	*patches.LintResult
	Comparison *patches.CompareResult  `json:"comparison,omitempty"`
	Runs       *patches.RunsResult     `json:"runs,omitempty"`
	Ablation   *patches.AblationResult `json:"ablation,omitempty"`
	Mutants    *patches.MutantsResult  `json:"mutants,omitempty"`
	Controls   *patches.ControlsResult `json:"controls,omitempty"`
	Coverage   *patches.CoverageResult `json:"coverage,omitempty"`
}

func printFindings(w io.Writer, all []patches.LintFinding, notes bool) {
	for _, finding := range all {
		if notes || finding.Severity != patches.SeverityNote {
			fmt.Fprintln(w, finding)
		}
	}
}

// fixSeries brings files below --patches into form and says which it rewrote.
func (c call) fixSeries(names []string) error {
	dir := c.String("patches")
	if dir == "" {
		return usagef("--fix needs --patches, the folder whose files it may rewrite")
	}
	tell := func(path string) { c.sink.Emit(events.Message{Level: events.Info, Text: "rewrote " + path}) }
	for _, name := range names {
		fixed, err := patches.FixDir(dir, name)
		if err != nil {
			return err
		}
		for _, path := range fixed {
			tell(path)
		}
	}
	for _, name := range names {
		if !c.Bool("compare") || name == patches.DefaultBaseline {
			continue
		}
		changed, err := patches.FixDifferences(dir, name)
		if err != nil {
			return err
		}
		if changed {
			tell(filepath.Join(dir, name, "differences.json"))
		}
	}
	return nil
}

func printComparison(w io.Writer, comparison *patches.CompareResult) {
	for _, difference := range comparison.Differences {
		fmt.Fprintln(w, difference.Text(comparison.Baseline, comparison.Against))
		if difference.Reason != "" {
			fmt.Fprintf(w, "    because %s\n", difference.Reason)
		}
	}
	for _, finding := range comparison.Findings {
		fmt.Fprintln(w, finding)
	}
	fmt.Fprintf(w, "%s against %s: patches in both: %d, differences: %d; errors: %d\n", comparison.Baseline, comparison.Against,
		comparison.Patches, len(comparison.Differences), len(comparison.Findings))
}

func printLint(w io.Writer, linted *patches.LintResult, notes bool) {
	printFindings(w, linted.Findings, notes)
	if count := len(linted.Of(patches.SeverityNote)); count > 0 && !notes {
		fmt.Fprintf(w, "%s: notes: %d, --notes lists them\n", linted.Baseline, count)
	}
	fmt.Fprintf(w, "%s: patches: %d, changed lines: %d; touched files whose exact text is known: %d of %d; hunks exact by digest: %d of %d, "+
		"unverified: %d; errors: %d\n",
		linted.Baseline, linted.Patches, linted.Total, linted.FilesExact, linted.Files, linted.Verified, linted.Hunks, linted.Unverified,
		len(linted.Of(patches.SeverityError)))
}
