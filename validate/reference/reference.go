// Package reference is the stage that judges the judges: the software Metal, the reference pool and the reference slot
// allocator. It needs no checkout, and nothing of PyTorch belongs in it.
package reference

import (
	"context"
	"fmt"
	"time"

	"mpsforge/internal/cxx"
	"mpsforge/native/slots"
	"mpsforge/reports"
	"mpsforge/validate/allocator"
	"mpsforge/validate/stage"
)

// Stage is the stage reference of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "reference", Question: "does the reference pool obey the pool's specification, race-free?",
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
	c := stage.NewChecker(o, report, "reference")
	tools := cxx.Find(ctx, o.Cache)
	return c.RunGroups(ctx, report,
		func() []reports.Check { return allocator.CheckInProcess(ctx, c, reference) },
		func() []reports.Check { return allocator.CheckSanitizers(ctx, c, tools, subject) },
		func() []reports.Check { return checkEngineSanitizers(ctx, c, tools) },
		func() []reports.Check { return checkMetal(ctx, c) },
		func() []reports.Check { return checkPool(ctx, c) },
		func() []reports.Check { return checkHandOver(ctx, c) },
		func() []reports.Check { return checkPoolSchedules(ctx, c) },
		func() []reports.Check { return checkPoolHistories(ctx, c) })
}

// checkHandOver is the first half of the hand-over protocol's proof: random programs that pass tensors around. None may
// deadlock, have a race or a wrong value.
func checkHandOver(ctx context.Context, c *stage.Checker) []reports.Check {
	programs, size := 200, 8
	runs := runsOf{free: 4, drawn: 20}
	if c.Quick {
		programs, size, runs = 8, 4, runsOf{free: 2, drawn: 4}
	}
	var checks []reports.Check
	for _, shape := range poolShapes {
		started := time.Now()
		check := reports.Check{Name: "hand-over: " + shape.name, Subject: c.Subject, Rule: "16, 17", Verdict: reports.Passed}
		c.Begin(check.Name)
		for i := range programs {
			if ctx.Err() != nil || check.Verdict == reports.Failed {
				break
			}
			text := shape.build(c.Seed+uint64(i), 1+i%size)
			if problem, _, _ := runProgram(ctx, c, text, clean, runs); problem != "" {
				check.Verdict, check.Detail, check.Output = reports.Failed, problem, text
			}
		}
		if check.Verdict == reports.Passed {
			check.Detail = fmt.Sprintf("%d programs, %d runs each", programs, runs.free+runs.drawn)
		}
		check.Seconds = time.Since(started).Seconds()
		checks = append(checks, c.Progress(ctx, check))
	}
	c.Count("hand-over programs", int64(programs*len(checks)))
	return checks
}

// checkPoolSchedules is the other half: all schedules of small cases that differ from the default one in a few places.
func checkPoolSchedules(ctx context.Context, c *stage.Checker) []reports.Check {
	runs := runsOf{search: 1_000_000, deviations: 2, whole: true}
	if c.Quick {
		runs.deviations = 1
	}
	var checks []reports.Check
	for _, scenario := range poolCases() {
		if ctx.Err() != nil {
			break
		}
		check := checkProgram(ctx, c, reports.Check{Name: "schedules: " + scenario.name, Rule: scenario.rules}, scenario.text, clean, runs)
		if check.Verdict == reports.Passed {
			check.Detail += fmt.Sprintf(", all that leave the default one in at most %d places", runs.deviations)
		}
		checks = append(checks, check)
	}
	return checks
}

// poolCases are small programs over the pool's core whose schedules are enumerated.
func poolCases() []poolScenario {
	return []poolScenario{
		{rules: "16", name: "two streams, each needs the other", text: twoWorkers + `
tensor x 8
tensor y 8
thread A
set x 1
barrier both
increment x 1
add_to x x y
thread B
set y 2
barrier both
tensor z 8
copy_to z y
end
read x = 4`},
		{rules: "16", name: "a second stream comes to life while the main stream is at work", text: oneWorker + `
tensor w 8
tensor v 8
thread A
use 0
set w 3
increment w 1
restore
post made
thread B
working = 1
await made
copy_to v w
increment w 1
end
read v = 4
read w = 5`},
		{rules: "16", name: "three threads, one on the shared default stream", text: oneWorker + `
tensor x 8
thread A
use 0
set x 1
restore
post a
thread B
use 0
await a
increment x 1
restore
post b
thread C
await b
increment x 1
end
read x = 3`},
		{rules: "16", name: "two streams close a third one at once", text: threeWorkers + `
tensor w 8
thread A
set w 5
post made
thread B
await made
tensor b 8
copy_to b w
thread C
await made
tensor c 8
copy_to c w
end
read w = 5`},
		{rules: "16, 17", name: "memory goes back while another stream reads it", text: twoWorkers + `
tensor a 8
set a 7
tensor r 8
thread B
copy_to r a
post read
thread A
await read
free a
tensor b 8
set b 9
end
read r = 7`},
		{rules: "2, 8", name: "a slot changes hands", text: `
pool PYTORCH_MPS_STREAM_POOL_SIZE=2 PYTORCH_MPS_STREAM_POOL_EXHAUSTED=wait
thread A
tensor a 8
set a 1
end_thread
thread B
tensor b 8
set b 2
end_thread`},
		{rules: "10, 13", name: "two threads commit one stream", text: `
pool PYTORCH_MPS_STREAM_PER_THREAD=0
tensor a 8
tensor b 8
thread A
set a 1
commit_stream 0
thread B
set b 2
synchronize 0
end
read a = 1
read b = 2`},
		{rules: "14", name: "a device-wide synchronize while a stream is at work", text: twoWorkers + `
tensor a 8
thread A
set a 1
increment a 1
thread B
synchronize_device
end
read a = 2`},
		{rules: "15", name: "an event recorded by one thread, waited for by another", text: twoWorkers + `
event e
thread A
tensor a 8
set a 1
event.record e current
thread B
tensor b 8
event.wait e current
set b 2
event.query e`},
		{rules: "18", name: "a handler and a commit", text: `
pool PYTORCH_MPS_STREAM_PER_THREAD=0
tensor a 8
thread A
set a 1
on_stream_completed 0 tell
thread B
commit_stream 0
end
synchronize_device
await told
block tell
post told`},
	}
}
