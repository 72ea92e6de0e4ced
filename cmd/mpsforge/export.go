package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

func exportCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "export", usage: "write the checkout's commits as patch files",
		about: `The maintainer's loop: mpsforge apply, then commit, amend and reorder in the checkout as you like (git commit --amend,
git rebase -i), then export: each commit becomes one patch file in canonical form, with its author, date, message and
trailers; series and the touched paths in baseline.json follow. The user's git configuration has no effect. Exporting
what was just applied changes no byte. Patches keep their names through rewording and reordering; a new one is named
after its subject, or by --name.

  mpsforge export --checkout pytorch --baseline v2.6.0 --out patches/v2.6.0
  mpsforge export --out patches/v2.9.1 --name HEAD=stream-pool     the newest commit is the patch stream-pool
  mpsforge export --out patches/v2.9.1 --check                     show what would change; exit code 1 if anything would
  mpsforge export --out patches/v2.9.1 --cumulative                also the whole change as one diff, cumulative.patch`,
		flags: checkoutFlags(
			&cli.StringFlag{Name: "out", Usage: "`DIR` of the baseline's patches to write (default: that baseline's folder below --patches)"},
			&cli.StringSliceFlag{Name: "name", Usage: "`REVISION=NAME`: name the patch of that commit NAME; may be repeated"},
			&cli.BoolFlag{Name: "drop", Usage: "remove patches that have no commit"},
			&cli.BoolFlag{Name: "cumulative", Usage: "write the whole change as one diff as well"},
			&cli.BoolFlag{Name: "check", Usage: "only show what would change; write nothing"}),
		action: func(ctx context.Context, c call) (result, error) {
			options := fork.ExportOptions{Dir: c.String("out"), Drop: c.Bool("drop"), Cumulative: c.Bool("cumulative"), Check: c.Bool("check"),
				Names: map[string]string{}}
			for _, pair := range c.StringSlice("name") {
				revision, name, found := strings.Cut(pair, "=")
				if !found {
					return result{}, usagef("--name %s: write it as REVISION=NAME", pair)
				}
				options.Names[revision] = strings.TrimSuffix(name, ".patch")
			}
			checkout, series, err := c.openOut(ctx, options.Dir)
			if err != nil {
				return result{}, err
			}
			defer checkout.Close()
			if options.Dir == "" && c.String("patches") == "" {
				return result{}, usagef("export needs --out, the folder of the baseline's patches, such as patches/%s", series.Baseline.Name)
			}
			options.Dir = cmp.Or(options.Dir, filepath.Join(c.String("patches"), series.Baseline.Name))
			exported, err := checkout.Export(ctx, series, options, c.sink)
			if err != nil {
				return result{}, err
			}
			message := fmt.Sprintf("patches: %d, files changed: %d", len(exported.Patches), len(exported.Files))
			if exported.Check {
				message = fmt.Sprintf("patches: %d, files that would change: %d", len(exported.Patches), len(exported.Files))
			}
			found := result{value: exported, message: message, text: func(w io.Writer) {
				printExport(w, exported)
				fmt.Fprintf(w, "%s: %s\n", exported.Dir, message)
			}}
			if exported.Check && len(exported.Files) > 0 {
				return found, silentError{exitFailed, fmt.Sprintf("%s differs from the commits of %s: %s", exported.Dir, exported.Checkout,
					strings.Join(exported.Files, ", "))}
			}
			return found, nil
		},
	})
}

// openOut opens the checkout with the series that lies in the folder out, when one does, else with the usual one.
func (c call) openOut(ctx context.Context, out string) (*fork.Checkout, *patches.Series, error) {
	if out == "" {
		files, err := c.seriesFiles()
		if err != nil {
			return nil, nil, err
		}
		return c.openWith(ctx, files, c.String("baseline"), false)
	}
	name := filepath.Base(filepath.Clean(out))
	if wanted := c.String("baseline"); wanted != "" && wanted != name {
		return nil, nil, usagef("--out %s is the folder of baseline %s, --baseline says %s; a baseline's folder has its name", out, name, wanted)
	}
	if err := c.finishRewrite(out); err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(filepath.Join(out, patches.BaselineFile)); err == nil {
		return c.openWith(ctx, os.DirFS(filepath.Dir(filepath.Clean(out))), name, false)
	}
	files, err := c.seriesFiles()
	if err != nil {
		return nil, nil, err
	}
	checkout, series, err := c.openWith(ctx, files, name, false)
	if errors.Is(err, patches.ErrUnknownBaseline) {
		return nil, nil, usagef("--out %s: the folder's name says which baseline it is of, such as %s: %v", out,
			filepath.Join(out, patches.DefaultBaseline), err)
	}
	return checkout, series, err
}

// finishRewrite ends what a run that was cut off left half written in a folder of patches, unless this one writes nothing.
func (c call) finishRewrite(dir string) error {
	if c.Bool("check") {
		return nil
	}
	finished, err := patches.FinishRewrite(dir)
	if finished {
		c.sink.Emit(events.Message{Level: events.Warning, Text: "finished writing the series into " + dir + ", which an earlier run had begun"})
	}
	return err
}

func printExport(w io.Writer, exported *fork.Exported) {
	for _, patch := range exported.Patches {
		fmt.Fprintf(w, "%-28s %s\n", patch.Name, describeExported(patch))
	}
	for _, name := range exported.Dropped {
		fmt.Fprintf(w, "%-28s has no commit\n", name)
	}
}

// describeExported says what changed in a patch: content and message apart from what only follows other changes.
func describeExported(patch fork.ExportedPatch) string {
	if patch.New {
		return "new"
	}
	var parts []string
	if patch.Old != "" {
		parts = append(parts, "was "+patch.Old)
	}
	if len(patch.Header) > 0 {
		parts = append(parts, "changed "+strings.Join(patch.Header, ", "))
	}
	for degree := patches.DegreeContent; degree > patches.DegreeNone; degree-- {
		var paths []string
		for _, path := range slices.Sorted(maps.Keys(patch.Paths)) {
			if patch.Paths[path] == degree {
				paths = append(paths, path)
			}
		}
		switch {
		case len(paths) == 0:
		case degree == patches.DegreeContent:
			parts = append(parts, "changed content: "+strings.Join(paths, ", "))
		default:
			parts = append(parts, fmt.Sprintf("only %s of %s", degree, strings.Join(paths, ", ")))
		}
	}
	return cmp.Or(strings.Join(parts, "; "), "unchanged")
}
