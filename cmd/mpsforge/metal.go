package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/words"
	"mpsforge/patches"
	"mpsforge/validate/judge/crash"
)

func metalCommand(std streams) *cli.Command {
	return &cli.Command{
		Name: "metal", Usage: "explain Metal crashes; run Metal programs without a Mac", HideHelpCommand: true,
		Description: `  mpsforge metal explain                                     all crash signatures
  mpsforge metal explain 4
  mpsforge metal explain "commit an already committed command buffer"
  mpsforge metal classify ~/Library/Logs/DiagnosticReports/python3*.ips
  mpsforge metal run --runs 100 race.txt
  mpsforge metal run-shader --grid 64 --length out=64 f.metal  a kernel, with checks
  mpsforge metal order traces                                judge what programs did
  mpsforge metal compare facts-apple.json                    what a Mac's Metal did
  mpsforge metal selectors torch-2.9.1-*.whl                 what a wheel needs of Apple's API`,
		Action: showGroup,
		Subcommands: []*cli.Command{metalExplain(std), metalClassify(std), metalRun(std), metalRunShader(std), metalOrder(std), metalCompare(std),
			metalSelectors(std), metalObserve()},
	}
}

func metalExplain(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "metal", name: "explain", usage: "print what a crash text means", argument: "[SIGNATURE]",
		about: `SIGNATURE is a number, a name, or any text of the crash; without one, all are listed. Prints the meaning, the known
cause and the patches that address it; those that this version of the series does not have yet are marked.

  mpsforge metal explain                        the list
  mpsforge metal explain 4
  mpsforge metal explain invalid-kernel-dag
  mpsforge metal explain "A command encoder is already encoding to this command buffer"
  mpsforge metal explain "-[_MTLCommandBuffer commit]:683: failed assertion ..."
  mpsforge metal explain --baseline v2.6.0 10   marked by that baseline's series`,
		flags: []cli.Flag{baselineFlag(), patchesFlag()},
		action: func(_ context.Context, c call) (result, error) {
			series, err := c.series("")
			if err != nil {
				return result{}, err
			}
			if c.NArg() == 0 {
				all := crash.Signatures()
				return result{value: all, message: fmt.Sprintf("signatures: %d", len(all)), text: func(w io.Writer) { printSignatures(w, all) }}, nil
			}
			explained, err := crash.Explain(c.Args().First(), series)
			if err != nil {
				return result{}, err
			}
			return result{value: explained, message: explained.Name(), text: func(w io.Writer) { printExplained(w, explained, series) }}, nil
		},
	})
}

func printSignatures(w io.Writer, all []*crash.Signature) {
	for _, signature := range all {
		looks := append(append([]string{}, signature.Texts...), signature.Stacks...)
		if len(looks) == 0 {
			looks = []string{"prints nothing"}
		}
		fmt.Fprintf(w, "%-39s %s\n", signature.Name(), looks[0])
	}
}

// toDo is what a user can do about a crash.
var toDo = map[crash.Class]string{
	crash.ThreadClass: "Until your torch has the patches below, let only one thread use the device, or give each worker a process of its own. " +
		"mpsforge overlay build makes a wheel that puts the patches over pip's torch, in minutes; mpsforge run builds a patched torch, in hours. " +
		"Neither has run on a Mac.",
	crash.UnknownClass:   "Find out where it was, as above: what to do depends on it.",
	crash.NotThreadClass: "Threads are not the cause, so the patches do not help: report it to PyTorch.",
}

func printExplained(w io.Writer, e *crash.Explained, series *patches.Series) {
	fmt.Fprintf(w, "%s (%s)\n", e.Name(), e.Class)
	for _, text := range e.Texts {
		fmt.Fprintf(w, "  text: %s\n", text)
	}
	for _, stack := range e.Stacks {
		fmt.Fprintf(w, "  seen: %s\n", stack)
	}
	if e.Sites != "" {
		fmt.Fprintf(w, "  from: %s\n", e.Sites)
	}
	fmt.Fprintln(w)
	field := func(name, text string) {
		for i, line := range words.Wrap(text, helpWidth-len("Meaning: ")) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "%-8s %s\n", name, line)
		}
	}
	field("Meaning:", e.Meaning)
	field("Cause:", e.Cause)
	field("To do:", toDo[e.Class])
	fmt.Fprintln(w)
	for _, patch := range e.Patches {
		state := "in the series"
		if !slices.Contains(e.InSeries, patch) {
			state = "planned, not yet in the series for " + series.Baseline.Name
		}
		fmt.Fprintf(w, "Patch:   %s (%s)\n", patch, state)
	}
	if e.Remains != "" {
		field("Remains:", e.Remains)
	}
	fmt.Fprintf(w, "Sources: %s\n", strings.Join(e.Sources, "\n         "))
}

func metalClassify(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "metal", name: "classify", usage: "find the crash signatures in logs and crash reports", argument: "FILE...",
		about: `Each FILE is a log, an Apple crash report (.crash or .ips), or what sample or spindump wrote about a hung process; at
most 64 MiB. The verdict is "thread class" (threads in the MPS backend explain it), "not thread class", or "unknown".

  mpsforge metal classify run.log
  mpsforge metal classify --json ~/Library/Logs/DiagnosticReports/python3*.ips
  mpsforge metal explain 4                      what a signature that was found means`,
		action: func(_ context.Context, c call) (result, error) {
			files := crash.Classify(c.Args().Slice())
			found := result{value: files, message: crash.Tally(files), text: func(w io.Writer) { printClassified(w, files) }}
			err := crash.Unreadable(files)
			for _, path := range c.Args().Slice() {
				if checkInput("", path) != nil {
					return found, usageError{err.Error()}
				}
			}
			return found, err
		},
	})
}

func printClassified(w io.Writer, files []crash.Classification) {
	for _, file := range files {
		if file.Error != "" {
			continue // the error says it
		}
		fmt.Fprintf(w, "%s: %s (%s)\n", file.File, file.Verdict, file.Kind)
		for _, match := range file.Matches {
			fmt.Fprintf(w, "  %s: %s, %s\n    %s\n", match.Where(), match.Signature, match.Class, match.Text)
		}
		if file.More > 0 {
			fmt.Fprintf(w, "  and %d more places\n", file.More)
		}
	}
}
