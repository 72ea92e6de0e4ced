package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
)

func statusCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "status", usage: "what is applied, what drifted, and why",
		about: `  mpsforge status
  mpsforge status --json --checkout ~/src/pytorch`,
		flags: checkoutFlags(),
		action: func(ctx context.Context, c call) (result, error) {
			checkout, series, err := c.openCheckout(ctx)
			if err != nil {
				return result{}, err
			}
			defer checkout.Close()
			status, err := checkout.Status(ctx, series)
			if err != nil {
				return result{}, err
			}
			return result{value: status, message: string(status.Condition), text: func(w io.Writer) { printStatus(w, status) }}, nil
		},
	})
}

func printStatus(w io.Writer, status *fork.Status) {
	fmt.Fprintf(w, "%s: %s (%s)\n", status.Checkout, status.Condition, status.Baseline)
	if status.Base != "" {
		fmt.Fprintf(w, "  base  %s\n        %s\n        from %s\n", status.Base, status.Proof, status.Source)
	}
	fmt.Fprintf(w, "  head  %s\n", status.Head)
	for _, patch := range status.Patches {
		fmt.Fprintf(w, "  patch %-28s %s\n", patch.Name, patch.State)
	}
	for _, drift := range status.Drift {
		fmt.Fprintf(w, "  drift %s\n", drift)
	}
	for _, note := range status.Notes {
		fmt.Fprintf(w, "  note: %s\n", note)
	}
}
