package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"mpsforge/reports"
)

func reportCommand(std streams) *cli.Command {
	command := newCommand(std, spec{
		name: "report", usage: "print a verification report", argument: "FILE",
		about: `FILE is the JSON that mpsforge verify wrote. It is printed as Markdown; --json prints it as it is.

  mpsforge report out.json
  mpsforge report github out.json      into the summary of a step of GitHub Actions`,
		action: func(_ context.Context, c call) (result, error) {
			report, err := reports.ReadFile(c.Args().First())
			if err != nil {
				return result{}, err
			}
			return result{value: report, message: string(report.Verdict), text: func(w io.Writer) {
				_ = report.WriteMarkdown(w) // standard output is gone: there is nobody left to tell
			}}, nil
		},
	})
	command.Subcommands = []*cli.Command{reportGitHub(std)}
	return command
}
