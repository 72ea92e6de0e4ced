package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"mpsforge/validate"
)

func doctorCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "doctor", usage: "show what this machine can do, and how to fix each gap",
		about: `For each gap it names what it is needed for and the command that fixes it. It changes nothing.

  mpsforge doctor
  mpsforge doctor --json`,
		flags: checkoutFlags(),
		action: func(ctx context.Context, c call) (result, error) {
			cache, err := cacheDir()
			if err != nil {
				return result{}, err
			}
			diagnosis := validate.Diagnose(ctx, c.String("checkout"), cache)
			return result{value: diagnosis, message: diagnosis.Summary(), text: func(w io.Writer) {
				for _, need := range diagnosis.Needs {
					mark := "✓"
					if !need.Present {
						mark = "✗"
					}
					fmt.Fprintf(w, "%s %-20s %s\n", mark, need.Name, need.Found)
					if !need.Present {
						fmt.Fprintf(w, "  %-20s for %s; to fix it: %s\n", "", need.For, need.Fix)
					}
				}
				fmt.Fprintln(w)
				for _, stage := range diagnosis.Stages {
					state := "can run"
					if stage.Why != "" {
						state = "cannot run: " + stage.Why
					}
					fmt.Fprintf(w, "stage %-12s %s\n", stage.Name, state)
				}
				fmt.Fprintln(w)
				for _, variable := range diagnosis.Variables {
					fmt.Fprintf(w, "%-36s %s (now: %s)\n", variable.Name, variable.Meaning, variable.Value)
				}
			}}, nil
		},
	})
}
