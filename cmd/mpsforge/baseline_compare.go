package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/fork/git"
	"mpsforge/fork/macos/mac"
	"mpsforge/patches"
)

// comparison is what baseline compare found.
type comparison struct {
	Date         string             `json:"date"`
	Baseline     string             `json:"baseline"`
	SeriesDigest string             `json:"series_digest"`
	Wheel        comparedWheel      `json:"wheel"`
	With         *comparedWheel     `json:"with"` // the baseline's own; null without --with
	Hunks        []patches.HunkFate `json:"hunks"`
	Changes      []mac.Change       `json:"changes"` // empty without --with
}

type comparedWheel struct {
	File    string `json:"file"`
	SHA256  string `json:"sha256"`
	Minimum string `json:"minimum"` // the oldest macOS that it is for
}

func baselineCompare(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "baseline", name: "compare", usage: "try the series on a newer PyTorch's headers",
		about: `For a release of PyTorch whose sources are not at hand. It tries each hunk of the series on the files that the wheel for
macOS holds, which are headers and Python files, and prints as Markdown how many apply, conflict, or are there already. Of .mm and .cpp files
no wheel says anything: that all hunks here apply does not mean that the series does.

With --with, the wheel of the baseline itself, it also lists exported functions, tables of virtual functions, Objective-C selectors and
classes, and names in torch._C that differ between the two wheels and that the series names.

  pip download torch==2.14.1 --platform macosx_14_0_arm64 --python-version 312 --no-deps --only-binary=:all:
  pip download torch==2.9.1 --platform macosx_11_0_arm64 --python-version 312 --no-deps --only-binary=:all:
  mpsforge baseline compare --wheel torch-2.14.1-*.whl
  mpsforge baseline compare --wheel torch-2.14.1-*.whl --with torch-2.9.1-*.whl > docs/dev/newer-releases/2.14.1.md
  mpsforge baseline compare --json --wheel torch-2.14.1-*.whl    each hunk, with what it lacks`,
		flags: []cli.Flag{&cli.StringFlag{Name: "wheel", Usage: "PyTorch's wheel for macOS of the newer release, `FILE`"},
			&cli.StringFlag{Name: "with", Usage: "compare it with the baseline's own wheel for macOS, `FILE`"},
			baselineFlag(), patchesFlag()},
		action: func(_ context.Context, c call) (result, error) {
			if c.String("wheel") == "" {
				return result{}, usagef("baseline compare needs --wheel, PyTorch's wheel for macOS of the newer release")
			}
			found, series, err := c.compareWheels()
			if err != nil {
				return result{}, err
			}
			return result{value: found, message: found.summary(), text: func(w io.Writer) { found.print(w, series) }}, nil
		},
	})
}

func (c call) compareWheels() (found *comparison, series *patches.Series, err error) {
	if series, err = c.series(""); err != nil {
		return nil, nil, err
	}
	newer, err := mac.ReadWheel(c.String("wheel"))
	if err != nil {
		return nil, nil, err
	}
	sources, err := mac.OpenSources(c.String("wheel"))
	if err != nil {
		return nil, nil, err
	}
	defer sources.Close()
	found = &comparison{Date: time.Now().UTC().Format(time.DateOnly), Baseline: series.Baseline.Name, SeriesDigest: series.Digest(),
		Wheel: comparedWheel{newer.File, newer.SHA256, newer.Minimum}, Changes: []mac.Change{}}
	if found.Hunks, err = series.Elsewhere(sources.Read); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.String("wheel"), err)
	}
	if c.String("with") == "" {
		return found, series, nil
	}
	if err := isWheelOf(c.String("with"), &series.Baseline); err != nil {
		return nil, nil, err
	}
	own, err := mac.ReadWheel(c.String("with"))
	if err != nil {
		return nil, nil, err
	}
	facts, err := series.MacFacts()
	if err != nil && !errors.Is(err, patches.ErrNoMacFacts) {
		return nil, nil, err
	}
	found.With, found.Changes = &comparedWheel{own.File, own.SHA256, own.Minimum}, mac.Changes(own, newer, series, facts.Bound)
	return found, series, nil
}

// isWheelOf compares a wheel's sources with the blob ids of a baseline.
func isWheelOf(file string, baseline *patches.Baseline) error {
	sources, err := mac.OpenSources(file)
	if err != nil {
		return err
	}
	defer sources.Close()
	for _, path := range slices.Sorted(maps.Keys(baseline.Touched)) {
		text, seen, err := sources.Read(path)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if want := baseline.Touched[path]; seen && (want == nil) != (text == nil) || seen && want != nil && git.BlobID(text) != *want {
			return usagef("--with %s is not the wheel of %s, as its %s is another: give that one", file, baseline.Name, path)
		}
	}
	return nil
}

// The order of the columns.
var fates = []patches.Fate{patches.FateApplies, patches.FatePresent, patches.FateConflicts, patches.FateBuilds, patches.FateAbsent, patches.FateOwn,
	patches.FateUnseen}

// count counts the hunks of a patch by their fate; those of all patches for "".
func (c *comparison) count(patch string) (counts []int) {
	for _, fate := range fates {
		n := 0
		for _, hunk := range c.Hunks {
			if hunk.Fate == fate && (patch == "" || hunk.Patch == patch) {
				n++
			}
		}
		counts = append(counts, n)
	}
	return counts
}

func (c *comparison) summary() string {
	n := c.count("")
	return fmt.Sprintf("of %d hunks in files that %s holds, %d apply, %d are there already, %d conflict, %d build on those, and %d have no file; "+
		"%d are in files of the series' own, %d in files that no wheel holds, such as .mm", n[0]+n[1]+n[2]+n[3]+n[4], c.Wheel.File, n[0], n[1], n[2],
		n[3], n[4], n[5], n[6])
}

func (c *comparison) print(w io.Writer, series *patches.Series) {
	fmt.Fprintf(w, "# %s and the series of %s\n\nMade on %s by\n\n```text\nmpsforge baseline compare --wheel %s", c.Wheel.File, c.Baseline, c.Date,
		c.Wheel.File)
	if c.With != nil {
		fmt.Fprintf(w, " --with %s", c.With.File)
	}
	fmt.Fprintf(w, "\n```\n\nOnly what the wheels hold was looked at: headers, Python files and libraries, and no .mm or .cpp file. "+
		"Series digest of %s: %s.\n", c.Baseline, c.SeriesDigest)
	table(w, []string{"wheel", "for macOS", "SHA-256"})
	for _, wheel := range []*comparedWheel{&c.Wheel, c.With} {
		if wheel != nil {
			row(w, wheel.File, wheel.Minimum, wheel.SHA256)
		}
	}
	fmt.Fprintf(w, "\n## Hunks\n\n%s.\n", sentence(c.summary()))
	head := []string{"patch"}
	for _, fate := range fates {
		head = append(head, string(fate))
	}
	table(w, head)
	for _, patch := range series.Patches {
		printCounts(w, patch.Name, c.count(patch.Name))
	}
	printCounts(w, "all", c.count(""))
	fmt.Fprint(w, "\n## What does not apply\n\nLine is that of the hunk in the patch file. What it lacks is the first of its lines that the file "+
		"has nowhere; if it has them all, it does not have them together.\n")
	table(w, []string{"patch", "line", "file", "hunk", "lacks"})
	for _, hunk := range c.Hunks {
		if slices.Contains([]patches.Fate{patches.FateConflicts, patches.FateBuilds, patches.FateAbsent}, hunk.Fate) {
			row(w, hunk.Patch, fmt.Sprint(hunk.PatchLine), hunk.Path, string(hunk.Fate), quoted(hunk.Missing))
		}
	}
	if c.With == nil {
		return
	}
	fmt.Fprintf(w, "\n## Names\n\nWhat differs between %s and %s, as far as a patch names it: a function, or its class, on a line that the patch "+
		"adds or takes away; "+
		"a selector, a class of Objective-C or one with virtual functions on any line of it. Overlays take from the wheel what mac.json names. "+
		"Where the linker has put equal functions together some have no name: a table may have more new functions than are named.\n", c.Wheel.File, c.With.File)
	table(w, []string{"kind", "name", "what", "named by"})
	for _, change := range c.Changes {
		row(w, change.Kind, quoted(change.Name), change.What, strings.Join(change.NamedBy, ", "))
	}
}

func printCounts(w io.Writer, name string, counts []int) {
	cells := []string{name}
	for _, n := range counts {
		cells = append(cells, fmt.Sprint(n))
	}
	row(w, cells...)
}

// table begins a table of Markdown.
func table(w io.Writer, head []string) {
	fmt.Fprintln(w)
	row(w, head...)
	fmt.Fprintln(w, strings.Repeat("| --- ", len(head))+"|")
}

func row(w io.Writer, cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

// quoted quotes source text for a cell.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}
