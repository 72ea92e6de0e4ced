// Package python is the stage that runs the Python parallel tests on device mps and puts them into tables. How a test runs in its
// process and how its end is judged is in package pytests, which the stage bench uses too.
package python

import (
	"context"
	"slices"

	"mpsforge/reports"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

// Stage is the stage python of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "python", Question: "do the Python parallel tests pass on device mps?",
		Needs:  []stage.Need{stage.NeedsTorch},
		Splits: true,
		Run:    runStage,
	}
}

// runStage runs the Python parallel tests.
func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	selected, err := pytests.SelectTests(pytests.Tests(), env.Python.Only)
	if err != nil {
		return err
	}
	selected = slices.DeleteFunc(selected, func(t pytests.Test) bool { return t.Section == pytests.BenchSection })
	if len(selected) == 0 {
		return stage.Skipf("no test of this stage matches %q", env.Python.Only)
	}
	var names []string
	for _, t := range selected {
		names = append(names, t.Name)
	}
	if err := env.Shard.Split(report, names); err != nil {
		return err
	}
	selected = slices.DeleteFunc(selected, func(t pytests.Test) bool { return !env.Shard.Has(t.Name) })
	patched, stock, err := pytests.Proven(ctx, env, report)
	if err != nil {
		return err
	}
	r := pytests.Runner{Env: env, Stage: report, Step: stage.StepName(report.Name)}
	if selected, err = r.WithPackages(ctx, selected, patched); err != nil {
		return err
	}
	if len(selected) == 0 {
		return stage.Skipf("the packages that the tests need are not available")
	}
	var jobs []pytests.Job
	for _, t := range selected {
		jobs = append(jobs, r.Jobs(t, patched)...)
		if stock != nil {
			jobs = append(jobs, r.StockJobs(t, stock)...)
		}
	}
	all, err := r.RunAll(ctx, jobs)
	if err != nil {
		return err
	}
	for _, t := range selected {
		of := func(s *pytests.Subject) []pytests.Job {
			return slices.DeleteFunc(slices.Clone(all), func(o pytests.Job) bool { return o.Test.Name != t.Name || o.Subject != s })
		}
		if stock != nil {
			r.JudgeStock(t, of(stock))
		}
		if ran := of(patched); len(ran) > 0 { // else another one's failure was the first, and ended the stage
			if err := r.Judge(t, ran); err != nil {
				return err
			}
		}
	}
	tables(report, all, patched, stock)
	return pytests.HarnessOnly(patched, report)
}
