package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
)

func fetchCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "fetch", usage: "get a PyTorch checkout of a baseline", ui: workUI, logs: true,
		about: `The result is a git work tree whose base commit is verified and recorded. A folder with other contents is
never touched. After an interruption the same command continues where fetch stopped, and recover removes what it left.
With --from and --checkout a git work tree is only read: the new checkout has the commit that its patches are based on, without
history, submodules (git submodule update --init --recursive gets them for a build) and uncommitted changes.
Without --baseline, --from and --url it takes Debian's PyTorch 2.6.0 if GitHub cannot be reached, and prints a warning.

  mpsforge fetch                                         clone v2.9.1 with its submodules into ./pytorch
  mpsforge fetch --url https://example.org/pytorch.git   the same from a mirror
  mpsforge fetch --from ~/src/pytorch                    use an existing git work tree in its place
  mpsforge fetch --from ~/src/pytorch --checkout copy    copy the release commit of that work tree into ./copy
  mpsforge fetch --from pytorch.tar.gz                   import a source tarball or a plain folder into ./pytorch
  mpsforge fetch --baseline v2.6.0 --from debian         Debian trixie's source package, through apt`,
		flags: checkoutFlags(fetchFlags()...),
		action: func(ctx context.Context, c call) (result, error) {
			fetched, err := c.fetch(ctx)
			if err != nil {
				return result{}, err
			}
			message := fmt.Sprintf("%s at %s: %s", fetched.Baseline, fetched.Base, fetched.Proof)
			if fetched.Already {
				message = "nothing to do: " + message
			}
			return result{value: fetched, message: message, text: func(w io.Writer) {
				fmt.Fprintf(w, "%s: %s\n", fetched.Checkout, message)
			}, next: c.onCheckout("apply")}, nil
		},
	})
}

func fetchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "`SOURCE`: debian, a folder, or a tarball (default: what the baseline names)"},
		&cli.StringFlag{Name: "url", Usage: "clone from `URL` instead of PyTorch's own repository"},
		&cli.BoolFlag{Name: "no-submodules", Usage: "leave submodules out; a build needs them, apply and verify do not"},
	}
}

func (c call) fetch(ctx context.Context) (*fork.Fetched, error) {
	if c.String("from") != "" && c.String("url") != "" {
		return nil, usagef("--from and --url exclude each other")
	}
	files, err := c.seriesFiles()
	if err != nil {
		return nil, err
	}
	cache, err := openCache()
	if err != nil {
		return nil, err
	}
	options := fork.FetchOptions{Dir: c.String("checkout"), From: c.String("from"), Adopt: !c.IsSet("checkout"), URL: c.String("url"),
		NoSubmodules: c.Bool("no-submodules"), Cache: cache}
	series, err := fork.Choose(ctx, files, c.String("baseline"), &options, c.sink)
	if err != nil {
		return nil, err
	}
	fetched, err := fork.Fetch(ctx, series, options, c.sink)
	if err != nil {
		return nil, err
	}
	if here, err := filepath.Abs(options.Dir); err != nil || here != fetched.Checkout && options.Adopt && options.From != "" {
		return fetched, errors.Join(err, c.Set("checkout", fetched.Checkout)) // what follows works where the adopted work tree is
	}
	return fetched, nil
}
