package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"mpsforge/ci"
	"mpsforge/reports"
)

// summaryVariable is how GitHub names the file of a step's summary.
const summaryVariable = "GITHUB_STEP_SUMMARY"

func reportGitHub(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "report", name: "github", usage: "write a report into a GitHub Actions summary", argument: "FILE",
		about: `Appends the report to the file that GITHUB_STEP_SUMMARY names, cut where GitHub would drop it for its length, and prints
failures as annotations, which GitHub reads from a step's output.

  mpsforge report github report.json`,
		action: func(_ context.Context, c call) (result, error) {
			report, err := reports.ReadFile(c.Args().First())
			if err != nil {
				return result{}, err
			}
			path := os.Getenv(summaryVariable)
			if path == "" {
				return result{}, fmt.Errorf("%w: %s is not set; elsewhere mpsforge report prints a report", ci.ErrNoActions, summaryVariable)
			}
			if err := appendSummary(path, report); err != nil {
				return result{}, err
			}
			annotations := ci.Annotations(report)
			return result{value: annotations, message: fmt.Sprintf("annotations: %d", len(annotations)), text: func(w io.Writer) {
				for _, annotation := range annotations {
					fmt.Fprintln(w, annotation)
				}
			}}, nil
		},
	})
}

// appendSummary adds the report to a step's summary, which counts for the limit with what it holds already.
func appendSummary(path string, report *reports.Report) (err error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the step summary: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("write the step summary: %w", closed)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("look at the step summary: %w", err)
	}
	return ci.WriteSummary(file, report, ci.SummaryLimit-int(info.Size()))
}
