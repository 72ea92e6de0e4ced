package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/native/script"
)

func metalRun(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "metal", name: "run", usage: "run a program on the software Metal and the reference pool", argument: "FILE",
		about: `FILE holds a program of the language that native/script/script.h describes: what threads do to queues, buffers and events,
or to a stream pool. Prints every violation, race, deadlock and unmet expectation; exit code 4 if there is one.

  mpsforge metal run race.txt                       once, freely
  mpsforge metal run --runs 1000 race.txt           a thousand seeds, with delays
  mpsforge metal run --steps --seed 7 race.txt      step by step, all choices drawn from seed 7
  mpsforge metal run --search 2 race.txt            all schedules with at most two deviations from the default one
  mpsforge metal run --schedule 12=1,40=2 race.txt  one schedule, as a result names it`,
		flags: []cli.Flag{
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that the first run's choices come from", Value: 1},
			&cli.Uint64Flag{Name: "runs", Usage: "how many `RUNS`, each with the next seed; of a search: at most", Value: 1},
			&cli.BoolFlag{Name: "steps", Usage: "let the deterministic scheduler decide every step"},
			&cli.IntFlag{Name: "search", Usage: "all schedules with at most so many `DEVIATIONS`; -1: all there are", Value: noSearch, DefaultText: "no search"},
			&cli.StringFlag{Name: "schedule", Usage: "run this `SCHEDULE` again"},
			&cli.DurationFlag{Name: "delay", Usage: "longest `TIME` that the software GPU waits before a command", Value: 100 * time.Microsecond},
		},
		action: func(ctx context.Context, c call) (result, error) {
			path := c.Args().First()
			text, err := os.ReadFile(path)
			if err != nil {
				return result{}, fmt.Errorf("read program: %w", err)
			}
			options, err := runOptions(c)
			if err != nil {
				return result{}, err
			}
			found, err := script.Run(ctx, string(text), options)
			if err != nil {
				return result{}, fmt.Errorf("%s: %w", path, err)
			}
			listed := result{value: found, message: summary(found), text: func(w io.Writer) { printRun(w, found) }}
			if !found.Clean() {
				return listed, silentError{exitVerify, listed.message}
			}
			return listed, nil
		},
	})
}

// noSearch is a number of deviations that nobody asks for.
const noSearch = -2

func runOptions(c call) (script.Options, error) {
	options := script.Options{Seed: c.Uint64("seed"), Runs: c.Uint64("runs"), MaxDelay: c.Duration("delay"), Stall: 10 * time.Second}
	ways := 0
	if c.Bool("steps") {
		options.Mode = script.Drawn
		ways++
	}
	if deviations := c.Int("search"); deviations != noSearch {
		options.Mode, options.Deviations = script.Search, deviations
		if !c.IsSet("runs") {
			options.Runs = 1_000_000
		}
		ways++
	}
	if c.IsSet("schedule") { // the default schedule has an empty name
		options.Mode, options.Schedule = script.Replay, c.String("schedule")
		ways++
	}
	if ways > 1 {
		return options, usagef("only one of --steps, --search and --schedule")
	}
	return options, nil
}

func summary(found *script.Result) string {
	text := fmt.Sprintf("runs: %d, unmet expectations: %d, findings: %d", found.Runs, len(found.Failures), len(found.Findings))
	if found.Complete {
		text += ", all schedules"
	}
	if found.Stuck {
		text += ", stuck"
	}
	return text
}

func printRun(w io.Writer, found *script.Result) {
	example := func(runs uint64, example string) string {
		if found.Runs == 1 {
			return ""
		}
		return fmt.Sprintf("\n  in runs: %d of %d, first: %s", runs, found.Runs, strings.TrimSpace(example))
	}
	for _, failure := range found.Failures {
		fmt.Fprintf(w, "not met: %s%s\n", failure.Text, example(failure.Runs, failure.Example))
	}
	for _, finding := range found.Findings {
		fmt.Fprintf(w, "%s: %s\n", finding.Kind, finding.Message)
		for _, more := range []struct{ name, text string }{{"first", finding.First}, {"second", finding.Second}, {"history", finding.History}} {
			if more.text != "" {
				fmt.Fprintf(w, "  %s: %s\n", more.name, more.text)
			}
		}
		fmt.Fprint(w, strings.TrimPrefix(example(finding.Runs, finding.Example)+"\n", "\n"))
	}
	fmt.Fprintln(w, summary(found))
}
