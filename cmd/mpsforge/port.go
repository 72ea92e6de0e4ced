package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/internal/suggest"
	"mpsforge/patches"
)

func portCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "port", usage: "carry the series to another PyTorch version", ui: workUI,
		about: `Three-way merges in the object store, one patch at a time, from the checkout's baseline to another version; HEAD and
work tree stay as they are. The outcome of each patch is unchanged, moved (other line numbers only), merged, already upstream
(left out), or a conflict: then both sides are shown and written to files to edit, and --continue continues. The patch files
are written after the last patch.

  mpsforge port --to v2.6.0 --from trees/v2.6.0 --out patches/v2.6.0    another checkout has that version
  mpsforge port --to v2.6.0 --patch stream-pool --out patches/v2.6.0    that patch; the others there stay as they are
  mpsforge port --to main --out patches/main                            a commit of this repository
  mpsforge port --to main --check                                       what would happen? writes nothing
  mpsforge port --continue                                              when the conflicts are resolved
  mpsforge port --abort                                                 give it up`,
		flags: checkoutFlags(
			&cli.StringFlag{Name: "to", Usage: "`VERSION`: a baseline, or a commit"},
			&cli.StringFlag{Name: "from", Usage: "`DIR` of a repository that has the version, if the checkout's has not"},
			&cli.StringFlag{Name: "out", Usage: "`DIR` of the version's patches to write (default: the baseline's folder below --patches)"},
			&cli.StringSliceFlag{Name: "patch", Usage: "carry only the patch `NAME`; may be repeated"},
			&cli.BoolFlag{Name: "drop", Usage: "remove patches that the version's series has and this one has not"},
			&cli.BoolFlag{Name: "check", Usage: "only show what would happen; write nothing"},
			&cli.BoolFlag{Name: "continue", Usage: "go on after a conflict; --out and --drop may be given anew"},
			&cli.BoolFlag{Name: "abort", Usage: "give up after a conflict"}),
		action: port,
	})
}

func port(ctx context.Context, c call) (result, error) {
	resume, abort := c.Bool("continue"), c.Bool("abort")
	switch {
	case resume && abort:
		return result{}, usagef("--continue and --abort exclude each other")
	case (resume || abort) && (c.IsSet("to") || c.IsSet("from") || c.IsSet("patch") || c.IsSet("check")) || abort && (c.IsSet("out") || c.IsSet("drop")):
		return result{}, usagef("--continue and --abort use the flags that the port was begun with; leave the other flags out")
	case !resume && !abort && c.String("to") == "":
		return result{}, usagef("port needs --to, a baseline or a commit")
	}
	files, err := c.seriesFiles()
	if err != nil {
		return result{}, err
	}
	checkout, series, err := c.openWith(ctx, files, c.String("baseline"), false)
	if err != nil {
		return result{}, err
	}
	defer checkout.Close()
	if abort {
		to, err := checkout.AbortPort(ctx)
		if err != nil {
			return result{}, err
		}
		message := "the port to " + to + " is given up"
		return result{message: message, text: func(w io.Writer) { fmt.Fprintf(w, "%s: %s\n", checkout.Dir(), message) }}, nil
	}
	options := fork.PortOptions{To: c.String("to"), From: c.String("from"), Dir: c.String("out"), Drop: c.Bool("drop"), Check: c.Bool("check")}
	for _, name := range c.StringSlice("patch") {
		options.Only = append(options.Only, strings.TrimSuffix(name, ".patch"))
	}
	if resume {
		if options, err = checkout.StoppedPort(); err != nil {
			return result{}, err
		}
		options.Dir, options.Drop = cmp.Or(c.String("out"), options.Dir), options.Drop || c.Bool("drop")
	}
	target, err := c.portTarget(&options)
	if err != nil {
		return result{}, err
	}
	carry := func() (*fork.Ported, error) { return checkout.Port(ctx, series, target, options, c.sink) }
	if resume {
		carry = func() (*fork.Ported, error) { return checkout.ContinuePort(ctx, series, target, options, c.sink) }
	}
	ported, err := carry()
	if err != nil {
		return result{}, err
	}
	found := result{value: ported, text: func(w io.Writer) { printPort(w, ported) }}
	if len(ported.Conflicts) == 0 {
		found.message = fmt.Sprintf("patches: %d, files changed: %d", len(ported.Patches), len(ported.Files))
		if ported.Check {
			found.message = fmt.Sprintf("patches: %d, files that would change: %d", len(ported.Patches), len(ported.Files))
		}
		found.text = func(w io.Writer) {
			printPort(w, ported)
			fmt.Fprintf(w, "%s: %s\n", cmp.Or(ported.Dir, ported.Checkout), found.message)
		}
		return found, nil
	}
	last := ported.Patches[slices.IndexFunc(ported.Patches, func(p fork.PortedPatch) bool { return p.Outcome == fork.PortConflicts })]
	text := fmt.Sprintf("%s conflicts with %s, files: %d", last.Name, ported.To, len(ported.Conflicts))
	if ported.Fix != "" {
		text += fmt.Sprintf("; edit the files below %s, then run: %s (or %s)", ported.Fix, c.onCheckout("port --continue"), c.onCheckout("port --abort"))
	}
	return found, silentError{exitConflict, text}
}

// portTarget loads the baseline that is ported to, with the series it has now; a commit that is none gets the name of
// the folder to write.
func (c call) portTarget(options *fork.PortOptions) (*patches.Series, error) {
	files, err := c.seriesFiles()
	if err != nil {
		return nil, err
	}
	known, err := patches.Baselines(files)
	if err != nil {
		return nil, err
	}
	isBaseline, meant := slices.Contains(known, options.To), ""
	if !isBaseline {
		meant = suggest.Meant(options.To, known)
	}
	if options.Dir == "" && c.String("patches") != "" && isBaseline {
		options.Dir = filepath.Join(c.String("patches"), options.To)
	}
	if options.Dir == "" && !options.Check {
		return nil, usagef("port needs --out, the folder of patches to write, such as patches/%s%s", options.To, meant)
	}
	name := options.To
	if options.Dir != "" {
		if options.Dir, err = filepath.Abs(options.Dir); err != nil {
			return nil, err
		}
		if name = filepath.Base(options.Dir); isBaseline && name != options.To {
			return nil, usagef("--out %s is not a folder of baseline %s; a baseline's folder has its name", options.Dir, options.To)
		}
		if err := c.finishRewrite(options.Dir); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(options.Dir, patches.BaselineFile)); err == nil {
			return patches.Load(os.DirFS(filepath.Dir(options.Dir)), name)
		}
	}
	if isBaseline {
		return patches.Load(files, options.To)
	}
	return &patches.Series{Baseline: patches.Baseline{Schema: 1, Name: name, Tag: name, Absent: []string{}, Touched: map[string]*string{}}}, nil
}

func printPort(w io.Writer, ported *fork.Ported) {
	for _, patch := range ported.Patches {
		note := ""
		if len(patch.Present) > 0 && patch.Outcome != fork.PortUpstream {
			note = "; there already: " + strings.Join(patch.Present, ", ")
		}
		fmt.Fprintf(w, "%-28s %s%s\n", patch.Name, patch.Outcome, note)
	}
	for _, name := range ported.Dropped {
		fmt.Fprintf(w, "%-28s of %s is not among them\n", name, ported.To)
	}
	printConflicts(w, ported.To, ported.Conflicts)
}

func printConflicts(w io.Writer, version string, conflicts []fork.PortConflict) {
	for _, conflict := range conflicts {
		fmt.Fprintf(w, "%s: %s\n", conflict.Path, conflict.Why)
		for _, region := range conflict.Regions {
			fmt.Fprintf(w, "  line %d\n", region.Line)
			from, after := differing(region.Base, region.Theirs)
			printSide(w, version+" has", region.Ours, 0, 0)
			printSide(w, "the patch changes", region.Base, from, after)
			printSide(w, "into", region.Theirs, from, after)
		}
	}
}

// shownLines bounds how much of one side of a conflict is printed; the file to edit holds all.
const shownLines = 12

// differing counts the lines that two texts have alike at their beginnings and ends, but for three beside what differs.
func differing(a, b []string) (before, after int) {
	shorter := min(len(a), len(b))
	for before < shorter && a[before] == b[before] {
		before++
	}
	for after < shorter-before && a[len(a)-1-after] == b[len(b)-1-after] {
		after++
	}
	return max(0, before-3), max(0, after-3)
}

// printSide prints lines without so many at the beginning and at the end.
func printSide(w io.Writer, title string, lines []string, before, after int) {
	fmt.Fprintf(w, "    %s:\n", title)
	if before > 0 {
		fmt.Fprintf(w, "      ... lines before: %d\n", before)
	}
	end := min(len(lines)-after, before+shownLines)
	for _, line := range lines[before:end] {
		fmt.Fprintf(w, "      %s\n", line)
	}
	if end < len(lines) {
		fmt.Fprintf(w, "      ... lines after: %d\n", len(lines)-end)
	}
}
