package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"mpsforge/native/script"
	"mpsforge/validate/stages/device"
)

// metalObserve is the child process of the stage device.
func metalObserve() *cli.Command {
	return &cli.Command{
		Name: device.ChildCommand[1], Hidden: true, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			return device.Child(c.Context, script.Backend(c.Args().First()), os.Stdin, os.Stdout)
		},
	}
}

// metalCompare judges what somebody with a Mac sent.
func metalCompare(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "metal", name: "compare", usage: "compare facts of a device with the software Metal", argument: "FILE",
		about: `FILE is facts-apple.json, which the stage device writes beside its report on a Mac: what the programs of the corpus did on
its Metal. Each program's facts are compared with what the software Metal gives in every run; exit code 4 if one differs.
docs/device-facts.md describes the file and says what is compared.

  mpsforge verify --stages device --report out.json     on a Mac: writes out.artifacts/facts-apple.json
  mpsforge metal compare facts-apple.json               anywhere`,
		flags: []cli.Flag{&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` to seed the software Metal's choices", Value: 1}},
		action: func(ctx context.Context, c call) (result, error) {
			if err := checkInput("", c.Args().First()); err != nil {
				return result{}, err
			}
			facts, err := device.ReadFacts(c.Args().First())
			if err != nil {
				return result{}, err
			}
			programs, err := device.Programs()
			if err != nil {
				return result{}, err
			}
			all, err := device.Compare(ctx, facts, programs, c.Uint64("seed"))
			if err != nil {
				return result{}, err
			}
			compared, differ := 0, 0
			for _, each := range all {
				if each.NotCompared == "" {
					compared++
				}
				if len(each.Differences) > 0 {
					differ++
				}
			}
			summary := fmt.Sprintf("%s: programs: %d, compared: %d, different: %d", facts.Backend, len(all), compared, differ)
			found := result{value: all, message: summary, text: func(w io.Writer) {
				printCompared(w, all)
				fmt.Fprintln(w, summary)
			}}
			if differ > 0 {
				return found, silentError{exitVerify, found.message}
			}
			return found, nil
		},
	})
}

func printCompared(w io.Writer, all []device.Comparison) {
	for _, each := range all {
		for _, difference := range each.Differences {
			fmt.Fprintf(w, "%s: %s\n", each.Name, difference)
		}
		if each.NotCompared != "" {
			fmt.Fprintf(w, "%s: not compared: %s\n", each.Name, each.NotCompared)
		}
	}
}
