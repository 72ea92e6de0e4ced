package validate

import (
	"context"
	"strings"
	"sync"
	"time"

	"mpsforge/internal/events"
	"mpsforge/reports"
)

// stageOptions say how the slot allocator is checked.
type stageOptions struct {
	cache     string // folder for compiled programs
	artifacts string // folder for what a failure leaves
	header    string // path of MPSStreamSlots.h; conformance only
	stamp     string // what the header belongs to, such as the series digest; conformance only
	seed      uint64
	quick     bool
	// patience is how long nothing may happen before a thread counts as stuck. It is never reached by a right subject.
	patience time.Duration
	sink     events.Sink
}

// stageChecker collects the checks of one stage. Its groups run side by side.
type stageChecker struct {
	stageOptions
	stage   string
	subject string

	mutex  sync.Mutex // guards the rest
	counts map[string]int64
	done   int64
}

func optionsOf(env *Env) stageOptions {
	return stageOptions{cache: env.Cache, artifacts: env.Artifacts, seed: env.Seed, quick: env.Quick, sink: env.Sink}
}

func newStageChecker(o stageOptions, stage *reports.Stage, subject string) *stageChecker {
	if o.patience == 0 {
		o.patience = 20 * time.Second
	}
	stage.Seeds = append(stage.Seeds, o.seed)
	return &stageChecker{stageOptions: o, stage: stage.Name, subject: subject, counts: map[string]int64{}}
}

func (c *stageChecker) count(name string, n int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.counts[name] += n
}

// begin tells the world that a check runs now.
func (c *stageChecker) begin(name string) {
	c.sink.Emit(events.PartStarted{Part: events.Part{Step: StepName(c.stage), Name: name}})
}

// progress tells the world that a check is done and returns it. One that was cut off is not done.
func (c *stageChecker) progress(ctx context.Context, check reports.Check) reports.Check {
	if ctx.Err() != nil {
		return check
	}
	c.mutex.Lock()
	c.done++
	done := c.done
	c.mutex.Unlock()
	c.sink.Emit(partOf(StepName(c.stage), check))
	c.sink.Emit(events.StepProgress{Step: StepName(c.stage), Done: done, Unit: "checks", Note: check.Name})
	return check
}

// partOf tells a finished check as a part of a step.
func partOf(step string, check reports.Check) events.PartFinished {
	outcome := map[reports.Verdict]events.Outcome{reports.Passed: events.OK, reports.Failed: events.Failed}[check.Verdict]
	if outcome == "" {
		outcome = events.Skipped
	}
	detail, _, _ := strings.Cut(check.Detail, "\n")
	return events.PartFinished{Part: events.Part{Step: step, Name: check.Name}, Outcome: outcome, Detail: detail, Elapsed: time.Duration(check.Seconds * float64(time.Second))}
}

// runGroups runs groups of checks side by side and adds them to the stage in the order given.
func (c *stageChecker) runGroups(ctx context.Context, stage *reports.Stage, groups ...func() []reports.Check) error {
	results := make([][]reports.Check, len(groups))
	var wait sync.WaitGroup
	for i, group := range groups {
		wait.Go(func() { results[i] = group() })
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, checks := range results {
		for _, check := range checks {
			stage.Add(check)
		}
	}
	for name, n := range c.counts {
		stage.Count(name, n)
	}
	clear(c.counts)
	return nil
}
