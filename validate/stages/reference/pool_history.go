package reference

import (
	"context"
	"fmt"
	"time"

	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/programs"
	"mpsforge/validate/stage"
)

// checkPoolHistories runs random histories of each shape and decides about them.
func checkPoolHistories(ctx context.Context, c *stage.Checker) []reports.Check {
	rounds, operations := 100, 2000
	if c.Quick {
		rounds, operations = 6, 400
	}
	var checks []reports.Check
	for _, shape := range programs.Histories() {
		check := reports.Check{Name: "history: " + shape.Name, Rule: shape.Rules, Verdict: reports.Passed}
		checks = append(checks, c.Check(ctx, check, func(check *reports.Check) {
			total := 0
			for round := 0; round < rounds && check.Verdict == reports.Passed && ctx.Err() == nil; round++ {
				seed := c.Seed + uint64(round)
				text, made := shape.Program(seed, operations)
				n, problem := judgeHistory(ctx, c, shape, text, made, seed)
				total += n
				if problem != "" {
					check.Verdict, check.Detail, check.Output = reports.Failed, fmt.Sprintf("%s (seed %d)", problem, seed), text
				}
			}
			if check.Verdict == reports.Passed {
				check.Detail = fmt.Sprintf("%d histories, %d operations, linearizable", rounds, total)
			}
			c.Count("operations", int64(total))
		}))
	}
	return checks
}

func judgeHistory(ctx context.Context, c *stage.Checker, shape programs.History, text string, made programs.Operations, seed uint64) (int, string) {
	delay := time.Duration(seed%2) * freeDelay / 4
	result, err := script.Run(ctx, text, script.Options{Mode: script.Free, Seed: seed, Runs: 1, MaxDelay: delay, Stall: c.Patience, Record: true})
	if err != nil {
		return 0, err.Error()
	}
	if problem := corpus.Clean.Problem(result); problem != "" {
		return 0, problem
	}
	return shape.Judge(result.Records, made, false, c.Artifacts, seed)
}
