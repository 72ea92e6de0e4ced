package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"mpsforge/native/apple"
)

// metalSelectors says what a new version of PyTorch needs of the Objective-C layer.
func metalSelectors(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "metal", name: "selectors", usage: "list selectors of a wheel that host builds lack", argument: "FILE",
		about: `FILE is a wheel of torch for macOS, or a Mach-O library such as its libtorch_cpu.dylib. Each selector is looked up in the
table of Apple's API that host builds are held to (native/apple/api.tsv).

  pip download torch==2.9.1 --platform macosx_11_0_arm64 --no-deps --only-binary=:all:
  mpsforge metal selectors torch-2.9.1-*.whl
  mpsforge metal selectors --json libtorch_cpu.dylib`,
		action: func(_ context.Context, c call) (result, error) {
			if err := checkInput("", c.Args().First()); err != nil {
				return result{}, err
			}
			needs, err := apple.LibraryNeeds(c.Args().First())
			if err != nil {
				return result{}, err
			}
			return result{value: needs, text: func(w io.Writer) { fmt.Fprint(w, needs) }}, nil
		},
	})
}
