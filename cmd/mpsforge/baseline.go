package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/fork/macos/mac"
	"mpsforge/patches"
)

func baselineCommand(std streams) *cli.Command {
	return &cli.Command{
		Name: "baseline", Usage: "record or show a baseline's facts", HideHelpCommand: true,
		Description: `  mpsforge baseline show --baseline v2.6.0
  mpsforge baseline record --baseline v2.6.0 --checkout pytorch --patches ./patches
  mpsforge baseline compare --wheel torch-2.14.1-*.whl
  mpsforge baseline runs
  mpsforge baseline ablation
  mpsforge baseline mutants
  mpsforge baseline controls
  baseline=$(mpsforge baseline choose)`,
		Action: showGroup,
		Subcommands: []*cli.Command{baselineShow(std), baselineRecord(std), baselineCompare(std), baselineRuns(std), baselineAblation(std),
			baselineMutants(std), baselineControls(std), baselineCoverage(std), baselineChoose(std)},
	}
}

func baselineShow(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "baseline", name: "show", usage: "print what is known about a baseline",
		about: `  mpsforge baseline show
  mpsforge baseline show --baseline v2.6.0 --json`,
		flags: []cli.Flag{baselineFlag(), patchesFlag()},
		action: func(_ context.Context, c call) (result, error) {
			series, err := c.series("")
			if err != nil {
				return result{}, err
			}
			baseline := series.Baseline
			digests, err := series.Digests()
			if err != nil {
				return result{}, err
			}
			return result{value: baseline, text: func(w io.Writer) {
				fmt.Fprintf(w, "%s: tag %s\n  commit   %s\n", baseline.Name, baseline.Tag, baseline.Commit)
				if baseline.Tree != "" {
					fmt.Fprintf(w, "  tree     %s\n", baseline.Tree)
				}
				if source := baseline.Source; source != nil {
					fmt.Fprintf(w, "  source   %s %s (%s), %s\n           SHA-256 %s\n", source.Package, source.Version, source.Suite, source.File,
						source.SHA256)
				}
				fmt.Fprintf(w, "  digests  of %d files; %d paths known to be absent\n  touched  %d paths\n", len(digests.Files), len(baseline.Absent),
					len(baseline.Touched))
			}}, nil
		},
	})
}

// showRecords is the frame of what shows a file that is recorded beside a series: of reads it of one baseline, count says in words how much
// it holds, list prints it. It fails if a file cannot be used, which the list says, too.
func showRecords[T interface{ Errors() []patches.LintFinding }](c call, of func(fs.FS, string) (T, error), count func(T) string,
	list func(io.Writer, T)) (result, []T, error) {
	files, names, err := c.baselines()
	if err != nil {
		return result{}, nil, err
	}
	var all []T
	var counts []string
	var bad []patches.LintFinding
	for _, name := range names {
		found, err := of(files, name)
		if err != nil {
			return result{}, nil, err
		}
		all, counts, bad = append(all, found), append(counts, name+": "+count(found)), append(bad, found.Errors()...)
	}
	shown := result{value: all, message: strings.Join(counts, "; "), text: func(w io.Writer) {
		for _, found := range all {
			list(w, found)
		}
	}}
	if len(bad) > 0 {
		return shown, all, silentError{exitFailed, bad[0].String()}
	}
	return shown, all, nil
}

func baselineRecord(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "baseline", name: "record", usage: "record a checkout's facts, or print a wheel's",
		about: `Writes baseline.json, digests.json and blobs.json below --patches from the base commit of the checkout: blob ids of the paths
that the series touches, line digests of them and of the paths that had digests, and the blob ids that the patches give. No
source text is stored.

  mpsforge baseline record --baseline v2.6.0 --checkout pytorch --patches ./patches
  mpsforge baseline record --baseline v2.6.0 --path torch/mps/event.py    digests of one file more

With --wheel it reads PyTorch's wheel for macOS instead of a checkout, and prints what that says of the MPS backend as JSON: exported
names, tables of virtual functions, Objective-C classes and selectors, Metal kernels, names in torch._C. A diff of two versions shows
what a series must be adapted to.

  pip download torch==2.14.1 --platform macosx_14_0_arm64 --python-version 312 --no-deps --only-binary=:all:
  mpsforge baseline record --wheel torch-2.14.1-*.whl > v2.14.1.json`,
		flags: checkoutFlags(&cli.StringSliceFlag{Name: "path", Usage: "also record digests of `PATH` in the checkout; may be repeated"},
			&cli.StringFlag{Name: "wheel", Usage: "print the facts of PyTorch's macOS wheel `FILE` and write nothing"}),
		action: func(ctx context.Context, c call) (result, error) {
			if wheel := c.String("wheel"); wheel != "" {
				return wheelFacts(wheel)
			}
			dir := c.String("patches")
			if dir == "" {
				return result{}, usagef("baseline record needs --patches, the folder to write to")
			}
			checkout, series, err := c.openCheckout(ctx)
			if err != nil {
				return result{}, err
			}
			defer checkout.Close()
			facts, err := checkout.RecordBaseline(ctx, series, c.StringSlice("path"))
			if err != nil {
				return result{}, err
			}
			files, err := patches.FactFiles(facts.Baseline, &facts.Digests, facts.Blobs)
			if err != nil {
				return result{}, err
			}
			if _, err := patches.Rewrite(filepath.Join(dir, facts.Baseline.Name), files, nil); err != nil {
				return result{}, err
			}
			message := fmt.Sprintf("recorded digests of %d files, %d touched paths and the blob ids of %d patches of %s",
				len(facts.Digests.Files), len(facts.Baseline.Touched), len(facts.Blobs.Patches), facts.Baseline.Name)
			return result{value: facts.Baseline, message: message, text: func(w io.Writer) { fmt.Fprintln(w, message) }}, nil
		},
	})
}

func wheelFacts(file string) (result, error) {
	facts, err := mac.ReadWheel(file)
	if err != nil {
		return result{}, err
	}
	return result{value: facts, text: func(w io.Writer) {
		out := json.NewEncoder(w)
		out.SetIndent("", " ")
		_ = out.Encode(facts) // standard output is gone: there is nobody left to read it
	}}, nil
}

func baselineChoose(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "baseline", name: "choose", usage: "print the baseline that fetch would choose here", ui: workUI,
		about: `It is v2.9.1 if GitHub can be reached or the cache has its tree (trees/v2.9.1), else v2.6.0, which Debian has; a message says
which and why. For scripts that name folders after it.

  baseline=$(mpsforge baseline choose)`,
		flags: []cli.Flag{patchesFlag()},
		action: func(ctx context.Context, c call) (result, error) {
			files, err := c.seriesFiles()
			if err != nil {
				return result{}, err
			}
			cache, err := cacheDir()
			if err != nil {
				return result{}, err
			}
			series, err := fork.Choose(ctx, files, "", &fork.FetchOptions{Cache: cache}, c.sink)
			if err != nil {
				return result{}, err
			}
			name := series.Baseline.Name
			return result{value: series.Baseline, message: name, text: func(w io.Writer) { fmt.Fprintln(w, name) }}, nil
		},
	})
}
