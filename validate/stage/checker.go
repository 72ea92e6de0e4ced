package stage

import (
	"context"
	"sync"
	"time"

	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/reports"
)

// CheckOptions say how the slot allocator is checked.
type CheckOptions struct {
	Cache     string // folder for compiled programs
	Artifacts string // folder for what a failure leaves
	Header    string // path of MPSStreamSlots.h; conformance only
	Stamp     string // what the header belongs to, such as the series digest; conformance only
	Seed      uint64
	Quick     bool
	// Patience is how long nothing may happen before a thread counts as stuck. It is never reached by a right subject.
	Patience time.Duration
	Sink     events.Sink
}

// Checker collects the checks of one stage. Its groups run side by side.
type Checker struct {
	CheckOptions
	stage   string
	Subject string
	Total   int // checks to come, as far as that is known

	mutex  sync.Mutex // guards the rest
	counts map[string]int64
	done   int64
}

func CheckOptionsOf(env *Env) CheckOptions {
	return CheckOptions{Cache: env.Cache, Artifacts: env.Artifacts, Seed: env.Seed, Quick: env.Quick, Sink: env.Sink}
}

func NewChecker(o CheckOptions, report *reports.Stage, subject string) *Checker {
	if o.Patience == 0 {
		o.Patience = 20 * time.Second
	}
	report.Seeds = append(report.Seeds, o.Seed)
	return &Checker{CheckOptions: o, stage: report.Name, Subject: subject, counts: map[string]int64{}}
}

func (c *Checker) Count(name string, n int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.counts[name] += n
}

// Begin reports that a check runs now.
func (c *Checker) Begin(name string) {
	c.Sink.Emit(events.PartStarted{Part: events.Part{Step: StepName(c.stage), Name: name}})
}

// Progress reports that a check is done and returns it. One that was cut off is not done.
func (c *Checker) Progress(ctx context.Context, check reports.Check) reports.Check {
	if ctx.Err() != nil {
		return check
	}
	c.mutex.Lock()
	c.done++
	done := c.done
	c.mutex.Unlock()
	c.Sink.Emit(partOf(StepName(c.stage), check))
	c.Sink.Emit(events.StepProgress{Step: StepName(c.stage), Done: done, Total: int64(c.Total), Unit: "checks", Note: check.Name})
	return check
}

// partOf gives a finished check as a part of a step.
func partOf(step string, check reports.Check) events.PartFinished {
	outcome := map[reports.Verdict]events.StepOutcome{reports.Passed: events.OK, reports.Failed: events.Failed}[check.Verdict]
	if outcome == "" {
		outcome = events.Skipped
	}
	return events.PartFinished{Part: events.Part{Step: step, Name: check.Name}, Outcome: outcome, Detail: words.FirstLine(check.Detail),
		Elapsed: time.Duration(check.Seconds * float64(time.Second))}
}

// RunGroups runs groups of checks side by side and adds them to the stage in the order given.
func (c *Checker) RunGroups(ctx context.Context, report *reports.Stage, groups ...func() []reports.Check) error {
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
			report.Add(check)
		}
	}
	for name, n := range c.counts {
		report.Count(name, n)
	}
	clear(c.counts)
	return nil
}
