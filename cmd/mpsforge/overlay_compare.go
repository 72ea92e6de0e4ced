package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork/macos/overlay"
	"mpsforge/patches"
	"mpsforge/validate/judge/crash"
)

// overlayCompare judges what somebody with a Mac sent.
func overlayCompare(std streams) *cli.Command {
	type difference struct {
		overlay.Difference
		Signature string `json:"signature,omitempty"` // of the crash, if it is known
	}
	return newCommand(std, spec{
		parent: "overlay", name: "compare", usage: "compare a selftest on a Mac with Linux", argument: "FILE",
		about: `FILE is mpsforge-selftest.json, which "python -m mpsforge_overlay --selftest" writes, or - for standard input. Says in which
checks it differs from what they find on Linux, over the software Metal, what to try first, and what a known crash is; exit code 4 if
one differs. docs/first-mac-run.md says what each check is for.

  python -m mpsforge_overlay --selftest                 on the Mac
  mpsforge overlay compare mpsforge-selftest.json       anywhere`,
		flags: []cli.Flag{patchesFlag()},
		action: func(_ context.Context, c call) (result, error) {
			path := c.Args().First()
			file, err := os.Open(path)
			if err != nil {
				return result{}, err
			}
			defer file.Close()
			found, err := overlay.ReadSelftest(file)
			if err != nil {
				return result{}, fmt.Errorf("%s: %w", path, err)
			}
			files, err := c.seriesFiles()
			if err != nil {
				return result{}, err
			}
			torch, _, _ := strings.Cut(found.Status.Torch, "+")
			series, err := patches.Load(files, "v"+torch)
			if err != nil {
				return result{}, fmt.Errorf("%s is of torch %q: %w", path, found.Status.Torch, err)
			}
			all := []difference{}
			for _, one := range overlay.CompareSelftest(found, series) {
				next := difference{Difference: one}
				if known, err := crash.Find(one.Said); err == nil && one.Said != "" {
					next.Signature = known.Name()
				}
				all = append(all, next)
			}
			summary := fmt.Sprintf("checks: %d, different: %d", len(found.Checks), len(all))
			value := struct {
				Summary     string       `json:"summary"`
				Differences []difference `json:"differences"`
			}{found.Summary(series), all}
			compared := result{value: value, message: summary, text: func(w io.Writer) {
				fmt.Fprintln(w, value.Summary)
				for _, one := range all {
					fmt.Fprintf(w, "%s: %s\n    on Linux  %s\n", one.Check, one.Found, one.Linux)
					if one.Signature != "" {
						fmt.Fprintf(w, "    known     %s: mpsforge metal explain %s\n", one.Signature, strings.Fields(one.Signature)[0])
					}
					if one.Try != "" {
						fmt.Fprintf(w, "    try       %s\n", one.Try)
					}
				}
				fmt.Fprintln(w, summary)
			}}
			if len(all) > 0 {
				return compared, silentError{exitVerify, summary}
			}
			return compared, nil
		},
	})
}
