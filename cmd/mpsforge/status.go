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
		about: `With --exit-code, for scripts: 0 if the checkout has exactly the series, 1 if patches are missing or it is not the
baseline, 3 if something else is in the way: drift, a moved HEAD, an interrupted run, a patch that the series changed or no longer has.
Without it, 0 for all of these.

  mpsforge status
  mpsforge status --json --checkout ~/src/pytorch
  mpsforge status --exit-code --quiet || mpsforge apply`,
		flags: checkoutFlags(&cli.BoolFlag{Name: "exit-code", Usage: "exit with 1 unless the series is applied, and with 3 if something is in the way"}),
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
			found := result{value: status, message: string(status.Condition), text: func(w io.Writer) { printStatus(w, status) }}
			if c.Bool("exit-code") {
				return found, judge(status)
			}
			return found, nil
		},
	})
}

// judge is what --exit-code makes of a status: nil if the checkout has exactly the series.
func judge(status *fork.Status) error {
	conflict := func(why string) error { return silentError{exitConflict, status.Checkout + ": " + why} }
	switch {
	case status.Condition == fork.Interrupted || status.Condition == fork.Moved:
		return conflict(string(status.Condition))
	case len(status.Drift) > 0:
		return conflict(fmt.Sprintf("%s, and drifted: %s", status.Condition, status.Drift[0]))
	}
	for _, patch := range status.Patches {
		if patch.State == fork.PatchChanged || patch.State == fork.PatchLeft {
			return conflict(patch.Name + " is " + patch.State)
		}
	}
	if status.Condition != fork.FullyApplied {
		return silentError{exitFailed, fmt.Sprintf("%s: the series is not applied: %s", status.Checkout, status.Condition)}
	}
	return nil
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
