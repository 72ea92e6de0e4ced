// Package runtime is the stage that runs scenarios on host builds of the checkout's MPS sources, stock and patched. The scenarios
// themselves are C++ (native/torch/scenarios); how sources are compiled is in package host.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// Stage is the stage runtime of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "runtime", Question: "do the checkout's real MPS sources behave as expected, stock and patched?",
		Needs:  []stage.Need{stage.NeedsCache, stage.NeedsCheckout, stage.NeedsRoot},
		Splits: true,
		Run:    runStage,
	}
}

// runStage runs the scenarios on PyTorch's real sources, stock and patched.
func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	hosts, err := hosts.New(ctx, env, report)
	if errors.Is(err, builds.ErrEnvironment) || errors.Is(err, fork.ErrEnvironment) {
		return stage.Skipf("%v", err)
	}
	if err != nil {
		return err
	}
	table, err := chosen(env.Host.Scenarios)
	if err != nil {
		return err
	}
	hosts.First = len(table) == 1 && table[0].Name == FirstScenario
	r := stageRun{env: env, hosts: hosts, build: hosts.Build, sources: env.Checkout, table: table, stage: report, step: stage.StepName(report.Name),
		patched: map[builds.Flavour]*host.Build{}, shared: &shared{failed: map[string]bool{}}}
	return r.run(ctx)
}

// run fills the report.
func (r *stageRun) run(ctx context.Context) error {
	env, report := r.env, r.stage
	if _, err := env.Series.Named(env.Host.Ablate); err != nil {
		return err // before any work
	}
	if err := r.keep(); err != nil {
		return err
	}
	stock, err := r.sources.Stock(ctx, env.Cache)
	if err != nil {
		return err
	}
	patched, err := r.sources.Patched(ctx, env.Series, env.Cache)
	if err != nil {
		return err
	}
	report.Facts = append(report.Facts, reports.Fact{Name: "libtorch", Value: r.hosts.Torch.Version},
		reports.Fact{Name: "stock tree", Value: stock.Tree}, reports.Fact{Name: "patched tree", Value: patched.Tree})
	for i, flavour := range r.flavours() {
		builtPatched, err := r.build(ctx, patched, flavour)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, builds.ErrEnvironment) {
				return err
			}
			// Sources that do not compile are a verdict on the series.
			report.Add(reports.Check{Name: "compile", Subject: "patched, " + string(flavour), Verdict: reports.Failed,
				Detail: words.FirstLine(err.Error()), Output: err.Error()})
			return nil
		}
		r.patched[flavour] = builtPatched
		r.describe(builtPatched, report)
		if i == 0 {
			var names []string
			if r.whole() {
				if names, err = operationsOf(ctx, builtPatched, r.table); err != nil {
					return err
				}
			}
			if err := r.divide(names, builtPatched.Layouts); err != nil {
				return err
			}
			if err := r.operations(ctx, builtPatched, names); err != nil {
				return err
			}
		}
		// In the short form stock is run in one flavour: that it dies is seen there.
		var builtStock *host.Build
		if (i == 0 || !env.Quick) && !env.Host.NoStock {
			if builtStock, err = r.build(ctx, stock, flavour); err != nil {
				return err
			}
		}
		if flavour == builds.Plain && r.whole() {
			if builtStock != nil {
				r.layouts(builtStock.Layouts, builtPatched.Layouts)
			}
			if err := r.pool(ctx, builtPatched); err != nil {
				return err
			}
		}
		if err := r.scenarios(ctx, builtStock, builtPatched); err != nil {
			return err
		}
		if r.ends() {
			return nil
		}
	}
	return r.ablate(ctx)
}

// stageRun is one run of the stage.
type stageRun struct {
	env   *stage.Env
	hosts *hosts.Builder
	// build and sources make what is run: hosts.Build, and the checkout.
	build   func(context.Context, *fork.Snapshot, builds.Flavour) (*host.Build, error)
	sources interface {
		Stock(ctx context.Context, cache string) (*fork.Snapshot, error)
		Patched(ctx context.Context, series *patches.Series, cache string) (*fork.Snapshot, error)
		Without(ctx context.Context, series *patches.Series, name, cache string) (*fork.Snapshot, error)
		Before(ctx context.Context, series *patches.Series, name, cache string) (*fork.Snapshot, error)
	}
	table []scenario
	stage *reports.Stage
	step  string // of the events
	total int64  // checks
	// patched are the builds of the whole series.
	patched map[builds.Flavour]*host.Build
	kept    *keptRuns // nil unless patches are left out
	allRows int       // of scenarios on a build
	*shared
}

// shared is what the jobs that run side by side have in common.
type shared struct {
	mutex     sync.Mutex
	done      int64           // checks
	rows      int             // of scenarios on a build that have run
	failed    map[string]bool // whether what ran on the builds of the whole series fails there, by failedKey
	failedOne bool            // a check
}

// whole reports whether the stage's other checks run, too, and not only the scenarios that were asked for.
func (r *stageRun) whole() bool { return len(r.env.Host.Scenarios) == 0 }

// failedKey names a scenario, or a program of the pool, in a flavour.
func failedKey(name string, flavour builds.Flavour) string { return name + ", " + string(flavour) }

func (r *stageRun) flavours() []builds.Flavour {
	if len(r.env.Host.Flavours) > 0 {
		return r.env.Host.Flavours
	}
	return []builds.Flavour{builds.Plain, builds.Thread}
}

// describe puts what a flavour compiles, and what not, into the report.
func (r *stageRun) describe(built *host.Build, report *reports.Stage) {
	flavour := string(built.Stamp.Flavour)
	report.Facts = append(report.Facts, reports.Fact{Name: "compiled, " + flavour,
		Value: fmt.Sprintf("%d sources, which register %d operators", len(built.Compiled), built.Kernels)})
	var leftOut words.Groups
	for _, excluded := range built.Excluded {
		leftOut.Add(excluded.Reason, excluded.Path[strings.LastIndexByte(excluded.Path, '/')+1:])
	}
	for _, group := range leftOut {
		report.Facts = append(report.Facts, reports.Fact{Name: "left out, " + flavour + ": " + group.Reason, Value: strings.Join(group.Names, ", ")})
	}
}

func (r *stageRun) add(check reports.Check) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.done++
	r.failedOne = r.failedOne || check.Verdict == reports.Failed
	r.env.Sink.Emit(events.StepProgress{Step: stage.StepName(r.stage.Name), Done: r.done, Total: r.total, Unit: "checks",
		Note: check.Name + ", " + check.Subject})
	r.stage.Add(check)
}

// ends reports whether a check has failed in a run that its first failure ends.
func (r *stageRun) ends() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.env.FirstFailure && r.failedOne
}

// part is what a process of a scenario is called in the events.
func (r *stageRun) part(scenario string, built *host.Build, threads int) events.Part {
	return events.Part{Step: r.step, Subject: r.hosts.Subject(built.Stamp.Patches) + ", " + string(built.Stamp.Flavour), Name: scenario,
		Column: process.ThreadsColumn(threads)}
}

// plan announces the processes of a table of scenarios.
func (r *stageRun) plan(scenarios []scenario, all ...*host.Build) {
	for _, built := range all {
		if built == nil {
			continue
		}
		for _, s := range scenarios {
			if s.NoThread != "" && built.Stamp.Flavour == builds.Thread {
				continue
			}
			planned := events.PartsPlanned{Step: r.step, Subject: r.part(s.Name, built, 1).Subject, Names: []string{s.Name}}
			for _, threads := range s.threads(r.env.Quick) {
				planned.Columns = append(planned.Columns, process.ThreadsColumn(threads))
			}
			r.env.Sink.Emit(planned)
		}
	}
}

// operations compares each operation with the CPU, over random shapes, strides and types.
func (r *stageRun) operations(ctx context.Context, built *host.Build, names []string) error {
	iterations := 40
	if r.env.Quick {
		iterations = 12
	}
	return together(ctx, r, names, func(ctx context.Context, r *stageRun, name string) error {
		if !r.env.Shard.Has(valuesJob(name)) {
			return nil
		}
		if name == "op-gradient" && built.Stamp.Flavour == builds.Thread {
			r.add(reports.Check{Name: valuesJob(name), Subject: "patched", Verdict: reports.Skipped,
				Detail: "libtorch is not instrumented: what its autograd engine frees looks like a race"})
			return nil
		}
		one := hostRun{built: built, tools: r.hosts.Root, scenario: name, threads: 1, iterations: iterations, seed: r.env.Seed % 1_000_000_007,
			limit: process.Patient, series: r.hasSeries(built)}
		part := r.part(valuesJob(name), built, 1)
		part.Column = ""
		tell := events.RunPart(r.env.Sink, part)
		end, _, err := one.run(ctx)
		if err != nil {
			return err
		}
		tell(end.Finished(end.Skipped != ""))
		check := reports.Check{Name: valuesJob(name), Subject: "patched", Verdict: reports.Passed, Seconds: end.Seconds,
			Detail: fmt.Sprintf("values compared with the CPU: %d", end.Values)}
		if end.Skipped != "" {
			check.Verdict, check.Detail = reports.Skipped, end.Skipped
		} else if end.Problem != "" {
			check.Findings = process.Findings([]process.Result{end})
			if err := r.fail(&check, end, built); err != nil {
				return err
			}
		}
		r.stage.Count("values compared", end.Values)
		r.add(check)
		return nil
	})
}

// fail fills a failed check.
func (r *stageRun) fail(check *reports.Check, end process.Result, built *host.Build) error {
	check.Verdict = reports.Failed
	check.Detail = fmt.Sprintf("%d threads: %s; again: %s", end.Threads, end.Problem, end.Again)
	check.Output = process.LastLines([]byte(end.Output))
	var err error
	check.Artifact, err = end.Keep(r.env.Artifacts, fmt.Sprintf("%s %s %s %d", check.Name, check.Subject, built.Stamp.Flavour, end.Threads))
	return err
}

// waits reports which of these patches the sources have not yet.
func (r *stageRun) waits(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(r.env.Identity.Patches, name) })
}

// scenarios fills the table: each scenario on stock, if it is built, and on the patched sources.
func (r *stageRun) scenarios(ctx context.Context, stock, patched *host.Build) error {
	mine := slices.DeleteFunc(slices.Clone(r.table), func(s scenario) bool { return !r.env.Shard.Has(s.Name) })
	r.plan(mine, stock, patched)
	return together(ctx, r, mine, func(ctx context.Context, r *stageRun, s scenario) error {
		if s.NoThread != "" && patched.Stamp.Flavour == builds.Thread {
			r.add(reports.Check{Name: s.Name, Subject: "patched, " + string(builds.Thread), Verdict: reports.Skipped, Detail: s.NoThread})
			r.reached(1)
			return nil
		}
		if stock != nil {
			if err := r.onStock(ctx, s, stock); err != nil {
				return err
			}
			r.reached(1)
		}
		if err := r.onPatched(ctx, s, patched); err != nil {
			return err
		}
		r.reached(1)
		return nil
	})
}

// tries is how often a scenario is run at one thread count.
func (r *stageRun) tries() int {
	if r.env.Quick {
		return 1
	}
	return 3
}

// chances is how often stock may live at the largest thread count before that counts as living: a race needs luck.
func (s scenario) chances() int {
	switch s.Stock {
	case process.StockFails:
		return 8
	case process.StockMay:
		return 3
	}
	return 1
}

func (r *stageRun) hasSeries(built *host.Build) bool {
	return len(built.Stamp.Patches) == len(r.env.Series.Patches)
}

func (r *stageRun) hostRun(s scenario, built *host.Build, threads, try int) hostRun {
	one := hostRun{built: built, tools: r.hosts.Root, scenario: s.Name, threads: threads, iterations: s.Iterations, warm: !s.Cold,
		seed: (r.env.Seed + uint64(try)) % 1_000_000_007, more: s.Environment, limit: process.Patient, series: r.hasSeries(built)}
	if s.Stock != process.StockLives && (len(built.Stamp.Patches) < len(r.env.Series.Patches) || len(r.waits(s.Patches)) > 0) {
		one.limit = process.Impatient
	}
	if built.Stamp.Flavour == builds.Thread {
		one.iterations = max(1, s.Iterations/2) // the sanitizer needs one occurrence, not many
	}
	return one
}

// outcomes runs a scenario at all its thread counts, so often at the last one, and reports how each run ended, in the
// order of the counts.
func (r *stageRun) outcomes(ctx context.Context, s scenario, built *host.Build, last int, until func(process.Result) bool) ([]process.Result, error) {
	var all []process.Result
	counts := s.threads(r.env.Quick)
	for i, threads := range counts {
		tries := r.tries()
		if i == len(counts)-1 {
			tries = max(tries, last)
		}
		for try := range tries {
			one := r.hostRun(s, built, threads, try)
			tell := events.RunPart(r.env.Sink, r.part(s.Name, built, threads))
			end, err := r.kept.once(built, process.Again(one.environment(), one.command()), func() (process.Result, error) {
				end, _, err := one.run(ctx)
				return end, err
			})
			if err != nil {
				return nil, err
			}
			// That stock has races where it must live is not a failure yet: see onStock.
			races := len(built.Stamp.Patches) == 0 && end.OnlyRaces && threads < s.Least
			tell(end.Finished(end.Skipped != "" || races || r.mayFail(s, built, threads)))
			r.stage.Count("processes run", 1)
			r.stage.Count("values compared", end.Values)
			all = append(all, end)
			if until(all[len(all)-1]) {
				return all, nil
			}
		}
	}
	return all, nil
}

// mayFail reports whether it is no news that a process goes wrong: of stock sources, of those with a patch left out, and of a
// series that does not have the scenario's patches yet.
func (r *stageRun) mayFail(s scenario, built *host.Build, threads int) bool {
	if len(built.Stamp.Patches) == 0 {
		return s.Stock != process.StockLives && threads >= max(1, s.Least)
	}
	return len(built.Stamp.Patches) < len(r.env.Series.Patches) || len(r.waits(s.Patches)) > 0
}

// onPatched demands that every run lives with right values and that no checker finds anything.
func (r *stageRun) onPatched(ctx context.Context, s scenario, built *host.Build) error {
	check := reports.Check{Name: s.Name, Subject: "patched, " + string(built.Stamp.Flavour), Verdict: reports.Passed}
	all, err := r.outcomes(ctx, s, built, 1, func(o process.Result) bool { return o.Problem != "" })
	if err != nil {
		return err
	}
	check.Seconds = secondsOf(all)
	grid(&check, all)
	last := all[len(all)-1]
	waiting := r.waits(s.Patches)
	switch {
	case last.Skipped != "":
		check.Verdict, check.Detail = reports.Skipped, last.Skipped
	case last.Problem != "" && len(waiting) == 0:
		r.fails(s.Name, built.Stamp.Flavour, true)
		if err := r.fail(&check, last, built); err != nil {
			return err
		}
	case len(waiting) > 0:
		check.Verdict = reports.Skipped
		check.Detail = "waits for " + strings.Join(waiting, ", ") + "; today: " + lived(all)
		if last.Problem != "" {
			check.Detail = fmt.Sprintf("waits for %s; today at %d threads: %s", strings.Join(waiting, ", "), last.Threads, last.Problem)
		}
	default:
		check.Detail = lived(all)
		if !s.Cold {
			check.Detail += "; after a first use by one thread"
		}
	}
	r.add(check)
	return nil
}

// onStock demands that stock fails where the field reports say that it fails, and in a way that the row names, so that a pass of the patched
// sources means something. An end that the row does not name is a check of its own, which has no verdict.
func (r *stageRun) onStock(ctx context.Context, s scenario, built *host.Build) error {
	check := reports.Check{Name: s.Name, Subject: "stock, " + string(built.Stamp.Flavour), Verdict: reports.Passed}
	ended := func(o process.Result) bool { return o.Problem != "" && o.Threads >= max(1, s.Least) }
	failed := func(o process.Result) bool { return ended(o) && s.names(o) }
	all, err := r.outcomes(ctx, s, built, s.chances(), failed)
	if err != nil {
		return err
	}
	check.Seconds = secondsOf(all)
	grid(&check, all)
	last := all[len(all)-1]
	// Handlers race with one thread already, so that ThreadSanitizer reports what does no harm yet.
	early := slices.IndexFunc(all, func(o process.Result) bool {
		return o.Problem != "" && !o.OnlyRaces && o.Threads < s.Least
	})
	switch {
	case last.Skipped != "":
		check.Verdict, check.Detail = reports.Skipped, last.Skipped
	case early >= 0:
		// With fewer threads stock is right; if it is not here, the host build is wrong.
		if err := r.fail(&check, all[early], built); err != nil {
			return err
		}
	case failed(last) && s.Stock == process.StockLives:
		if err := r.fail(&check, last, built); err != nil {
			return err
		}
	case failed(last):
		check.Detail = fmt.Sprintf("fails at %d threads, run %d: %s", last.Threads, len(all), last.Problem)
		if last.Signature != "" {
			check.Detail += " (signature " + last.Signature + ")"
		}
	case s.Stock == process.StockFails:
		check.Verdict = reports.Failed
		check.Detail = "stock does not fail here as the row says, so a pass of the patched sources proves nothing: " + lived(all)
	default:
		check.Detail = lived(all)
		if s.Stock == process.StockMay {
			check.Detail += "; so this run's pass of the patched sources proves nothing"
		}
	}
	r.add(check)
	if at := slices.IndexFunc(all, func(o process.Result) bool { return ended(o) && !s.names(o) }); at >= 0 {
		r.add(reports.Check{Name: s.Name, Subject: check.Subject + ", another end", Verdict: reports.Skipped, Output: all[at].Output,
			Detail: fmt.Sprintf("%d threads: %s: no end that scenarios.json names for stock, so that it shows nothing; again: %s", all[at].Threads,
				all[at].Problem, all[at].Again)})
	}
	return nil
}

// grid puts how the processes ended into the check.
func grid(check *reports.Check, all []process.Result) {
	check.Cells, check.Findings = process.Cells(all), process.Findings(all)
}

func secondsOf(all []process.Result) float64 {
	var sum float64
	for _, o := range all {
		sum += o.Seconds
	}
	return sum
}

// lived describes runs that all ended well.
func lived(all []process.Result) string {
	var counts []string
	var values int64
	for _, o := range all {
		if text := fmt.Sprint(o.Threads); !slices.Contains(counts, text) {
			counts = append(counts, text)
		}
		values += o.Values
	}
	return fmt.Sprintf("lived at %s threads, %d runs, right values: %d", strings.Join(counts, ", "), len(all), values)
}
