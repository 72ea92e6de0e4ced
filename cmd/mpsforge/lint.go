package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/events"
	"mpsforge/patches"
)

func lintCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "lint", usage: "check the series without any checkout",
		about: `Strict, in memory: format, message, paths, bounds, and every context and removed line against the baseline's line
digests. Hunks in files without digests are listed as unverified; they never count as passed.

  mpsforge lint                           all baselines
  mpsforge lint --baseline v2.9.1
  mpsforge lint --patches ./patches       a folder instead of the series built in
  mpsforge lint --patches ./patches --fix rewrite its patch files in canonical form first`,
		flags: []cli.Flag{&cli.StringFlag{Name: "baseline", Usage: "`NAME` of the one baseline to check (default: all)"}, patchesFlag(),
			&cli.BoolFlag{Name: "fix", Usage: "bring the patch files below --patches into canonical form first"}},
		action: func(ctx context.Context, c call) (result, error) {
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
			if len(names) == 0 {
				return result{}, fmt.Errorf("%w: --patches %s holds no folder with a baseline.json", patches.ErrUnknownBaseline, c.String("patches"))
			}
			if c.Bool("fix") {
				if c.String("patches") == "" {
					return result{}, usagef("--fix needs --patches, the folder whose files it may rewrite")
				}
				for _, name := range names {
					fixed, err := patches.FixDir(c.String("patches"), name)
					if err != nil {
						return result{}, err
					}
					for _, path := range fixed {
						c.sink.Emit(events.Message{Level: events.Info, Text: "rewrote " + path})
					}
				}
			}
			var found []*patches.LintResult
			errors := 0
			for _, name := range names {
				finish := events.Step(c.sink, "lint "+name)
				linted, err := patches.Lint(files, name)
				if err != nil {
					finish(events.Failed, "")
					return result{}, err
				}
				found = append(found, linted)
				bad := len(linted.Of(patches.SeverityError))
				errors += bad
				finish(map[bool]events.Outcome{true: events.OK, false: events.Failed}[bad == 0], "")
			}
			listed := result{value: found, message: fmt.Sprintf("baselines: %d, errors: %d", len(found), errors), text: func(w io.Writer) {
				for _, linted := range found {
					printLint(w, linted)
				}
			}}
			if errors > 0 {
				return listed, silentError{exitFailed, fmt.Sprintf("lint found errors: %d", errors)}
			}
			return listed, nil
		},
	})
}

func printLint(w io.Writer, linted *patches.LintResult) {
	for _, finding := range linted.Findings {
		fmt.Fprintln(w, finding)
	}
	fmt.Fprintf(w, "%s: patches: %d, changed lines: %d; hunks exact by digest: %d of %d, unverified: %d; errors: %d\n", linted.Baseline,
		linted.Patches, linted.Total, linted.Verified, linted.Hunks, linted.Unverified, len(linted.Of(patches.SeverityError)))
}
