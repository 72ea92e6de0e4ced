package reference

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// runsOf says how a program is run.
type runsOf struct {
	free, drawn uint64 // runs
	// search is the number of schedules at most, with so many deviations; 0: none. whole: all there are must have run.
	search     uint64
	deviations int
	whole      bool
}

const (
	// freeDelay is what the software GPU waits at most before a command: many times a thread switch, so that threads
	// get into each other's way, and little against a run.
	freeDelay = 200 * time.Microsecond
	// chunk is the number of runs between two looks at the context.
	chunk = 100
)

// unexpected are the findings that a result should not have.
func unexpected(w corpus.Expectation, result *script.Result) []reports.Finding {
	var all []reports.Finding
	for _, f := range result.Findings {
		if !w.Matches(f) && len(all) < process.MostFindings {
			all = append(all, process.Report(f))
		}
	}
	return all
}

// runProgram runs a program in every way asked for and returns what is wrong, with the findings it should not have, or an
// empty text and what was done.
func runProgram(ctx context.Context, c *stage.Checker, text string, want corpus.Expectation, runs runsOf) (problem, detail string, found []reports.Finding) {
	var done, schedules uint64
	try := func(options script.Options, how string) string {
		options.Stall = c.Patience
		result, err := script.Run(ctx, text, options)
		if err != nil {
			return err.Error()
		}
		if options.Mode == script.Search {
			schedules += result.Runs
			if runs.whole && !result.Complete {
				return fmt.Sprintf("there are more than %d schedules", result.Runs)
			}
		} else {
			done += result.Runs
		}
		if problem := want.Problem(result); problem != "" {
			found = unexpected(want, result)
			return fmt.Sprintf("%s: %s; to see it again: %s", how, problem, repeat(c, options, problem, text))
		}
		return ""
	}
	for _, way := range []struct {
		mode  script.Mode
		runs  uint64
		delay time.Duration
		how   string
	}{
		{script.Free, runs.free / 2, 0, "freely"},
		{script.Free, runs.free - runs.free/2, freeDelay, "freely, with delays"},
		{script.Drawn, runs.drawn, 0, "under the scheduler"},
	} {
		for first := uint64(0); first < way.runs && ctx.Err() == nil; first += chunk {
			options := script.Options{Mode: way.mode, Seed: c.Seed + first, Runs: min(chunk, way.runs-first), MaxDelay: way.delay}
			if problem := try(options, way.how); problem != "" {
				return problem, "", found
			}
		}
	}
	if runs.search > 0 && ctx.Err() == nil {
		options := script.Options{Mode: script.Search, Seed: c.Seed, Runs: runs.search, Deviations: runs.deviations}
		if problem := try(options, "schedule search"); problem != "" {
			return problem, "", found
		}
	}
	c.Count("program runs", int64(done))
	c.Count("interleavings", int64(schedules))
	var parts []string
	if done > 0 {
		parts = append(parts, fmt.Sprintf("%d seeds", done))
	}
	if schedules > 0 {
		parts = append(parts, fmt.Sprintf("%d schedules", schedules))
	}
	return "", strings.Join(parts, ", "), nil
}

// exampleOf finds the seed or schedule that a problem's text ends in.
var exampleOf = regexp.MustCompile(`\((seed|schedule) ([^()]*)\)$`)

// repeat keeps the program and returns the command that runs it the same way again.
func repeat(c *stage.Checker, options script.Options, problem, text string) string {
	digest := sha256.Sum256([]byte(text))
	path := filepath.Join(c.Artifacts, fmt.Sprintf("program-%x.txt", digest[:6]))
	if err := os.MkdirAll(c.Artifacts, 0o755); err != nil {
		return err.Error()
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err.Error()
	}
	command := []string{"mpsforge metal run"}
	example := exampleOf.FindStringSubmatch(problem)
	switch {
	case options.Mode == script.Search && example == nil:
		command = append(command, "--search", fmt.Sprint(options.Deviations))
	case options.Mode == script.Search:
		command = append(command, "--schedule", strconv.Quote(example[2]))
	case options.Mode == script.Drawn:
		command = append(command, "--steps")
	default:
		command = append(command, "--delay", options.MaxDelay.String())
	}
	if options.Mode != script.Search {
		seed, runs := fmt.Sprint(options.Seed), options.Runs
		if example != nil {
			seed, runs = example[2], 1
		}
		command = append(command, "--seed", seed, "--runs", fmt.Sprint(runs))
	}
	return strings.Join(append(command, path), " ")
}

// checkProgram makes a check of one program.
func checkProgram(ctx context.Context, c *stage.Checker, check reports.Check, text string, want corpus.Expectation, runs runsOf) reports.Check {
	return c.Check(ctx, check, func(check *reports.Check) {
		problem, detail, found := runProgram(ctx, c, text, want, runs)
		check.Verdict, check.Detail, check.Findings = reports.Passed, detail, found
		if problem != "" {
			check.Verdict, check.Detail, check.Output = reports.Failed, problem, text
		}
	})
}

// checkMetal runs the corpus of the checker and the programs that break a rule each.
func checkMetal(ctx context.Context, c *stage.Checker, programs []corpus.Program) []reports.Check {
	runs := runsOf{free: 200, drawn: 1000}
	if c.Quick {
		runs = runsOf{free: 4, drawn: 40}
	}
	var checks []reports.Check
	for _, program := range slices.Concat(corpus.Of(programs, corpus.Order), corpus.Of(programs, corpus.Metal)) {
		if ctx.Err() != nil {
			return checks
		}
		own := runs
		switch want := program.Expect; {
		case want.Some && want.Kind == script.Race:
			own = runsOf{search: 100_000, deviations: script.Unbounded, whole: true}
		case want.Some:
			own = runsOf{search: 20_000, deviations: 2}
		case want.Kind == script.Deadlock: // freely, the watchdog takes its time
			own.free = 2
		}
		checks = append(checks, checkProgram(ctx, c, checkOf(program), program.Text, program.Expect, own))
	}
	c.Count("metal programs", int64(len(checks)))
	return checks
}

// checkOf is the check of a program, before it has run.
func checkOf(program corpus.Program) reports.Check {
	return reports.Check{Name: program.Group + ": " + program.Name, Rule: program.Rules}
}

// checkPool runs the scenarios of the pool.
func checkPool(ctx context.Context, c *stage.Checker, programs []corpus.Program) []reports.Check {
	var checks []reports.Check
	for _, scenario := range corpus.Of(programs, corpus.Pool) {
		if ctx.Err() != nil {
			return checks
		}
		runs := runsOf{free: 100, drawn: 1000}
		if c.Quick {
			runs = runsOf{free: 4, drawn: 40}
		}
		if scenario.Freely {
			runs = runsOf{free: runs.free}
		}
		checks = append(checks, checkProgram(ctx, c, checkOf(scenario), scenario.Text, scenario.Expect, runs))
	}
	c.Count("pool scenarios", int64(len(checks)))
	return checks
}
