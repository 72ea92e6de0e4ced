package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/words"
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
			return result{value: diagnosis, message: diagnosis.Summary(), text: func(w io.Writer) { printDiagnosis(w, c.std, diagnosis) }}, nil
		},
	})
}

func printDiagnosis(w io.Writer, std streams, d validate.Diagnosis) {
	colours := std.colours()
	for _, need := range d.Needs {
		mark := words.Paint(colours.Good, "✓")
		if !need.Present {
			mark = words.Paint(colours.Bad, "✗")
		}
		fmt.Fprintf(w, "%s %-20s %s\n", mark, need.Name, need.Found)
		if !need.Present {
			fmt.Fprintf(w, "    needed for %s\n    to fix it: %s\n", need.For, need.Fix)
		}
	}
	var stages words.Groups // by why they cannot run
	for _, stage := range d.Stages {
		stages.Add(stage.Why, stage.Name)
	}
	fmt.Fprintf(w, "\n%s\n", d.Summary())
	for _, group := range stages {
		line := words.Paint(colours.Good, "can run:    ") + strings.Join(group.Names, ", ")
		if group.Reason != "" {
			line = words.Paint(colours.Odd, "cannot run: ") + strings.Join(group.Names, ", ") + ": " + group.Reason
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	set := 0
	for _, variable := range d.Variables {
		if variable.Value != validate.NotSet {
			set++
			fmt.Fprintf(w, "%s=%s: %s\n", variable.Name, variable.Value, variable.Meaning)
		}
	}
	fmt.Fprintf(w, "environment variables set: %d of %d; mpsforge docs man lists them\n", set, len(d.Variables))
}
