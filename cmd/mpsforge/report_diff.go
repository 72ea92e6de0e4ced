package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"mpsforge/reports"
)

func reportDiff(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "report", name: "diff", usage: "show what has got worse from one report to another", argument: "BEFORE AFTER",
		about: `A regression is a check that passed and now fails, is skipped or is gone, a stage that does not run any more though it was asked
for, a new check that fails, and a speed whose 95 % interval lies below the old one's. Exit code 4 if there is any. Differences in
series, baseline, form or machine are shown first, and stages that AFTER was not asked for.

  mpsforge report diff before.json after.json
  mpsforge report diff --json before.json after.json`,
		action: func(_ context.Context, c call) (result, error) {
			var sides [2]*reports.Report
			for i, path := range c.Args().Slice() {
				var err error
				if sides[i], err = reports.ReadFile(path); err != nil {
					return result{}, err
				}
			}
			compared := reports.Compare(sides[0], sides[1])
			compared.Before.Path, compared.After.Path = c.Args().Get(0), c.Args().Get(1)
			found := result{value: compared, message: compared.Summary(), text: func(w io.Writer) {
				_ = compared.WriteMarkdown(w) // standard output is gone: there is nobody left to report to
			}}
			if len(compared.Regressions) > 0 {
				return found, silentError{exitVerify, fmt.Sprintf("regressions: %d", len(compared.Regressions))}
			}
			return found, nil
		},
	})
}
