package validate

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/reports"
)

// pythonOutcome is one process of a test and its end.
type pythonOutcome struct {
	test    pythonTest
	subject *pythonSubject
	run     pythonRun
	end     Result
	counted pythonResult
}

// path names the way through Linear, where a test has two.
func (o pythonOutcome) path() string {
	switch {
	case o.run.graph:
		return "graph"
	case o.test.graph:
		return "no graph"
	}
	return ""
}

// iterationsOf a test, and its thread counts, as this run wants them.
func (r *pythonStageRun) iterationsOf(t pythonTest) int {
	if r.env.Quick {
		return t.quickIterations
	}
	return t.iterations
}

func (r *pythonStageRun) threadsOf(t pythonTest) []int {
	switch {
	case len(r.env.Python.Threads) > 0 && len(t.environment) == 0 && t.section != benchSection:
		return r.env.Python.Threads
	case r.env.Quick:
		return t.quick
	}
	return t.threads
}

func (r *pythonStageRun) repeats() int {
	switch {
	case r.env.Python.Repeat > 0:
		return r.env.Python.Repeat
	case r.env.Quick:
		return 1
	}
	return 3
}

func (r *pythonStageRun) pythonJob(t pythonTest, s *pythonSubject, threads int, graph bool) pythonOutcome {
	return pythonOutcome{test: t, subject: s, run: pythonRun{subject: s, test: t.name, threads: threads, iterations: r.iterationsOf(t), graph: graph,
		warmup: r.env.Python.Warmup, more: t.environment, limits: s.limits}}
}

// pythonJobs are all processes of a test: each thread count, each path, so often as asked for.
func (r *pythonStageRun) pythonJobs(t pythonTest, s *pythonSubject) []pythonOutcome {
	var jobs []pythonOutcome
	for _, threads := range r.threadsOf(t) {
		for _, graph := range []bool{false, true} {
			if graph && !t.graph {
				continue
			}
			for range r.repeats() {
				job := r.pythonJob(t, s, threads, graph)
				if len(r.missing(t)) > 0 {
					job.run.limits.stall = impatient // it waits for a patch: that it hangs is no news
				}
				jobs = append(jobs, job)
			}
			// A cold start is compared with a warm one.
			if t.section == coldSection && !r.env.Python.Warmup {
				warm := r.pythonJob(t, s, threads, graph)
				warm.run.warmup, warm.run.limits.stall = true, impatient
				jobs = append(jobs, warm)
			}
		}
	}
	return jobs
}

// stockJobs are fewer in the short form: where stock is known to die, the largest thread count, some chances.
func (r *pythonStageRun) stockJobs(t pythonTest, s *pythonSubject) []pythonOutcome {
	jobs := r.pythonJobs(t, s)
	if r.env.Quick {
		most := slices.Max(r.threadsOf(t))
		jobs = slices.DeleteFunc(jobs, func(o pythonOutcome) bool { return o.run.threads != most || o.run.graph || t.stock != stockFails })
	}
	for i := range jobs {
		jobs[i].run.limits.stall = impatient
	}
	return jobs
}

// missing tells which patches a test waits for.
func (r *pythonStageRun) missing(t pythonTest) []string {
	return slices.DeleteFunc(slices.Clone(t.patches), func(name string) bool { return slices.Contains(r.env.Identity.Patches, name) })
}

// pythonStageRun is one run of a stage with Python processes.
type pythonStageRun struct {
	env   *Env
	stage *reports.Stage
	step  string
}

// runAll runs the jobs, two at once where there is more than one processor; noisy ones alone.
func (r *pythonStageRun) runAll(ctx context.Context, jobs []pythonOutcome) ([]pythonOutcome, error) {
	r.plan(jobs)
	var noise sync.RWMutex
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next, finished := make(chan int), make(chan int)
	for range min(2, runtime.NumCPU()) {
		go func() {
			for i := range next {
				lock, unlock := noise.RLock, noise.RUnlock
				if jobs[i].test.noisy {
					lock, unlock = noise.Lock, noise.Unlock
				}
				lock()
				tell := events.RunPart(r.env.Sink, r.part(jobs[i]))
				end, counted, err := jobs[i].run.run(limited)
				unlock()
				if err != nil {
					cancel(err)
				} else {
					tell(r.finished(jobs[i], end))
				}
				jobs[i].end, jobs[i].counted = end, counted
				finished <- i
			}
		}()
	}
	go func() {
		for i := range jobs {
			next <- i
		}
		close(next)
	}()
	for done := range len(jobs) {
		i := <-finished
		r.env.Sink.Emit(events.StepProgress{Step: r.step, Done: int64(done + 1), Total: int64(len(jobs)), Unit: "processes", Note: jobs[i].test.name + ", " + jobs[i].subject.name})
		r.stage.Count("processes run", 1)
		r.stage.Count("operations", jobs[i].counted.Operations)
		r.stage.Count("values compared", jobs[i].counted.Values)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if limited.Err() != nil {
		return nil, context.Cause(limited)
	}
	return jobs, nil
}

// part is what a process is called in the events.
func (r *pythonStageRun) part(o pythonOutcome) events.Part {
	name := o.test.name
	if path := o.path(); path != "" {
		name += ", " + path
	}
	if o.run.warmup && o.test.section == coldSection {
		name += ", warm"
	}
	return events.Part{Step: r.step, Subject: o.subject.name, Name: name, Column: threadsColumn(o.run.threads)}
}

// plan announces the processes.
func (r *pythonStageRun) plan(jobs []pythonOutcome) {
	var planned []events.PartsPlanned
	for _, job := range jobs {
		part := r.part(job)
		at := slices.IndexFunc(planned, func(p events.PartsPlanned) bool { return p.Subject == part.Subject && p.Names[0] == part.Name })
		if at < 0 {
			at = len(planned)
			planned = append(planned, events.PartsPlanned{Step: r.step, Subject: part.Subject, Names: []string{part.Name}})
		}
		if !slices.Contains(planned[at].Columns, part.Column) {
			planned[at].Columns = append(planned[at].Columns, part.Column)
		}
	}
	for _, p := range planned {
		r.env.Sink.Emit(p)
	}
}

// finished tells a process's end. Stock may go wrong, and so may what waits for a patch.
func (r *pythonStageRun) finished(o pythonOutcome, end Result) events.PartFinished {
	if end.Skipped != "" {
		return events.PartFinished{Outcome: events.Skipped, Detail: end.Skipped}
	}
	waits := len(r.missing(o.test)) > 0 && o.subject.device == "mps"
	return end.finished(waits || o.subject.name == "stock" && o.test.stock != stockLives)
}

func problemsOf(outcomes []pythonOutcome) []pythonOutcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o pythonOutcome) bool { return o.end.Problem == "" })
}

// pythonSummary describes processes of a test.
func pythonSummary(outcomes []pythonOutcome) string {
	var counts []string
	var values int64
	for _, o := range outcomes {
		if text := fmt.Sprint(o.run.threads); !slices.Contains(counts, text) {
			counts = append(counts, text)
		}
		values += o.counted.Values
	}
	if len(counts) > 6 {
		counts = []string{counts[0] + " to " + counts[len(counts)-1]}
	}
	return fmt.Sprintf("failed: %s, at %s threads, right values: %d", rate(len(problemsOf(outcomes)), len(outcomes)), strings.Join(counts, ", "), values)
}

// problemText is what happened in a process, in one line.
func (o pythonOutcome) problemText() string {
	text := fmt.Sprintf("%d threads", o.run.threads)
	if path := o.path(); path != "" {
		text += ", " + path
	}
	text += ": " + o.end.Problem
	if o.end.Signature != "" {
		text += " (signature " + o.end.Signature + ")"
	}
	return text
}

// grid puts how the processes ended into the check, those of a warm start apart from a cold one's.
func (r *pythonStageRun) grid(check *reports.Check, all []pythonOutcome) {
	var processes []Result
	for _, o := range all {
		path := o.path()
		if o.test.section == coldSection && !r.env.Python.Warmup {
			path = map[bool]string{true: "warm", false: "cold"}[o.run.warmup]
		}
		if o.test.name == "processes" {
			path = o.test.name // one thread in each
		}
		end := o.end
		end.Path = path
		processes = append(processes, end)
	}
	check.Cells, check.Findings = cellsOf(processes), findingsOf(processes)
}

// judge demands that every process lives with right values. Of a cold start the warm ones do not count.
func (r *pythonStageRun) judge(t pythonTest, all []pythonOutcome) error {
	check := reports.Check{Name: t.name, Subject: all[0].subject.name, Verdict: reports.Passed}
	r.grid(&check, all)
	if t.section == coldSection && !r.env.Python.Warmup {
		all = slices.DeleteFunc(slices.Clone(all), func(o pythonOutcome) bool { return o.run.warmup })
	}
	check.Detail = pythonSummary(all)
	for _, o := range all {
		check.Seconds += o.end.Seconds
	}
	bad := problemsOf(all)
	skipped := slices.IndexFunc(all, func(o pythonOutcome) bool { return o.end.Skipped != "" })
	waiting := r.missing(t)
	if all[0].subject.device != "mps" {
		waiting = nil // the CPU needs no patches
	}
	switch {
	case len(waiting) > 0:
		check.Verdict = reports.Skipped
		today := pythonSummary(all)
		if len(bad) > 0 {
			today += ", the first: " + bad[0].problemText()
		} else if skipped >= 0 {
			today = all[skipped].end.Skipped
		}
		check.Detail = fmt.Sprintf("waits for %s; today: %s", strings.Join(waiting, ", "), today)
	case len(bad) > 0:
		first := bad[0]
		check.Verdict = reports.Failed
		check.Detail = fmt.Sprintf("%s; the first: %s; again: %s", pythonSummary(all), first.problemText(), first.run.again())
		check.Output = run.LastLines(first.end.Output, 30)
		var err error
		if check.Artifact, err = first.end.keep(r.env.Artifacts, fmt.Sprintf("python %s %s %d %s", t.name, first.subject.name, first.run.threads, first.path())); err != nil {
			return err
		}
	case skipped >= 0 && all[0].subject.device == "mps":
		check.Verdict = reports.Failed
		check.Detail = "the series has what this test needs, but it skipped itself: " + all[skipped].end.Skipped
	case skipped >= 0:
		check.Verdict = reports.Skipped
		check.Detail = all[skipped].end.Skipped
	case r.env.Python.Warmup:
		check.Detail += "; after a first use by one thread"
	}
	r.stage.Add(check)
	return nil
}

// judgeStock demands that an unpatched torch fails where the field reports say so, so that a pass of the patched one
// means something; and that it lives where one queue orders everything.
func (r *pythonStageRun) judgeStock(t pythonTest, all []pythonOutcome) {
	if len(all) == 0 {
		return
	}
	check := reports.Check{Name: t.name, Subject: all[0].subject.name, Verdict: reports.Passed, Detail: pythonSummary(all)}
	r.grid(&check, all)
	for _, o := range all {
		check.Seconds += o.end.Seconds
	}
	bad := problemsOf(all)
	if len(bad) > 0 {
		check.Detail += "; the first: " + bad[0].problemText()
	}
	switch {
	case slices.ContainsFunc(all, func(o pythonOutcome) bool { return o.end.Skipped != "" }):
		check.Verdict, check.Detail = reports.Skipped, all[0].end.Skipped
	case len(bad) > 0 && t.stock == stockLives:
		check.Verdict = reports.Failed
		check.Detail = "stock must live here: " + check.Detail
	case len(bad) == 0 && t.stock == stockFails && r.hasParallel(all):
		// A race needs luck, and a Mac's may differ; that a pass proves nothing is said, not hidden.
		check.Verdict = reports.Skipped
		check.Detail = "stock lived, so that a pass of the patched torch proves nothing here: " + check.Detail
	case len(bad) == 0 && t.stock == stockMay:
		check.Detail += "; so this run's pass of the patched torch proves nothing"
	}
	r.stage.Add(check)
}

func (r *pythonStageRun) hasParallel(all []pythonOutcome) bool {
	return slices.ContainsFunc(all, func(o pythonOutcome) bool { return o.run.threads > 1 })
}
