package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/cache"
	"mpsforge/internal/events"
	"mpsforge/internal/suggest"
	"mpsforge/internal/words"
)

func cacheCommand(std streams) *cli.Command {
	command := newCommand(std, spec{
		name: "cache", usage: "show what the cache holds, by kind, size and age",
		about: `Everything in the cache can be fetched or made again. The folder is MPSFORGE_CACHE, else the system's for caches.

  mpsforge cache
  mpsforge cache clean --dry-run        what was not written to for 30 days
  mpsforge cache clean --days 0 hosts   all host builds`,
		action: func(ctx context.Context, c call) (result, error) { return c.showCache(ctx) },
	})
	command.Subcommands = []*cli.Command{newCommand(std, spec{
		name: "clean", parent: "cache", usage: "remove what has not been used for a while", argument: "[KIND...]",
		about: `Removes what was not written to for --days, of all kinds or of those that are named (mpsforge cache lists them). Only folders
of mpsforge's own are removed, only in a cache that carries its mark, and never through links. Do not run it while another
mpsforge is running, which would lose its files.

  mpsforge cache clean --dry-run
  mpsforge cache clean --days 7 reports
  mpsforge cache clean --days 0`,
		flags: []cli.Flag{
			&cli.IntFlag{Name: "days", Value: 30, Usage: "remove what was last written to more than `N` days ago"},
			&cli.BoolFlag{Name: "dry-run", Usage: "list it and remove nothing"}},
		action: func(ctx context.Context, c call) (result, error) { return c.cleanCache(ctx) },
	})}
	return command
}

// openCache is the cache folder, made and marked for a command that writes to it.
func openCache() (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	return dir, cache.Mark(dir)
}

// cachedKind is a line of mpsforge cache.
type cachedKind struct {
	cache.Kind
	Entries int       `json:"entries"`
	Bytes   int64     `json:"bytes"`
	Oldest  time.Time `json:"oldest"` // when its oldest and newest entries were last written to
	Newest  time.Time `json:"newest"`
}

func (c call) showCache(ctx context.Context) (result, error) {
	dir, entries, err := c.measureCache(ctx)
	if err != nil {
		return result{}, err
	}
	var kinds []cachedKind
	var total int64
	for _, kind := range cache.Kinds() {
		line := cachedKind{Kind: kind}
		for _, entry := range entries {
			if entry.Kind != kind.Name {
				continue
			}
			line.Entries++
			line.Bytes += entry.Bytes
			if line.Oldest.IsZero() || entry.Used.Before(line.Oldest) {
				line.Oldest = entry.Used
			}
			if entry.Used.After(line.Newest) {
				line.Newest = entry.Used
			}
		}
		total += line.Bytes
		if line.Entries > 0 {
			kinds = append(kinds, line)
		}
	}
	slices.SortStableFunc(kinds, func(a, b cachedKind) int { return cmp.Compare(b.Bytes, a.Bytes) })
	message := fmt.Sprintf("%s: %s", dir, words.Size(total))
	return result{value: map[string]any{"folder": dir, "bytes": total, "kinds": kinds}, message: message, text: func(w io.Writer) {
		fmt.Fprintln(w, message)
		for _, kind := range kinds {
			written := age(kind.Newest)
			if oldest := age(kind.Oldest); oldest != written {
				written += " to " + oldest
			}
			fmt.Fprintf(w, "  %-10s %9s  entries: %d, written to %s ago: %s\n", kind.Name, words.Size(kind.Bytes), kind.Entries, written, kind.About)
		}
	}, next: "mpsforge cache clean --dry-run"}, nil
}

func (c call) cleanCache(ctx context.Context) (result, error) {
	if c.Int("days") < 0 {
		return result{}, usagef("--days %d: at least 0", c.Int("days"))
	}
	var names []string
	for _, kind := range cache.Kinds() {
		names = append(names, kind.Name)
	}
	for _, name := range c.Args().Slice() {
		if !slices.Contains(names, name) {
			return result{}, usagef("the cache has no kind %q%s", name, suggest.Names(name, names))
		}
	}
	dir, entries, err := c.measureCache(ctx)
	if err != nil {
		return result{}, err
	}
	chosen := cache.Unused(entries, c.Args().Slice(), time.Duration(c.Int("days"))*24*time.Hour)
	done := "would be removed"
	if !c.Bool("dry-run") {
		done = "removed"
		if err := cache.CheckOurs(dir); err != nil {
			return result{}, err
		}
		unlock, err := host.Lock(ctx, dir, c.sink)
		if err != nil {
			return result{}, err
		}
		defer unlock()
		finish := events.Step(c.sink, "remove")
		chosen, err = cache.Remove(ctx, dir, chosen)
		if err != nil {
			finish(events.Failed, err.Error())
			return result{}, fmt.Errorf("%w (removed before that: %d)", err, len(chosen))
		}
		finish(events.OK, fmt.Sprintf("entries: %d", len(chosen)))
	}
	var total int64
	for _, entry := range chosen {
		total += entry.Bytes
	}
	message := fmt.Sprintf("%s: %s: %s in %d entries", dir, done, words.Size(total), len(chosen))
	return result{value: map[string]any{"folder": dir, "dry_run": c.Bool("dry-run"), "bytes": total, "entries": chosen}, message: message,
		text: func(w io.Writer) {
			for _, entry := range chosen {
				fmt.Fprintf(w, "%9s  %s\n", words.Size(entry.Bytes), entry.Path)
			}
			fmt.Fprintln(w, message)
		}}, nil
}

func (c call) measureCache(ctx context.Context) (dir string, entries []cache.Entry, err error) {
	if dir, err = cacheDir(); err != nil {
		return "", nil, err
	}
	finish := events.Step(c.sink, "measure the cache")
	if entries, err = cache.List(ctx, dir); err != nil {
		finish(events.Failed, err.Error())
		return "", nil, err
	}
	finish(events.OK, fmt.Sprintf("entries: %d", len(entries)))
	return dir, entries, nil
}

// age is how long ago something was.
func age(then time.Time) string {
	hours := int(time.Since(then).Hours())
	if hours < 1 {
		return "less than 1 h"
	}
	if hours < 48 {
		return fmt.Sprintf("%d h", hours)
	}
	return fmt.Sprintf("%d days", hours/24)
}
