// Package operators is the stage that runs PyTorch's own operator database by several threads at once: each entry, type and form
// in a process of its own, compared bit for bit with the same done alone. What its process does is in validate/stages/operators/python.
package operators

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	lines "mpsforge/internal/words"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

// Stage is the stage operators of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "operators", Question: "does every operator of PyTorch's own database give right results under threads?",
		Needs:  []stage.Need{stage.NeedsTorch},
		Splits: true,
		Run:    runStage,
	}
}

// protection is a patch without which operators must go wrong: in which forms, and how. Another end is no evidence for the patch.
type protection struct {
	patch string
	forms []string
	end   status
}

// protecting are those patches. Where leases go with one, threads have streams of their own in forms with the word streams alone.
var protecting = []protection{
	{"thread-leases", []string{"basic"}, oneStream},
	{"hand-over", []string{"streams+made-elsewhere", "streams+handed-on"}, wrongValues},
	{"allocator-streams", []string{"streams+made-elsewhere"}, wrongValues},
}

const (
	quickSome = 60  // jobs of each comparison in the short form
	fullSome  = 400 // and in the long one
)

// stormRun is one run of the stage.
type stormRun struct {
	env     *stage.Env
	report  *reports.Stage
	plan    plan
	known   patches.KnownOperators
	scripts string
	entries []entry // of the database
	mine    []entry // those of them in this shard
	done    int64   // jobs that have ended, and planned ones so far
	planned int64
}

func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) (err error) {
	known, err := env.Series.KnownOperators()
	if err != nil {
		return err
	}
	report.Facts = append(report.Facts, reports.Fact{Name: "baseline", Value: env.Series.Baseline.Name})
	patched, stock, err := pytests.Proven(ctx, env, report)
	if err != nil {
		return err
	}
	scripts, err := unpack(env.Cache)
	if err != nil {
		return err
	}
	r := &stormRun{env: env, report: report, known: known, scripts: scripts, plan: plan{seed: env.Seed, quick: env.Quick, device: patched.Device}}
	all := r.pool(patched)
	all.replay = []string{"--baseline", env.Series.Baseline.Name}
	if env.Identity.Checkout != "" {
		all.replay = append(all.replay, "--checkout", env.Identity.Checkout)
	}
	if env.Python.Interpreter != "" {
		all.replay = append(all.replay, "--python", env.Python.Interpreter)
	}
	defer func() { err = errors.Join(err, all.close()) }()
	if r.entries, err = all.entries(ctx); err != nil {
		return err
	}
	report.Facts = append(report.Facts, reports.Fact{Name: "entries of the operator database", Value: fmt.Sprint(len(r.entries))})
	r.mine = slices.DeleteFunc(slices.Clone(r.entries), func(e entry) bool { return !env.Shard.Has(e.Name) })
	if len(env.Operators.Names) > 0 {
		err = r.selected(ctx, all)
	} else {
		err = r.everything(ctx, all, stock)
	}
	if err != nil {
		return err
	}
	return pytests.HarnessOnly(patched, report)
}

// pool gives what runs jobs on a subject.
func (r *stormRun) pool(s *pytests.Subject) *pool {
	leases := s.Device == "mps" && slices.Contains(r.env.Identity.Patches, "thread-leases")
	return &pool{subject: s, scripts: r.scripts, leases: leases, extra: r.env.Operators.Environment}
}

// everything is the long form, and the short one.
func (r *stormRun) everything(ctx context.Context, patched *pool, stock *pytests.Subject) error {
	if err := r.env.Shard.Split(r.report, names(r.entries)); err != nil {
		return err
	}
	canBuild := r.env.Checkout != nil && r.env.Python.Interpreter == "" && patched.subject.Device == "mps"
	if flavours := r.env.Host.Flavours; canBuild && len(flavours) > 0 && !slices.Contains(flavours, builds.Plain) {
		r.skip("without a sanitizer", "--flavours has none without a sanitizer")
		if !slices.Contains(flavours, builds.Thread) {
			return nil
		}
		builder, err := hosts.New(ctx, r.env, r.report)
		if err != nil {
			return err
		}
		return r.sanitized(ctx, builder, r.mine)
	}
	listed := r.known
	listed.Failures = slices.DeleteFunc(slices.Clone(listed.Failures), func(f patches.OperatorFailure) bool { return !r.env.Shard.Has(f.Operator) })
	ends, err := r.run(ctx, patched, "known failures", r.plan.knownJobs(listed))
	if err != nil {
		return err
	}
	judgeKnown(patched, listed, ends, r.report)
	var jobs []job
	if r.env.Quick {
		jobs = r.plan.sample(r.mine)
		if ends, err = r.run(ctx, patched, "sample", jobs); err != nil {
			return err
		}
	} else {
		jobs = r.plan.basics(r.mine)
		if ends, err = r.run(ctx, patched, "basic form", jobs); err != nil {
			return err
		}
		partners, err := r.partners(ctx, patched, ends)
		if err != nil {
			return err
		}
		more, err := r.run(ctx, patched, "other forms", r.plan.others(r.mine, partners))
		if err != nil {
			return err
		}
		ends = append(ends, more...)
	}
	r.judge(patched, ends)
	if canBuild {
		judgeRows(patched.subject.Name, r.known, names(r.entries), r.report)
		judgeNotAlone(patched.subject.Name, r.known, ends, r.report)
	}
	r.report.Tables = append(r.report.Tables, coverage(patched.subject.Name, r.entries, ends, r.known))
	debts(r.report, patched.subject.Name, ends)
	if err := r.controls(ctx, patched, stock, ends); err != nil {
		return err
	}
	if !canBuild {
		r.skip("ablations", "the torch given with --python cannot be built without a patch")
		return nil
	}
	return r.hostBuilds(ctx, ends)
}

// ranAlone says that the entry runs in the job's type and form.
func (o outcome) ranAlone() bool {
	return o.Result.Status != notAlone && o.Result.Status != doesNotApply
}

// running are the entries that ran alone in the main type.
func running(entries []entry, ends []outcome) []string {
	ran := map[string]bool{}
	for _, o := range ends {
		if o.ranAlone() {
			ran[o.Job.Operator+" "+o.Job.DType] = true
		}
	}
	var names []string
	for _, e := range entries {
		if ran[e.Name+" "+e.mainType()] {
			names = append(names, e.Name)
		}
	}
	return names
}

// partners gives each of this shard's entries that ran alone the one that is to run beside it.
func (r *stormRun) partners(ctx context.Context, p *pool, ends []outcome) (map[string]string, error) {
	return r.plan.partners(r.entries, running(r.mine, ends), ends, func(jobs []job) (more []outcome, err error) {
		err = p.run(ctx, jobs, func(o outcome) error { more = append(more, o); return nil })
		return more, err
	})
}

// run runs the jobs of a phase and gives their ends, those among them that an earlier run of the long form has kept.
func (r *stormRun) run(ctx context.Context, p *pool, phase string, jobs []job) (ends []outcome, err error) {
	left, keep := jobs, func(outcome) error { return nil }
	if !r.env.Quick && len(r.env.Operators.Names) == 0 && len(jobs) > 0 {
		k, err := openKept(r.env.Kept, p.subject.Identity(), r.scripts, r.env.Seed, phase)
		if err != nil {
			return nil, err
		}
		ends, left = split(k, jobs)
		r.planned, r.done = r.planned+int64(len(jobs)), r.done+int64(len(ends))
		r.env.Kept.Reached("jobs", r.done, r.planned)
		keep = func(o outcome) error {
			err := k.Add(o)
			r.done++
			r.env.Kept.Reached("jobs", r.done, r.planned)
			return err
		}
		if len(ends) > 0 {
			r.report.Facts = append(r.report.Facts, reports.Fact{Name: p.subject.Name + ": results kept by an earlier run",
				Value: fmt.Sprintf("%d of %d, in %s", len(ends), len(jobs), k.Folder)})
		}
	}
	if len(left) == 0 {
		return ends, nil
	}
	done := len(ends)
	r.planCells(p, left)
	err = p.run(ctx, left, func(o outcome) error {
		r.cell(p, o)
		ends = append(ends, o)
		done++
		r.env.Sink.Emit(events.StepProgress{Step: stage.StepName(r.report.Name), Done: int64(done), Total: int64(len(jobs)), Unit: "jobs",
			Note: fmt.Sprintf("%s, %s, %s, %s", p.subject.Name, o.Job.Operator, o.Job.DType, o.Job.Form)})
		r.report.Count("jobs", 1)
		r.report.Count("operations", o.Result.Calls)
		r.report.Count("values compared", o.Result.Values)
		return keep(o)
	})
	return ends, err
}

// judge makes each fault that is not known a failed check, and sums the others up.
func (r *stormRun) judge(p *pool, ends []outcome) {
	counts, reasons := map[string]int{}, map[string]int{}
	var unlisted []string
	summary := reports.Check{Name: "operators by threads", Subject: p.subject.Name, Verdict: reports.Passed}
	for _, o := range ends {
		summary.Seconds += o.Result.Wall
		switch known := knownOf(r.known, o); {
		case o.faulty() && known != nil:
			counts["known failures"]++
			if known.Operator == patches.AnyOperator {
				unlisted = append(unlisted, o.Job.cell.String()+": "+string(o.Result.Status))
			}
		case o.faulty():
			counts["new failures"]++
			r.report.Add(r.fault(p, o))
		default:
			counts[string(o.Result.Status)]++
			if o.Result.Status == notAlone {
				reasons[o.kind()]++
			}
		}
	}
	summary.Detail = listing(counts)
	if len(reasons) > 0 {
		summary.Detail += " (" + listing(reasons) + ")"
	}
	if len(unlisted) > 0 {
		summary.Detail += "; listed only as a failure of any operator in that form: " + strings.Join(unlisted, "; ")
	}
	switch {
	case counts["new failures"] > 0:
		summary.Verdict = reports.Failed
	case counts[string(right)] == 0:
		summary.Verdict = reports.Skipped
	}
	r.report.Add(summary)
}

// fault is the check of a job that went wrong.
func (r *stormRun) fault(p *pool, o outcome) reports.Check {
	check := reports.Check{Name: o.Job.cell.String(), Subject: p.subject.Name, Verdict: reports.Failed, Seconds: o.Result.Wall,
		Output: lines.LastLines(o.Result.Stderr, 30)}
	where := ""
	if o.Result.Case != "" && !strings.Contains(o.Result.Text, o.Result.Case) {
		where = o.Result.Case + ": "
	}
	check.Detail = fmt.Sprintf("%s: %s%s; again: %s", o.Result.Status, where, o.Result.Text, p.again(o.Job))
	check.Cells = []reports.Cell{{Threads: o.Job.Threads, Path: o.Job.Form, Outcome: o.Result.Status.outcome(), Bad: 1, Of: 1, Detail: o.Result.Text}}
	check.Findings = findingsOf(o)
	return check
}

// controls run the same operators where nothing may go wrong: patched with one stream for all threads, and stock by one thread.
func (r *stormRun) controls(ctx context.Context, patched *pool, stock *pytests.Subject, ends []outcome) error {
	var ran []job
	for _, o := range ends {
		if o.ranAlone() {
			ran = append(ran, o.Job)
		}
	}
	count := fullSome
	if r.env.Quick {
		count = quickSome
	}
	drawn := r.plan.some(ran, r.env.Shard.Share(count))
	oneStream := slices.Clone(drawn)
	for i := range oneStream {
		oneStream[i].Environment = withSetting(oneStream[i].Environment, streamPerThread, "0")
	}
	found, err := r.run(ctx, patched, "one stream", slices.DeleteFunc(oneStream, func(j job) bool { return slices.Contains(words(j.Form), "streams") }))
	if err != nil {
		return err
	}
	r.clean(streamPerThread+"=0", patched, found)
	if stock == nil {
		r.skip("stock, one thread", "there is no unpatched torch: name one with --stock")
		return nil
	}
	for i := range drawn {
		drawn[i].Threads = 1
	}
	alone := r.pool(stock)
	alone.leases = false
	found, err = r.run(ctx, alone, "one thread", drawn)
	if err = errors.Join(err, alone.close()); err != nil {
		return err
	}
	r.clean("one thread", alone, found)
	return nil
}

// clean adds the check of a control: no fault, known or not.
func (r *stormRun) clean(name string, p *pool, ends []outcome) {
	counts := map[string]int{}
	check := reports.Check{Name: name, Subject: p.subject.Name, Verdict: reports.Passed}
	for _, o := range ends {
		check.Seconds += o.Result.Wall
		counts[string(o.Result.Status)]++
		if o.faulty() {
			failed := r.fault(p, o)
			failed.Name = name + ": " + failed.Name
			r.report.Add(failed)
			check.Verdict = reports.Failed
		}
	}
	check.Detail = listing(counts)
	if check.Verdict == reports.Passed && counts[string(right)] == 0 {
		check.Verdict = reports.Skipped
	}
	r.report.Add(check)
}

// hostBuilds runs what needs builds of its own: the series without each of the patches that protect operators, and the patched
// sources under ThreadSanitizer. The short form does so only for the patches named with --ablate.
func (r *stormRun) hostBuilds(ctx context.Context, ends []outcome) error {
	named, err := r.env.Series.Named(r.env.Host.Ablate)
	if err != nil {
		return err
	}
	var builder *hosts.Builder
	for _, one := range protecting {
		name := "without " + one.patch
		switch {
		case !slices.Contains(r.env.Identity.Patches, one.patch):
			r.skip(name, "the series has no such patch")
		case r.env.Quick && !slices.ContainsFunc(named, func(p *patches.Patch) bool { return p.Name == one.patch }):
			r.skip(name, "the short form leaves out only what --ablate names")
		case !r.env.Shard.Has(name):
			r.report.Add(r.env.Shard.Deferred(name, "ablation"))
		default:
			if builder == nil {
				if builder, err = hosts.New(ctx, r.env, r.report); err != nil {
					return err
				}
			}
			if err := r.ablate(ctx, builder, one, ends); err != nil {
				return err
			}
		}
	}
	if r.env.Quick || len(r.env.Host.Flavours) > 0 && !slices.Contains(r.env.Host.Flavours, builds.Thread) {
		r.skip("ThreadSanitizer", "only the long form with the flavour tsan runs it")
		return nil
	}
	if builder == nil {
		if builder, err = hosts.New(ctx, r.env, r.report); err != nil {
			return err
		}
	}
	names := running(r.mine, ends)
	return r.sanitized(ctx, builder, slices.DeleteFunc(slices.Clone(r.mine), func(e entry) bool { return !slices.Contains(names, e.Name) }))
}

// ablate runs operators in the forms that a patch protects, without it. Some must go wrong as is named: else a pass with it shows nothing.
func (r *stormRun) ablate(ctx context.Context, builder *hosts.Builder, without protection, ends []outcome) error {
	patch := without.patch
	source, err := r.env.Checkout.Without(ctx, r.env.Series, patch, r.env.Cache)
	if err != nil {
		return err
	}
	s, err := pytests.Over(ctx, r.env, r.report, builder, "without "+patch, source, builds.Plain)
	if errors.Is(err, builds.ErrSources) { // one of the rest uses what the patch declares: without all that follow
		if source, err = r.env.Checkout.Before(ctx, r.env.Series, patch, r.env.Cache); err != nil {
			return err
		}
		s, err = pytests.Over(ctx, r.env, r.report, builder, "without "+patch, source, builds.Plain)
	}
	if err != nil {
		return fmt.Errorf("the series without %s: %w", strings.Join(source.LeftOut, ", "), err)
	}
	var jobs []job
	for _, name := range running(r.mine, ends) {
		e := r.entries[slices.IndexFunc(r.entries, func(e entry) bool { return e.Name == name })]
		for _, form := range without.forms {
			jobs = append(jobs, r.plan.job(name, e.mainType(), form, defaultThreads))
		}
	}
	p := r.pool(s)
	if patch != "thread-leases" && slices.Contains(source.LeftOut, "thread-leases") {
		p.leases = false // that threads have one stream must not be what is noticed
	}
	found, err := r.run(ctx, p, "without "+patch, r.plan.some(jobs, quickSome))
	if err = errors.Join(err, p.close()); err != nil {
		return err
	}
	r.report.Add(without.judge(found, r.known, source.LeftOut[1:]))
	return nil
}

// judge says whether what was found without the patch is evidence for it.
func (p protection) judge(found []outcome, known patches.KnownOperators, leftOutToo []string) reports.Check {
	check := reports.Check{Name: "without " + p.patch, Subject: "ablation", Verdict: reports.Failed}
	counts := map[string]int{}
	var names []string
	for _, o := range found {
		check.Seconds += o.Result.Wall
		counts[string(o.Result.Status)]++
		if o.Result.Status == p.end && knownOf(known, o) == nil {
			names = append(names, o.Job.Operator)
		}
	}
	check.Detail = fmt.Sprintf("forms %s: %s", strings.Join(p.forms, ", "), listing(counts))
	if len(leftOutToo) > 0 {
		check.Detail += "; left out with it: " + strings.Join(leftOutToo, ", ")
	}
	if len(names) == 0 {
		check.Detail = fmt.Sprintf("no operator ends with %q without it, so a pass with it shows nothing; %s", p.end, check.Detail)
		return check
	}
	check.Verdict = reports.Passed
	check.Detail = fmt.Sprintf("noticed by %d of %d (%s), such as %s; %s", len(names), len(found), p.end, strings.Join(names[:min(3, len(names))], ", "),
		check.Detail)
	return check
}

// sanitized runs each of the entries once under ThreadSanitizer; the short form, some of them.
func (r *stormRun) sanitized(ctx context.Context, builder *hosts.Builder, entries []entry) error {
	builder.AllSources = true // every entry is to run
	source, err := r.env.Checkout.Patched(ctx, r.env.Series, r.env.Cache)
	if err != nil {
		return err
	}
	s, err := pytests.Over(ctx, r.env, r.report, builder, "patched, tsan", source, builds.Thread)
	if err != nil {
		return err
	}
	jobs := r.plan.sanitized(entries)
	if r.env.Quick {
		jobs = r.plan.some(jobs, r.env.Shard.Share(quickSome))
	}
	p := r.pool(s)
	found, err := r.run(ctx, p, "sanitized", jobs)
	if err = errors.Join(err, p.close()); err != nil {
		return err
	}
	r.judge(p, found)
	r.report.Tables = append(r.report.Tables, coverage(s.Name, r.entries, found, r.known))
	return nil
}

func (r *stormRun) skip(name, why string) {
	r.report.Add(reports.Check{Name: name, Verdict: reports.Skipped, Detail: why})
}

func withSetting(settings map[string]string, name, value string) map[string]string {
	all := map[string]string{name: value}
	for name, value := range settings {
		all[name] = value
	}
	return all
}
