// Package reference is the stage that checks what other stages judge by: the software Metal, the reference pool and the reference slot
// allocator. It needs no checkout, and nothing of PyTorch belongs in it.
package reference

import (
	"context"
	"fmt"

	"mpsforge/internal/cxx"
	"mpsforge/native/slots"
	"mpsforge/reports"
	"mpsforge/validate/judge/allocator"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/programs"
	"mpsforge/validate/stage"
)

// Stage is the stage reference of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "reference", Question: "does the reference pool follow the pool's specification, without races?",
		Needs: []stage.Need{stage.NeedsReference},
		Run:   runStage,
	}
}

// runStage judges the judges: the software Metal, the reference pool, and the reference slot allocator that the
// checkout's is compared with.
func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	return checkReference(ctx, stage.CheckOptionsOf(env), report)
}

func checkReference(ctx context.Context, o stage.CheckOptions, report *reports.Stage) error {
	reference, err := slots.Reference()
	if err != nil {
		return stage.Skipf("%v", err)
	}
	subject, err := allocator.Reference()
	if err != nil {
		return err
	}
	report.Facts = append(report.Facts, reports.Fact{Name: "identity", Value: reference.Identity()},
		reports.Fact{Name: "backend on Apple's Metal", Value: "not run: it needs a Mac"})
	checked, err := corpus.Programs()
	if err != nil {
		return err
	}
	c := stage.NewChecker(o, report, "reference")
	c.Total = allocator.InProcess + allocator.Sanitizers + engineSanitizers + len(checked) + len(programs.Shapes) + len(programs.Histories())
	tools := cxx.Find(ctx, o.Cache)
	return c.RunGroups(ctx, report,
		func() []reports.Check { return allocator.CheckInProcess(ctx, c, reference) },
		func() []reports.Check { return allocator.CheckSanitizers(ctx, c, tools, subject) },
		func() []reports.Check { return checkEngineSanitizers(ctx, c, tools, checked) },
		func() []reports.Check { return checkMetal(ctx, c, checked) },
		func() []reports.Check { return checkPool(ctx, c, checked) },
		func() []reports.Check { return checkGuards(ctx, c) },
		func() []reports.Check { return checkPoolSchedules(ctx, c, checked) },
		func() []reports.Check { return checkPoolHistories(ctx, c) })
}

// checkGuards is the first half of the guard protocol's proof: random programs that pass tensors around. None may
// deadlock, have a race or a wrong value.
func checkGuards(ctx context.Context, c *stage.Checker) []reports.Check {
	count, size := 200, 8
	runs := runsOf{free: 4, drawn: 20}
	if c.Quick {
		count, size, runs = 8, 4, runsOf{free: 2, drawn: 4}
	}
	var checks []reports.Check
	for _, shape := range programs.Shapes {
		check := reports.Check{Name: "guards: " + shape.Name, Rule: "16, 17", Verdict: reports.Passed}
		checks = append(checks, c.Check(ctx, check, func(check *reports.Check) {
			for i := 0; i < count && check.Verdict == reports.Passed && ctx.Err() == nil; i++ {
				text := shape.Build(c.Seed+uint64(i), 1+i%size)
				if problem, _, _ := runProgram(ctx, c, text, corpus.Clean, runs); problem != "" {
					check.Verdict, check.Detail, check.Output = reports.Failed, problem, text
				}
			}
			if check.Verdict == reports.Passed {
				check.Detail = fmt.Sprintf("%d programs, %d runs each", count, runs.free+runs.drawn)
			}
		}))
	}
	c.Count("guard programs", int64(count*len(checks)))
	return checks
}

// checkPoolSchedules is the other half: all schedules of small cases that differ from the default one in a few places.
func checkPoolSchedules(ctx context.Context, c *stage.Checker, programs []corpus.Program) []reports.Check {
	runs := runsOf{search: 1_000_000, deviations: 2, whole: true}
	if c.Quick {
		runs.deviations = 1
	}
	var checks []reports.Check
	for _, scenario := range corpus.Of(programs, corpus.Schedules) {
		if ctx.Err() != nil {
			break
		}
		check := checkProgram(ctx, c, checkOf(scenario), scenario.Text, scenario.Expect, runs)
		if check.Verdict == reports.Passed {
			check.Detail += fmt.Sprintf(", all with at most %d deviations from the default one", runs.deviations)
		}
		checks = append(checks, check)
	}
	return checks
}
