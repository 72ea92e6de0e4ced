package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/native/script"
	"mpsforge/validate/judge/corpus"
)

func metalRun(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "metal", name: "run", usage: "run a program on the software Metal", argument: "[FILE]",
		about: `FILE holds a program of the language that docs/dev/programs.md describes: what threads do to queues, buffers and events,
or to a stream pool. Prints every violation, race, deadlock and unmet expectation; exit code 4 if there is one.

Instead of FILE, --name takes a program of the stage reference: its name in a report, or that of its file in
validate/judge/corpus. The result is compared with what the program's front matter expects; exit code 4 if they differ. If
the expected finding exists in some schedules only, all schedules are searched, unless a flag chooses another way to run.

  mpsforge metal run race.txt                       once, freely
  mpsforge metal run --runs 1000 race.txt           a thousand seeds, with delays
  mpsforge metal run --steps --seed 7 race.txt      step by step, all choices drawn from seed 7
  mpsforge metal run --search 2 race.txt            all schedules with at most two deviations from the default one
  mpsforge metal run --schedule 12=1,40=2 race.txt  one schedule, as a result names it
  mpsforge metal run --list                         the programs that --name takes
  mpsforge metal run --name "two queues write"      one of them, against what is expected of it`,
		flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "run the program `NAME` of the reference stage"},
			&cli.BoolFlag{Name: "list", Usage: "list these programs, with what is expected of each, and run nothing"},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` to seed the first run's choices", Value: 1},
			&cli.Uint64Flag{Name: "runs", Usage: "run it `N` times, each with the next seed; with --search at most", Value: 1},
			&cli.BoolFlag{Name: "steps", Usage: "let the deterministic scheduler decide every step"},
			&cli.IntFlag{Name: "search", Usage: "run all schedules with at most `N` deviations from the default; -1 for all", Value: noSearch,
				DefaultText: "no search"},
			&cli.StringFlag{Name: "schedule", Usage: "run this `SCHEDULE` again"},
			&cli.DurationFlag{Name: "delay", Usage: "the software GPU waits up to `TIME` before a command", Value: 100 * time.Microsecond},
		},
		action: func(ctx context.Context, c call) (result, error) {
			if c.Bool("list") {
				return listPrograms(c)
			}
			program, source, err := chosenProgram(c)
			if err != nil {
				return result{}, err
			}
			options, err := runOptions(c, program)
			if err != nil {
				return result{}, err
			}
			found, err := script.Run(ctx, program.Text, options)
			if err != nil {
				return result{}, fmt.Errorf("%s: %w", source, err)
			}
			listed := result{value: found, message: summary(found), text: func(w io.Writer) { printRun(w, found) }}
			fine := found.Clean()
			if program.Name != "" {
				listed.text = func(w io.Writer) {
					printRun(w, found)
					fmt.Fprintf(w, "expected: %s\n", program.Expect)
				}
				problem := program.Expect.Problem(found)
				if fine = problem == ""; !fine {
					listed.message = fmt.Sprintf("%s: not as expected: %s", program.Name, problem)
				}
			}
			if !fine {
				return listed, silentError{exitVerify, listed.message}
			}
			return listed, nil
		},
	})
}

// chosenProgram is the program to run and where it comes from; one of a file has no name.
func chosenProgram(c call) (corpus.Program, string, error) {
	path, name := c.Args().First(), c.String("name")
	switch {
	case path != "" && name != "":
		return corpus.Program{}, "", usagef("metal run takes FILE or --name, not both")
	case name != "":
		program, err := corpus.Find(name)
		if errors.Is(err, corpus.ErrNoProgram) {
			err = usageError{err.Error()}
		}
		return program, name, err
	case path == "":
		return corpus.Program{}, "", usagef("metal run needs FILE, or --name NAME; --list lists the names")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return corpus.Program{}, "", fmt.Errorf("read program: %w", err)
	}
	return corpus.Program{Text: string(text)}, path, nil
}

func listPrograms(c call) (result, error) {
	if c.NArg() > 0 || c.String("name") != "" {
		return result{}, usagef("metal run --list runs nothing: leave out FILE and --name")
	}
	programs, err := corpus.Programs()
	if err != nil {
		return result{}, err
	}
	return result{value: programs, message: fmt.Sprintf("programs: %d", len(programs)), text: func(w io.Writer) {
		for _, program := range programs {
			fmt.Fprintf(w, "%s: %s\n  %s\n", program.Group, program.Name, program.Expect)
		}
	}}, nil
}

// noSearch is a number of deviations that nobody asks for.
const noSearch = math.MinInt

// mostSchedules bounds a search that says nothing about it.
const mostSchedules = 1_000_000

// someDeviations is how far a program that finds something in some schedules only is searched.
const someDeviations = 2

func runOptions(c call, program corpus.Program) (script.Options, error) {
	options := script.Options{Seed: c.Uint64("seed"), Runs: c.Uint64("runs"), MaxDelay: c.Duration("delay"), Stall: 10 * time.Second}
	if options.Runs == 0 {
		return options, usagef("--runs 0: at least 1")
	}
	ways := 0
	if c.Bool("steps") {
		options.Mode = script.Drawn
		ways++
	}
	if deviations := c.Int("search"); deviations != noSearch {
		if deviations < -1 {
			return options, usagef("--search %d: a number of deviations, or -1 for all schedules", deviations)
		}
		options.Mode, options.Deviations = script.Search, deviations
		if !c.IsSet("runs") {
			options.Runs = mostSchedules
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
	if ways == 0 && program.Expect.Some && !c.IsSet("runs") {
		options.Mode, options.Deviations, options.Runs = script.Search, someDeviations, mostSchedules
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
