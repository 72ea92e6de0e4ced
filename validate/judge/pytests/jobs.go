package pytests

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// Job is one process of a test and its end.
type Job struct {
	Test    Test
	Subject *Subject
	Run     Run
	End     process.Result
	Counted Counts
}

// Path names the way through Linear, where a test has two.
func (o Job) Path() string {
	switch {
	case o.Run.Graph:
		return "graph"
	case o.Test.Graph:
		return "no graph"
	}
	return ""
}

// IterationsOf a test, and its thread counts, as this run wants them.
func (r *Runner) IterationsOf(t Test) int {
	if r.Env.Quick {
		return t.quickIterations
	}
	return t.iterations
}

func (r *Runner) ThreadsOf(t Test) []int {
	switch {
	case len(r.Env.Python.Threads) > 0 && len(t.environment) == 0 && t.Section != BenchSection:
		return r.Env.Python.Threads
	case r.Env.Quick:
		return t.quick
	}
	return t.threads
}

func (r *Runner) Repeats() int {
	switch {
	case r.Env.Python.Repeat > 0:
		return r.Env.Python.Repeat
	case r.Env.Quick:
		return 1
	}
	return 3
}

func (r *Runner) Job(t Test, s *Subject, threads int, graph bool) Job {
	limits := s.limits
	limits.stall = cmp.Or(t.deadline, limits.stall)
	more := t.environment
	if t.packages && r.packages != "" {
		more = append(slices.Clone(more), "PYTHONPATH="+r.packages)
	}
	return Job{Test: t, Subject: s, Run: Run{Subject: s, Test: t.Name, Threads: threads, Iterations: r.IterationsOf(t), Graph: graph,
		Warmup: r.Env.Python.Warmup, More: more, limits: limits}}
}

// Jobs are all processes of a test: each thread count, each path, so often as asked for.
func (r *Runner) Jobs(t Test, s *Subject) []Job {
	var jobs []Job
	for _, threads := range r.ThreadsOf(t) {
		for _, graph := range []bool{false, true} {
			if graph && !t.Graph {
				continue
			}
			repeats := r.Repeats()
			if t.once {
				repeats = max(1, r.Env.Python.Repeat)
			}
			for range repeats {
				job := r.Job(t, s, threads, graph)
				if len(r.missing(t)) > 0 {
					job.Run.limits.stall = process.Impatient // it waits for a patch: that it hangs is no news
				}
				jobs = append(jobs, job)
			}
			// A cold start is compared with a warm one.
			if t.Section == ColdSection && !r.Env.Python.Warmup {
				warm := r.Job(t, s, threads, graph)
				warm.Run.Warmup, warm.Run.limits.stall = true, process.Impatient
				jobs = append(jobs, warm)
			}
		}
	}
	return jobs
}

// StockJobs are fewer in the short form: where stock is known to die, the largest thread count, some chances.
func (r *Runner) StockJobs(t Test, s *Subject) []Job {
	jobs := r.Jobs(t, s)
	if r.Env.Quick {
		most := slices.Max(r.ThreadsOf(t))
		jobs = slices.DeleteFunc(jobs, func(o Job) bool { return o.Run.Threads != most || o.Run.Graph || t.stock != process.StockFails })
	}
	for i := range jobs {
		jobs[i].Run.limits.stall = process.Impatient
	}
	return jobs
}

// missing reports which patches a test waits for.
func (r *Runner) missing(t Test) []string {
	return slices.DeleteFunc(slices.Clone(t.patches), func(name string) bool { return slices.Contains(r.Env.Identity.Patches, name) })
}

// Runner is one run of a stage with Python processes.
type Runner struct {
	Env   *stage.Env
	Stage *reports.Stage
	Step  string

	packages string // where tests that need packages find them; empty where Python has its own
}

// RunAll runs the jobs, stage.AtOnce of them side by side; noisy ones alone. It gives those that ran: all of them, unless the first
// failure ends the stage.
func (r *Runner) RunAll(ctx context.Context, jobs []Job) ([]Job, error) {
	r.plan(jobs)
	var noise sync.RWMutex
	var failed atomic.Bool
	var mutex sync.Mutex // guards ran, done and the stage's counters
	ran, done := make([]bool, len(jobs)), int64(0)
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(stage.AtOnce())
	for i := range jobs {
		if r.Env.FirstFailure && failed.Load() {
			break
		}
		group.Go(func() error {
			if err := limited.Err(); err != nil { // after the first error none begins
				return err
			}
			lock, unlock := noise.RLock, noise.RUnlock
			if jobs[i].Test.Noisy {
				lock, unlock = noise.Lock, noise.Unlock
			}
			lock()
			tell := events.RunPart(r.Env.Sink, r.part(jobs[i]))
			end, counted, err := jobs[i].Run.run(limited)
			unlock()
			if err != nil {
				return err
			}
			tell(r.finished(jobs[i], end))
			jobs[i].End, jobs[i].Counted = end, counted
			if end.Problem != "" {
				failed.Store(true)
			}
			mutex.Lock()
			defer mutex.Unlock()
			ran[i] = true
			done++
			r.Env.Sink.Emit(events.StepProgress{Step: r.Step, Done: done, Total: int64(len(jobs)), Unit: "processes", Note: jobs[i].Test.Name +
				", " + jobs[i].Subject.Name})
			r.Stage.Count("processes run", 1)
			r.Stage.Count("operations", counted.Operations)
			r.Stage.Count("values compared", counted.Values)
			return nil
		})
	}
	err := group.Wait()
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return nil, err
	}
	var outcomes []Job
	for i, job := range jobs {
		if ran[i] {
			outcomes = append(outcomes, job)
		}
	}
	return outcomes, nil
}

// part is what a process is called in the events.
func (r *Runner) part(o Job) events.Part {
	name := o.Test.Name
	if path := o.Path(); path != "" {
		name += ", " + path
	}
	if o.Run.Warmup && o.Test.Section == ColdSection {
		name += ", warm"
	}
	return events.Part{Step: r.Step, Subject: o.Subject.Name, Name: name, Column: process.ThreadsColumn(o.Run.Threads)}
}

// plan announces the processes.
func (r *Runner) plan(jobs []Job) {
	var planned []events.PartsPlanned
	for _, job := range jobs {
		part := r.part(job)
		at := slices.IndexFunc(planned, func(p events.PartsPlanned) bool { return p.Subject == part.Subject && p.Names[0] == part.Name })
		if at < 0 {
			at = len(planned)
			planned = append(planned, events.PartsPlanned{Step: r.Step, Subject: part.Subject, Names: []string{part.Name}})
		}
		if !slices.Contains(planned[at].Columns, part.Column) {
			planned[at].Columns = append(planned[at].Columns, part.Column)
		}
	}
	for _, p := range planned {
		r.Env.Sink.Emit(p)
	}
}

// finished gives a process's end. Stock may go wrong, and so may what waits for a patch.
func (r *Runner) finished(o Job, end process.Result) events.PartFinished {
	if end.Skipped != "" {
		return events.PartFinished{Outcome: events.Skipped, Detail: end.Skipped}
	}
	waits := len(r.missing(o.Test)) > 0 && o.Subject.Device == "mps"
	return end.Finished(waits || o.Subject.Name == "stock" && o.Test.stock != process.StockLives)
}

func Problems(outcomes []Job) []Job {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o Job) bool { return o.End.Problem == "" })
}

// summary describes processes of a test.
func summary(outcomes []Job) string {
	var counts []string
	var values int64
	for _, o := range outcomes {
		if text := fmt.Sprint(o.Run.Threads); !slices.Contains(counts, text) {
			counts = append(counts, text)
		}
		values += o.Counted.Values
	}
	if len(counts) > 6 {
		counts = []string{counts[0] + " to " + counts[len(counts)-1]}
	}
	return fmt.Sprintf("failed: %s, at %s threads, right values: %d", Rate(len(Problems(outcomes)), len(outcomes)), strings.Join(counts, ", "), values)
}

// problemText is what happened in a process, in one line.
func (o Job) problemText() string {
	text := fmt.Sprintf("%d threads", o.Run.Threads)
	if path := o.Path(); path != "" {
		text += ", " + path
	}
	text += ": " + o.End.Problem
	if o.End.Signature != "" {
		text += " (signature " + o.End.Signature + ")"
	}
	return text
}

// grid puts how the processes ended into the check, those of a warm start apart from a cold one's.
func (r *Runner) grid(check *reports.Check, all []Job) {
	var processes []process.Result
	for _, o := range all {
		path := o.Path()
		if o.Test.Section == ColdSection && !r.Env.Python.Warmup {
			path = map[bool]string{true: "warm", false: "cold"}[o.Run.Warmup]
		}
		if o.Test.Name == "processes" {
			path = o.Test.Name // one thread in each
		}
		end := o.End
		end.Path = path
		processes = append(processes, end)
	}
	check.Cells, check.Findings = process.Cells(processes), process.Findings(processes)
}

// Judge demands that every process lives with right values. Of a cold start the warm ones do not count.
func (r *Runner) Judge(t Test, all []Job) error {
	check := reports.Check{Name: t.Name, Subject: all[0].Subject.Name, Verdict: reports.Passed}
	r.grid(&check, all)
	if t.Section == ColdSection && !r.Env.Python.Warmup {
		all = slices.DeleteFunc(slices.Clone(all), func(o Job) bool { return o.Run.Warmup })
	}
	check.Detail = summary(all)
	for _, o := range all {
		check.Seconds += o.End.Seconds
	}
	bad := Problems(all)
	skipped := slices.IndexFunc(all, func(o Job) bool { return o.End.Skipped != "" })
	waiting := r.missing(t)
	if all[0].Subject.Device != "mps" {
		waiting = nil // the CPU needs no patches
	}
	switch {
	case len(waiting) > 0:
		check.Verdict = reports.Skipped
		today := summary(all)
		if len(bad) > 0 {
			today += ", the first: " + bad[0].problemText()
		} else if skipped >= 0 {
			today = all[skipped].End.Skipped
		}
		check.Detail = fmt.Sprintf("waits for %s; today: %s", strings.Join(waiting, ", "), today)
	case len(bad) > 0:
		first := bad[0]
		check.Verdict = reports.Failed
		check.Detail = fmt.Sprintf("%s; the first: %s; again: %s", summary(all), first.problemText(), first.Run.again())
		check.Output = words.LastLines(first.End.Output, 30)
		var err error
		if check.Artifact, err = first.End.Keep(r.Env.Artifacts, fmt.Sprintf("python %s %s %d %s", t.Name, first.Subject.Name, first.Run.Threads,
			first.Path())); err != nil {
			return err
		}
	// a host build's
	case skipped >= 0 && all[0].Subject.Device == "mps" && !slices.Contains(t.lacking, all[0].Subject.wanted.version) && (!t.extension && !t.packages ||
		all[0].Subject.wanted.library != ""):
		check.Verdict = reports.Failed
		check.Detail = "the series has what this test needs, but it skipped itself: " + all[skipped].End.Skipped
	case skipped >= 0:
		check.Verdict = reports.Skipped
		check.Detail = all[skipped].End.Skipped
	case r.Env.Python.Warmup:
		check.Detail += "; after a first use by one thread"
	}
	r.Stage.Add(check)
	return nil
}

// JudgeStock demands that an unpatched torch fails where the field reports say so, so that a pass of the patched one
// means something; and that it lives where one queue orders everything.
func (r *Runner) JudgeStock(t Test, all []Job) {
	if len(all) == 0 {
		return
	}
	check := reports.Check{Name: t.Name, Subject: all[0].Subject.Name, Verdict: reports.Passed, Detail: summary(all)}
	r.grid(&check, all)
	for _, o := range all {
		check.Seconds += o.End.Seconds
	}
	bad := Problems(all)
	if len(bad) > 0 {
		check.Detail += "; the first: " + bad[0].problemText()
	}
	switch {
	case slices.ContainsFunc(all, func(o Job) bool { return o.End.Skipped != "" }):
		check.Verdict, check.Detail = reports.Skipped, all[0].End.Skipped
	case len(bad) > 0 && t.stock == process.StockLives:
		check.Verdict = reports.Failed
		check.Detail = "stock must pass here: " + check.Detail
	case len(bad) > 0 && t.stock == process.StockFails && !slices.ContainsFunc(bad, func(o Job) bool { return o.End.Among(t.ends) }):
		check.Verdict = reports.Skipped
		check.Detail = "stock fails, but in no way that the test names for it, so a pass of the patched torch proves nothing here: " + check.Detail
	case len(bad) == 0 && t.stock == process.StockFails && r.hasParallel(all):
		// A race needs luck, and a Mac's may differ; that a pass proves nothing is said, not hidden.
		check.Verdict = reports.Skipped
		check.Detail = "stock passed, so a pass of the patched torch proves nothing here: " + check.Detail
	case len(bad) == 0 && t.stock == process.StockMay:
		check.Detail += fmt.Sprintf("; not reproduced on this version in %d runs, so a pass of the patched torch proves nothing here", len(all))
	}
	r.Stage.Add(check)
}

func (r *Runner) hasParallel(all []Job) bool {
	return slices.ContainsFunc(all, func(o Job) bool { return o.Run.Threads > 1 })
}
