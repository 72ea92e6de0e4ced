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
		name: "apply", usage: "put the series on the checkout, all or nothing", ui: workUI,
		about: `Each patch becomes one commit with its author, date and message. Only files whose bytes change are
written. When all patches are there already, nothing happens. After a run that was cut off the next one finishes or undoes it.

  mpsforge apply                          the whole series on ./pytorch
  mpsforge apply --check                  would it go on? writes nothing
  mpsforge apply --until stream-slots     the patches up to that one`,
		flags: checkoutFlags(
			&cli.StringFlag{Name: "until", Usage: "the last patch to put on, `NAME`"},
			&cli.BoolFlag{Name: "check", Usage: "only show whether it would work; write nothing"}),
		action: changeAction("applied", "verify --quick", (*fork.Checkout).Apply),
	})
}

func unapplyCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "unapply", usage: "take the series off the checkout again, last patch first", ui: workUI,
		about: `  mpsforge unapply                        back to the baseline
  mpsforge unapply --until stream-slots   take patches off up to and including that one
  mpsforge unapply --check                would it come off? writes nothing`,
		flags: checkoutFlags(
			&cli.StringFlag{Name: "until", Usage: "the last patch to take off, `NAME`"},
			&cli.BoolFlag{Name: "check", Usage: "only show whether it would work; write nothing"}),
		action: changeAction("taken off", "status", (*fork.Checkout).Unapply),
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
		made, err := run(checkout, ctx, series, fork.Options{Until: c.String("until"), Check: c.Bool("check")}, c.sink)
		if err != nil {
			return result{}, err
		}
		message := fmt.Sprintf("patches %s: %d, files changed: %d", done, len(made.Patches), len(made.Paths))
		switch {
		case len(made.Patches) == 0:
			message = "nothing to do"
		case made.Check:
			message = fmt.Sprintf("patches that can be %s: %d, files that would change: %d", done, len(made.Patches), len(made.Paths))
		}
		return result{value: made, message: message, text: func(w io.Writer) {
			for _, name := range made.Patches {
				fmt.Fprintln(w, name)
			}
			fmt.Fprintf(w, "%s: %s\n", made.Checkout, message)
		}, next: c.onCheckout(next)}, nil
	}
}
