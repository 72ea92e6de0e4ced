package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/validate/judge/repro"
)

func reproCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "repro", usage: "write a minimal reproducer and the text of a bug report", argument: "SCENARIO", ui: workUI,
		about: `SCENARIO is one of: ` + strings.Join(repro.Scenarios(), ", ") + `.
Writes one self-contained file, Python that needs torch alone, or Objective-C++ that needs Metal alone, and a report for
PyTorch or Apple beside it. With --python the file is run, and versions, signature and rate are filled in; without,
the report says that nothing was measured.

  mpsforge repro linear
  mpsforge repro --python venv/bin/python --runs 20 --threads 8 sequential
  mpsforge repro --graph --out bug linear            the graph path of nn.Linear
  mpsforge repro matrix-multiplication               Objective-C++, for a report to Apple
  mpsforge build --host                              on Linux: prints the path of a Python to try it with`,
		flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Value: ".", Usage: "write the files into `DIR`"},
			&cli.IntFlag{Name: "threads", Value: 8, Usage: "`N` threads at once"},
			&cli.IntFlag{Name: "iterations", Value: 50, Usage: "`N` operations of each thread"},
			&cli.BoolFlag{Name: "graph", Usage: "inputs that are not contiguous, which take the graph path of Linear"},
			&cli.StringFlag{Name: "python", EnvVars: []string{"MPSFORGE_PYTHON"}, Usage: "run it with this `PYTHON`"},
			&cli.IntFlag{Name: "runs", Value: 10, Usage: "`N` runs, each a new process"},
			&cli.DurationFlag{Name: "limit", Value: 2 * time.Minute, Usage: "count a run as hung after `TIME`"},
		},
		action: func(ctx context.Context, c call) (result, error) {
			for _, name := range []string{"threads", "iterations", "runs"} {
				if c.Int(name) < 1 || c.Int(name) > 100000 {
					return result{}, usagef("--%s %d: a number from 1 to 100000", name, c.Int(name))
				}
			}
			if c.Duration("limit") <= 0 {
				return result{}, usagef("--limit %s: a time above 0, such as 30s", c.Duration("limit"))
			}
			if err := c.checkPrograms("python"); err != nil {
				return result{}, err
			}
			if err := c.checkTorch(ctx, "python"); err != nil {
				return result{}, err
			}
			found, err := repro.Write(ctx, repro.Options{Scenario: c.Args().First(), Dir: c.String("out"), Threads: c.Int("threads"),
				Iterations: c.Int("iterations"),
				Graph:      c.Bool("graph"), Interpreter: c.String("python"), Runs: c.Int("runs"), Limit: c.Duration("limit")}, c.sink)
			if err != nil {
				return result{}, err
			}
			message := "nothing was run: the report has gaps that --python fills in"
			if found.Runs > 0 {
				message = fmt.Sprintf("failed runs: %d of %d", found.Failed, found.Runs)
			}
			return result{value: found, message: message, text: func(w io.Writer) {
				fmt.Fprintf(w, "%s\n%s\n%s\n", found.File, found.Report, message)
				if found.Problem != "" {
					fmt.Fprintln(w, found.Problem)
				}
			}}, nil
		},
	})
}
