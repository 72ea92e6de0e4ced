package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

func applyCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "apply", usage: "apply the series to the checkout, all or nothing", ui: workUI,
		about: `Each patch becomes one commit with its author, date and message. Only files whose bytes change are
written. When all patches are applied already, nothing happens. If a run was interrupted, the next one finishes or undoes it.

The series has parts, each better than PyTorch as it is at its end: fixes makes one stream safe for any number of threads, streams
gives each thread its own, extras is the rest. A part brings those before it.

  mpsforge apply                          the whole series on ./pytorch
  mpsforge apply --check                  would it work? writes nothing
  mpsforge apply --part fixes             safe threads, on the one stream of stock
  mpsforge apply --until stream-pool      the patches up to that one`,
		flags: checkoutFlags(
			&cli.StringFlag{Name: "part", Usage: "apply the patches up to the end of the part `NAME`: fixes, streams or extras"},
			&cli.StringFlag{Name: "until", Usage: "apply the patches up to `NAME`, that one included"},
			&cli.BoolFlag{Name: "check", Usage: "only show whether it would work; write nothing"}),
		action: changeAction("applied", "verify --quick", (*fork.Checkout).Apply),
	})
}

func unapplyCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "unapply", usage: "remove the series from the checkout, last patch first", ui: workUI,
		about: `  mpsforge unapply                        back to the baseline
  mpsforge unapply --until stream-pool    remove patches down to that one, that one included
  mpsforge unapply --check                would it work? writes nothing`,
		flags: checkoutFlags(
			&cli.StringFlag{Name: "until", Usage: "remove patches down to `NAME`, that one included"},
			&cli.BoolFlag{Name: "check", Usage: "only show whether it would work; write nothing"}),
		action: changeAction("removed", "status", (*fork.Checkout).Unapply),
	})
}

// change is Apply or Unapply of a checkout.
type change func(*fork.Checkout, context.Context, *patches.Series, fork.Options, events.Sink) (*fork.Change, error)

// changeAction is the action of apply and unapply: what is done to patches, and the command that one mostly runs then.
func changeAction(done, next string, run change) func(context.Context, call) (result, error) {
	return func(ctx context.Context, c call) (result, error) {
		checkout, series, err := c.openCheckout(ctx)
		if err != nil {
			return result{}, err
		}
		defer checkout.Close()
		until := c.String("until")
		if part := c.String("part"); part != "" {
			if until != "" {
				return result{}, usagef("--part and --until both say where to end: give one of them")
			}
			if until, err = series.UpTo(part); err != nil {
				return result{}, fmt.Errorf("--part: %w", err)
			}
		}
		made, err := run(checkout, ctx, series, fork.Options{Until: until, Check: c.Bool("check")}, c.sink)
		if err != nil {
			return result{}, err
		}
		message := fmt.Sprintf("patches %s: %d, files changed: %d", done, len(made.Patches), len(made.Paths))
		switch {
		case len(made.Patches) == 0:
			status, err := checkout.Status(ctx, series)
			if err != nil {
				return result{}, err
			}
			message = string(status.Condition) + drifted(status) + ": nothing to do"
			if len(status.Drift) > 0 {
				message += fmt.Sprintf("; %v", status.Drift[0])
			}
		case made.Check:
			message = fmt.Sprintf("patches that can be %s: %d, files that would change: %d", done, len(made.Patches), len(made.Paths))
		}
		return result{value: made, message: message, text: func(w io.Writer) {
			fmt.Fprintf(w, "%s: %s\n", made.Checkout, message)
			if len(made.Patches) < len(series.Patches) { // else all of them
				for _, name := range made.Patches {
					fmt.Fprintf(w, "  %s\n", name)
				}
			}
		}, next: c.onCheckout(next)}, nil
	}
}

// drifted says in how many places a checkout differs from what the series left, if in any.
func drifted(status *fork.Status) string {
	if len(status.Drift) == 0 {
		return ""
	}
	return fmt.Sprintf(", drifted: %d", len(status.Drift))
}
