package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork"
	"mpsforge/fork/build"
	"mpsforge/internal/events"
	"mpsforge/reports"
)

// runtimeStage runs the scenarios on PyTorch's real sources, stock and patched.
func runtimeStage(ctx context.Context, env *Env, stage *reports.Stage) error {
	if env.Checkout == nil {
		return Skipf("%s", env.NoCheckout)
	}
	hosts, err := newHostBuilder(ctx, env, stage)
	if errors.Is(err, build.ErrEnvironment) || errors.Is(err, fork.ErrEnvironment) {
		return Skipf("%v", err)
	}
	if err != nil {
		return err
	}
	r := runtimeRun{env: env, hosts: hosts, stage: stage}
	stock, err := env.Checkout.Stock(ctx, env.Cache)
	if err != nil {
		return err
	}
	patched, err := env.Checkout.Patched(ctx, env.Series, env.Cache)
	if err != nil {
		return err
	}
	stage.Facts = append(stage.Facts, reports.Fact{Name: "libtorch", Value: hosts.torch.Version},
		reports.Fact{Name: "stock tree", Value: stock.Tree}, reports.Fact{Name: "patched tree", Value: patched.Tree})
	for i, flavour := range r.flavours() {
		builtPatched, err := hosts.build(ctx, patched, flavour)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, build.ErrEnvironment) {
				return err
			}
			// Sources that do not compile are a verdict on the series.
			stage.Add(reports.Check{Name: "compile", Subject: "patched, " + string(flavour), Verdict: reports.Failed, Detail: firstLine(err), Output: err.Error()})
			return nil
		}
		if i == 0 {
			r.describe(builtPatched, stage)
			if err := r.operations(ctx, builtPatched); err != nil {
				return err
			}
		}
		// In the short form stock is run in one flavour: that it dies is seen there.
		var builtStock *build.HostBuild
		if i == 0 || !env.Quick {
			if builtStock, err = hosts.build(ctx, stock, flavour); err != nil {
				return err
			}
		}
		if flavour == build.Plain {
			r.layouts(builtStock.Layouts, builtPatched.Layouts)
		}
		if err := r.scenarios(ctx, builtStock, builtPatched); err != nil {
			return err
		}
	}
	return r.ablate(ctx)
}

// runtimeRun is one run of the stage.
type runtimeRun struct {
	env   *Env
	hosts *hostBuilder
	stage *reports.Stage
	done  int64
}

func (r *runtimeRun) flavours() []build.Flavour {
	if len(r.env.Host.Flavours) > 0 {
		return r.env.Host.Flavours
	}
	return []build.Flavour{build.Plain, build.Thread}
}

// describe puts what was compiled, and what not, into the report.
func (r *runtimeRun) describe(built *build.HostBuild, stage *reports.Stage) {
	stage.Count("sources compiled", int64(len(built.Compiled)))
	stage.Count("sources left out", int64(len(built.Excluded)))
	stage.Count("operators registered", int64(built.Kernels))
	reasons := map[string][]string{}
	var order []string
	for _, excluded := range built.Excluded {
		if reasons[excluded.Reason] == nil {
			order = append(order, excluded.Reason)
		}
		reasons[excluded.Reason] = append(reasons[excluded.Reason], excluded.Path[strings.LastIndexByte(excluded.Path, '/')+1:])
	}
	for _, reason := range order {
		stage.Facts = append(stage.Facts, reports.Fact{Name: "left out: " + reason, Value: strings.Join(reasons[reason], ", ")})
	}
}

func (r *runtimeRun) add(check reports.Check) {
	r.done++
	r.env.Sink.Emit(events.StepProgress{Step: StepName(r.stage.Name), Done: r.done, Unit: "checks", Note: check.Name + ", " + check.Subject})
	r.stage.Add(check)
}

// part is what a process of a scenario is called in the events.
func (r *runtimeRun) part(scenario string, built *build.HostBuild, threads int) events.Part {
	return events.Part{Step: StepName(r.stage.Name), Subject: r.hosts.subject(built.Stamp.Patches) + ", " + string(built.Stamp.Flavour), Name: scenario, Column: threadsColumn(threads)}
}

// plan announces the processes of a table of scenarios.
func (r *runtimeRun) plan(scenarios []runtimeScenario, builds ...*build.HostBuild) {
	for _, built := range builds {
		if built == nil {
			continue
		}
		for _, s := range scenarios {
			if s.notThread != "" && built.Stamp.Flavour == build.Thread {
				continue
			}
			planned := events.PartsPlanned{Step: StepName(r.stage.Name), Subject: r.part(s.name, built, 1).Subject, Names: []string{s.name}}
			for _, threads := range s.threads(r.env.Quick) {
				planned.Columns = append(planned.Columns, threadsColumn(threads))
			}
			r.env.Sink.Emit(planned)
		}
	}
}

// operations compares each operation with the CPU, over random shapes, strides and types.
func (r *runtimeRun) operations(ctx context.Context, built *build.HostBuild) error {
	names, err := operationTests(ctx, built)
	if err != nil {
		return err
	}
	iterations := 40
	if r.env.Quick {
		iterations = 12
	}
	for _, name := range names {
		if name == "op-gradient" && built.Stamp.Flavour == build.Thread {
			r.add(reports.Check{Name: "values: " + name, Subject: "patched", Verdict: reports.Skipped, Detail: engineUnseen})
			continue
		}
		one := hostRun{built: built, tools: r.hosts.root, scenario: name, threads: 1, iterations: iterations, seed: r.env.Seed % 1_000_000_007, limit: patient}
		part := r.part("values: "+name, built, 1)
		part.Column = ""
		tell := events.RunPart(r.env.Sink, part)
		end, _, err := one.run(ctx)
		if err != nil {
			return err
		}
		tell(end.finished(end.Skipped != ""))
		check := reports.Check{Name: "values: " + name, Subject: "patched", Verdict: reports.Passed, Seconds: end.Seconds,
			Detail: fmt.Sprintf("values compared with the CPU: %d", end.Values)}
		if end.Skipped != "" {
			check.Verdict, check.Detail = reports.Skipped, end.Skipped
		} else if end.Problem != "" {
			check.Findings = findingsOf([]Result{end})
			if err := r.fail(&check, end, built); err != nil {
				return err
			}
		}
		r.stage.Count("values compared", end.Values)
		r.add(check)
	}
	return nil
}

// fail fills a failed check.
func (r *runtimeRun) fail(check *reports.Check, end Result, built *build.HostBuild) error {
	check.Verdict = reports.Failed
	check.Detail = fmt.Sprintf("%d threads: %s; again: %s", end.Threads, end.Problem, end.Again)
	check.Output = lastLines([]byte(end.Output))
	var err error
	check.Artifact, err = end.keep(r.env.Artifacts, fmt.Sprintf("%s %s %s %d", check.Name, check.Subject, built.Stamp.Flavour, end.Threads))
	return err
}

// waits tells which patches a scenario waits for.
func (r *runtimeRun) waits(s runtimeScenario) []string {
	var missing []string
	for _, name := range s.patches {
		if !slices.ContainsFunc(r.env.Identity.Patches, func(have string) bool { return have == name }) {
			missing = append(missing, name)
		}
	}
	return missing
}

// scenarios fills the table: each scenario on stock, if it is built, and on the patched sources.
func (r *runtimeRun) scenarios(ctx context.Context, stock, patched *build.HostBuild) error {
	r.plan(runtimeScenarios(), stock, patched)
	for _, s := range runtimeScenarios() {
		if s.notThread != "" && patched.Stamp.Flavour == build.Thread {
			r.add(reports.Check{Name: s.name, Subject: "patched, " + string(build.Thread), Verdict: reports.Skipped, Detail: s.notThread})
			continue
		}
		if stock != nil {
			if err := r.onStock(ctx, s, stock); err != nil {
				return err
			}
		}
		if err := r.onPatched(ctx, s, patched); err != nil {
			return err
		}
	}
	return nil
}

// tries is how often a scenario is run at one thread count.
func (r *runtimeRun) tries() int {
	if r.env.Quick {
		return 1
	}
	return 3
}

// chances is how often stock may live at the largest thread count before that counts as living: a race needs luck.
func (s runtimeScenario) chances() int {
	switch s.stock {
	case stockFails:
		return 8
	case stockMay:
		return 3
	}
	return 1
}

func (r *runtimeRun) hostRun(s runtimeScenario, built *build.HostBuild, threads, try int) hostRun {
	one := hostRun{built: built, tools: r.hosts.root, scenario: s.name, threads: threads, iterations: s.iterations, warm: !s.cold,
		seed: (r.env.Seed + uint64(try)) % 1_000_000_007, more: s.environment, limit: patient}
	if s.stock != stockLives && (len(built.Stamp.Patches) == 0 || len(r.waits(s)) > 0) {
		one.limit = impatient
	}
	if built.Stamp.Flavour == build.Thread {
		one.iterations = max(1, s.iterations/2) // the sanitizer needs one occurrence, not many
	}
	return one
}

// outcomes runs a scenario at all its thread counts, so often at the last one, and tells how each run ended, in the
// order of the counts.
func (r *runtimeRun) outcomes(ctx context.Context, s runtimeScenario, built *build.HostBuild, last int, until func(Result) bool) ([]Result, error) {
	var all []Result
	counts := s.threads(r.env.Quick)
	for i, threads := range counts {
		tries := r.tries()
		if i == len(counts)-1 {
			tries = max(tries, last)
		}
		for try := range tries {
			one := r.hostRun(s, built, threads, try)
			tell := events.RunPart(r.env.Sink, r.part(s.name, built, threads))
			end, _, err := one.run(ctx)
			if err != nil {
				return nil, err
			}
			// That stock has races where it must live is no failure yet: see onStock.
			races := len(built.Stamp.Patches) == 0 && end.OnlyRaces && threads < s.least
			tell(end.finished(end.Skipped != "" || races || r.mayFail(s, built, threads)))
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

// mayFail tells whether it is no news that a process goes wrong: of stock sources, of those with a patch left out, and of a
// series that does not have the scenario's patches yet.
func (r *runtimeRun) mayFail(s runtimeScenario, built *build.HostBuild, threads int) bool {
	if len(built.Stamp.Patches) == 0 {
		return s.stock != stockLives && threads >= max(1, s.least)
	}
	return len(built.Stamp.Patches) < len(r.env.Series.Patches) || len(r.waits(s)) > 0
}

// onPatched demands that every run lives with right values and that no checker finds anything.
func (r *runtimeRun) onPatched(ctx context.Context, s runtimeScenario, built *build.HostBuild) error {
	check := reports.Check{Name: s.name, Subject: "patched, " + string(built.Stamp.Flavour), Verdict: reports.Passed}
	all, err := r.outcomes(ctx, s, built, 1, func(o Result) bool { return o.Problem != "" })
	if err != nil {
		return err
	}
	check.Seconds = secondsOf(all)
	grid(&check, all)
	last := all[len(all)-1]
	waiting := r.waits(s)
	switch {
	case last.Skipped != "":
		check.Verdict, check.Detail = reports.Skipped, last.Skipped
	case last.Problem != "" && len(waiting) == 0:
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
		if !s.cold {
			check.Detail += "; after a first use by one thread"
		}
	}
	r.add(check)
	return nil
}

// onStock demands that stock fails where the field reports say that it fails, so that a pass of the patched sources
// means something.
func (r *runtimeRun) onStock(ctx context.Context, s runtimeScenario, built *build.HostBuild) error {
	check := reports.Check{Name: s.name, Subject: "stock, " + string(built.Stamp.Flavour), Verdict: reports.Passed}
	failed := func(o Result) bool { return o.Problem != "" && o.Threads >= max(1, s.least) }
	all, err := r.outcomes(ctx, s, built, s.chances(), failed)
	if err != nil {
		return err
	}
	check.Seconds = secondsOf(all)
	grid(&check, all)
	last := all[len(all)-1]
	// Handlers race with one thread already, so that ThreadSanitizer reports what does no harm yet.
	early := slices.IndexFunc(all, func(o Result) bool {
		return o.Problem != "" && !o.OnlyRaces && o.Threads < s.least
	})
	switch {
	case last.Skipped != "":
		check.Verdict, check.Detail = reports.Skipped, last.Skipped
	case early >= 0:
		// With fewer threads stock is right; if it is not here, the host build is wrong.
		if err := r.fail(&check, all[early], built); err != nil {
			return err
		}
	case failed(last) && s.stock == stockLives:
		if err := r.fail(&check, last, built); err != nil {
			return err
		}
	case failed(last):
		check.Detail = fmt.Sprintf("fails at %d threads, run %d: %s", last.Threads, len(all), last.Problem)
		if last.Signature != "" {
			check.Detail += " (signature " + last.Signature + ")"
		}
	case s.stock == stockFails:
		check.Verdict = reports.Failed
		check.Detail = "stock lives here, so that a pass of the patched sources proves nothing: " + lived(all)
	default:
		check.Detail = lived(all)
		if s.stock == stockMay {
			check.Detail += "; so this run's pass of the patched sources proves nothing"
		}
	}
	r.add(check)
	return nil
}

// grid puts how the processes ended into the check.
func grid(check *reports.Check, all []Result) {
	check.Cells, check.Findings = cellsOf(all), findingsOf(all)
}

func secondsOf(all []Result) float64 {
	var sum float64
	for _, o := range all {
		sum += o.Seconds
	}
	return sum
}

// lived describes runs that all ended well.
func lived(all []Result) string {
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
