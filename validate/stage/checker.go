package stage

import (
	"cmp"
	"context"
	"sync"
	"time"

	"mpsforge/internal/cxx"
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

// Check runs a check, which do fills in, and reports its begin and its end.
func (c *Checker) Check(ctx context.Context, check reports.Check, do func(*reports.Check)) reports.Check {
	started := time.Now()
	check.Subject = c.Subject
	c.Sink.Emit(events.PartStarted{Part: events.Part{Step: StepName(c.stage), Name: check.Name}})
	do(&check)
	check.Seconds = time.Since(started).Seconds()
	return c.progress(ctx, check)
}

// Sanitizers makes a check of each sanitizer, named after it; do runs those that work here.
func (c *Checker) Sanitizers(ctx context.Context, tools cxx.Compiler, over, rule string,
	do func(cxx.Sanitizer) (verdict reports.Verdict, detail, output string)) []reports.Check {
	var checks []reports.Check
	for _, s := range []struct {
		cxx.Sanitizer
		err error
	}{{cxx.ThreadSanitizer, tools.Thread}, {cxx.AddressSanitizer, tools.Address}} {
		checks = append(checks, c.Check(ctx, reports.Check{Name: s.Name + over, Rule: rule}, func(check *reports.Check) {
			switch {
			case tools.Err != nil:
				check.Verdict, check.Detail = reports.Skipped, tools.Err.Error()
			case s.err != nil:
				check.Verdict, check.Detail = reports.Skipped, s.Name+" does not work here: "+words.FirstLine(s.err.Error())
			default:
				check.Verdict, check.Detail, check.Output = do(s.Sanitizer)
			}
		}))
	}
	return checks
}

// progress reports that a check is done and returns it. One that was cut off is not done.
func (c *Checker) progress(ctx context.Context, check reports.Check) reports.Check {
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

// Outcome is what the events say of a verdict.
func Outcome(verdict reports.Verdict) events.StepOutcome {
	return cmp.Or(map[reports.Verdict]events.StepOutcome{reports.Passed: events.OK, reports.Failed: events.Failed}[verdict], events.Skipped)
}

// partOf gives a finished check as a part of a step.
func partOf(step string, check reports.Check) events.PartFinished {
	return events.PartFinished{Part: events.Part{Step: step, Name: check.Name}, Outcome: Outcome(check.Verdict), Detail: words.FirstLine(check.Detail),
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
