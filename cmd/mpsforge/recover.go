package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/patches"
)

func recoverCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "recover", usage: "finish or undo what a kill left open",
		about: `Without a flag it does what loses nothing, and says so when you must choose. apply and unapply do the same by
themselves. What an interrupted fetch left is removed; fetch goes on with it instead. With --patches it also ends an export or port that was cut off while it wrote there.

  mpsforge recover                        end an interrupted run
  mpsforge recover --rollback             undo it; overwrites the files that it concerned
  mpsforge recover --finish               complete it; overwrites the files that it concerned
  mpsforge recover --remove-locks         a killed git left its locks, and no git runs`,
		flags: checkoutFlags(
			&cli.BoolFlag{Name: "finish", Usage: "complete the interrupted run"},
			&cli.BoolFlag{Name: "rollback", Usage: "undo the interrupted run"},
			&cli.BoolFlag{Name: "remove-locks",
				Usage: "first remove git's left-over locks (index, HEAD, branch, record); only when no git runs in the checkout"}),
		action: func(ctx context.Context, c call) (result, error) {
			direction := fork.Automatic
			switch {
			case c.Bool("finish") && c.Bool("rollback"):
				return result{}, usagef("--finish and --rollback exclude each other")
			case c.Bool("finish"):
				direction = fork.Finish
			case c.Bool("rollback"):
				direction = fork.RollBack
			}
			var ended []string
			if dir := c.String("patches"); dir != "" {
				finished, err := patches.FinishRewrites(dir)
				if err != nil {
					return result{}, err
				}
				for _, folder := range finished {
					ended = append(ended, "finished writing the series into "+folder)
				}
			}
			recovery, err := c.recover(ctx, direction)
			if errors.Is(err, patches.ErrUnknownBaseline) && len(ended) > 0 {
				// A folder that was made for a port has no series for the checkout: the rewrite was all there was to finish.
				recovery, err = &fork.Recovery{Checkout: c.String("checkout")}, nil
			}
			if err != nil {
				return result{}, err
			}
			if recovery.Did != "" {
				ended = append(ended, recovery.Did)
			}
			recovery.Did = strings.Join(ended, "; ")
			message := cmp.Or(recovery.Did, "nothing to do")
			return result{value: recovery, message: message, text: func(w io.Writer) {
				fmt.Fprintf(w, "%s: %s\n", recovery.Checkout, message)
			}}, nil
		},
	})
}

// recover ends what was cut off in the checkout.
func (c call) recover(ctx context.Context, direction fork.Direction) (*fork.Recovery, error) {
	dir := c.String("checkout")
	if did, err := fork.ClearUnmade(dir); err != nil || did != "" {
		return &fork.Recovery{Checkout: dir, Did: did}, err
	}
	checkout, _, err := c.openCheckout(ctx)
	if err != nil {
		return nil, err
	}
	defer checkout.Close()
	return checkout.Recover(ctx, direction, c.Bool("remove-locks"))
}
