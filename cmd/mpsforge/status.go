package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/internal/words"
	"mpsforge/patches"
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
			found := result{value: status, message: string(status.Condition), text: func(w io.Writer) { printStatus(w, c.std, status, series) }}
			if then := afterStatus[status.Condition]; then != "" {
				found.next = c.onCheckout(then)
			}
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

// afterStatus is the command that one mostly runs then.
var afterStatus = map[fork.Condition]string{fork.AtBase: "apply", fork.PartlyApplied: "apply", fork.FullyApplied: "verify", fork.Interrupted: "recover"}

// conditions say what a condition means, where its name does not.
var conditions = map[fork.Condition]string{
	fork.Interrupted: "a run was cut off",
	fork.Moved:       "HEAD is not where mpsforge left it",
	fork.Unknown:     "it is not the baseline, and mpsforge has recorded nothing of it",
}

func printStatus(w io.Writer, std streams, status *fork.Status, series *patches.Series) {
	colours := std.colours()
	patched := fmt.Sprintf("%s%s (%s), patches: %d of %d", status.Condition, drifted(status), status.Baseline, len(status.Applied()), len(status.Patches))
	if _, part := series.Applied(status.Applied()); part != "" {
		patched += ", the part " + part
	}
	switch why := conditions[status.Condition]; {
	case why != "":
		patched = words.Paint(colours.Bad, patched+"; "+why)
	case status.Condition == fork.FullyApplied && len(status.Drift) == 0:
		patched = words.Paint(colours.Good, patched)
	default:
		patched = words.Paint(colours.Odd, patched)
	}
	fmt.Fprintf(w, "%s: %s\n", status.Checkout, patched)
	for _, drift := range status.Drift {
		fmt.Fprintf(w, "  %s %s\n", words.Paint(colours.Bad, "drift"), drift)
	}
	if status.Base != "" {
		fmt.Fprintf(w, "  base  %s\n        %s\n        from %s\n", status.Base, status.Proof, status.Source)
	}
	fmt.Fprintf(w, "  head  %s\n", status.Head)
	printPatches(w, colours, status.Patches)
	for _, note := range status.Notes {
		fmt.Fprintf(w, "  note: %s\n", note)
	}
}

// printPatches lists patches with their states, or says in one line that all have the same.
func printPatches(w io.Writer, colours words.Palette, all []fork.PatchStatus) {
	state := func(state string) string {
		switch state {
		case fork.PatchApplied:
			return words.Paint(colours.Good, state)
		case fork.PatchChanged, fork.PatchLeft:
			return words.Paint(colours.Bad, state)
		}
		return state
	}
	others := slices.ContainsFunc(all, func(p fork.PatchStatus) bool { return p.State != all[0].State })
	if len(all) > 1 && !others {
		fmt.Fprintf(w, "  patches, from %s to %s: all %s\n", all[0].Name, all[len(all)-1].Name, state(all[0].State))
		return
	}
	for _, patch := range all {
		fmt.Fprintf(w, "  patch %-28s %s\n", patch.Name, state(patch.State))
	}
}
