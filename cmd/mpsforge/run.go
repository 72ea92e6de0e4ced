package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
)

func runCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "run", usage: "fetch, apply, verify and report in one go",
		about: `Steps that are done already are left out. The exit code is that of the first step that fails.

  mpsforge run                                         PyTorch v2.9.1 in ./pytorch
  mpsforge run --baseline v2.6.0 --checkout pt26       Debian's 2.6.0, where GitHub can not be reached
  mpsforge run --quick                                 the short form of each stage`,
		flags: checkoutFlags(append(fetchFlags(), verifyFlags()...)...),
		action: func(ctx context.Context, c call) (result, error) {
			if err := c.ensureCheckout(ctx); err != nil {
				return result{}, err
			}
			checkout, series, err := c.openCheckout(ctx)
			if err != nil {
				return result{}, err
			}
			_, err = checkout.Apply(ctx, series, fork.Options{}, c.sink)
			if err := errors.Join(err, checkout.Close()); err != nil {
				return result{}, err
			}
			return c.verify(ctx)
		},
	})
}

// ensureCheckout fetches unless the checkout is there. A fetch that was cut off is taken up again.
func (c call) ensureCheckout(ctx context.Context) error {
	checkout, err := fork.Open(ctx, c.String("checkout"), nil)
	if err == nil {
		ready := checkout.Ready()
		if err := checkout.Close(); err != nil {
			return err
		}
		if ready {
			return nil
		}
	} else if !isMissing(err) {
		return err
	}
	fetched, err := c.fetch(ctx)
	if err != nil {
		return err
	}
	if fetched.Checkout != "" && c.String("from") != "" {
		// A git work tree is adopted where it is, so the rest must work there too.
		if err := c.Set("checkout", fetched.Checkout); err != nil {
			return fmt.Errorf("use the adopted checkout: %w", err)
		}
	}
	return nil
}
