package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// ablate leaves each of the chosen patches out in turn and reports which scenarios fail then, and how. A patch whose absence nothing
// notices fails, and so does one whose trailer names a scenario that passes without it, or fails in a way that its row does not name.
func (r *stageRun) ablate(ctx context.Context) error {
	chosen, err := r.leftOut()
	if err != nil {
		return err
	}
	for _, patch := range chosen {
		after := r.rows + len(r.flavours())*len(r.without())
		check, err := r.leaveOut(ctx, patch)
		if err != nil {
			return err
		}
		r.reached(after - r.rows)
		r.add(check)
	}
	return nil
}

// leftOut are the patches that this run, or shard, leaves out.
func (r *stageRun) leftOut() ([]*patches.Patch, error) {
	chosen, err := r.env.Series.Named(r.env.Host.Ablate)
	return slices.DeleteFunc(slices.Clone(chosen), func(p *patches.Patch) bool { return !r.env.Shard.Has(withoutJob(p)) }), err
}

// without are the scenarios that run without a patch.
func (r *stageRun) without() []scenario {
	return slices.DeleteFunc(slices.Clone(r.table), func(s scenario) bool { return len(r.waits(s.Patches)) > 0 })
}

// ablation is what the scenarios did without a patch.
type ablation struct {
	patch     string
	named     []string         // scenarios of this stage that its trailer names
	elsewhere []string         // what else its trailer names: the proof is in another stage
	noticed   []process.Result // of scenarios that fail for want of it; Path is the scenario and the flavour
	passed    []string         // scenarios that ran without it, and were right in some flavour
	unnamed   []process.Result // of scenarios that fail in a way that their rows do not name
	broken    []string         // that fail with the whole series, too
	others    []string         // that fail for want of what was left out with it
	leftOut   []string         // with it, in some flavour
	seconds   float64
}

// leaveOut runs the scenarios without a patch, as a step of its own, with a grid of its own.
func (r *stageRun) leaveOut(ctx context.Context, patch *patches.Patch) (reports.Check, error) {
	check := reports.Check{Name: withoutJob(patch), Subject: "ablation"}
	r.step = check.Name
	finish := events.Step(r.env.Sink, r.step)
	defer func() {
		finish(events.Failed, "")
		r.step = stage.StepName(r.stage.Name)
	}()
	a := ablation{patch: patch.Name}
	for _, name := range patch.Header.Values("Scenario") {
		if slices.ContainsFunc(r.table, func(s scenario) bool { return s.Name == name }) {
			a.named = append(a.named, name)
		} else {
			a.elsewhere = append(a.elsewhere, name)
		}
	}
	table := r.without()
	for f, flavour := range r.flavours() {
		// a further flavour is for what the trailer names and has not noticed
		if noticing := a.noticing(); r.env.Quick && f > 0 && len(noticing)+len(a.named) > 0 {
			table = slices.DeleteFunc(table, func(s scenario) bool { return slices.Contains(noticing, s.Name) || !slices.Contains(a.named, s.Name) })
		}
		if len(table) == 0 {
			break
		}
		err := r.withoutIn(ctx, &a, table, flavour, f)
		if errors.Is(err, builds.ErrSources) { // a verdict, as it is of the whole series
			check.Verdict, check.Detail, check.Output = reports.Failed, "cannot be judged: "+words.FirstLine(err.Error()), err.Error()
			finish(events.Failed, check.Detail)
			return check, nil
		}
		if err != nil {
			return check, err
		}
	}
	a.judge(&check)
	finish(stage.Outcome(check.Verdict), check.Detail)
	return check, nil
}

// withoutIn runs the scenarios of a table without the patch in a flavour, the fth, but for those that have noticed already.
func (r *stageRun) withoutIn(ctx context.Context, a *ablation, table []scenario, flavour builds.Flavour, f int) error {
	built, leftOut, err := r.buildWithout(ctx, a.patch, flavour)
	if err != nil {
		return err
	}
	with := slices.DeleteFunc(slices.Clone(leftOut), func(name string) bool { return name == a.patch })
	for _, name := range with {
		a.leftOut = addName(a.leftOut, name)
	}
	noticed := a.noticing()
	table = slices.DeleteFunc(slices.Clone(table), func(s scenario) bool {
		return slices.Contains(noticed, s.Name) || (s.NoThread != "" && flavour == builds.Thread)
	})
	r.plan(table, built)
	ends := map[string]withoutEnd{}
	if err := together(ctx, r, table, func(ctx context.Context, r *stageRun, s scenario) error {
		end, err := r.endWithout(ctx, s, built, slices.Contains(a.named, s.Name))
		if err != nil {
			return err
		}
		r.reached(1)
		r.mutex.Lock()
		defer r.mutex.Unlock()
		ends[s.Name] = end
		r.env.Sink.Emit(events.StepProgress{Step: r.step, Done: int64(f*len(table) + len(ends)), Total: int64(len(r.flavours()) * len(table)),
			Unit: "scenarios", Note: s.Name})
		return nil
	}); err != nil {
		return err
	}
	for _, s := range table {
		a.add(s, ends[s.Name], flavour, with)
	}
	if flavour != builds.Plain || r.env.Quick || len(with) > 0 { // a program does not say which patches it needs
		return nil
	}
	noticing, err := r.noticingProgram(ctx, built)
	a.noticed = append(a.noticed, noticing...)
	return err
}

// withoutEnd is how a scenario ended without a patch.
type withoutEnd struct {
	last    process.Result
	broken  bool // it fails with the whole series, too
	seconds float64
}

// endWithout runs a scenario on a build without a patch. One that the patch's trailer names gets more chances, as on stock.
func (r *stageRun) endWithout(ctx context.Context, s scenario, built *host.Build, named bool) (withoutEnd, error) {
	chances := 1
	if named {
		chances = s.chances()
	}
	failed := func(o process.Result) bool { return o.Problem != "" }
	all, err := r.outcomes(ctx, s, built, chances, func(o process.Result) bool { return failed(o) && s.namesWithout(o) })
	if err != nil {
		return withoutEnd{}, err
	}
	end := withoutEnd{last: all[len(all)-1], seconds: secondsOf(all)}
	if at := slices.IndexFunc(all, failed); at >= 0 && !failed(end.last) {
		end.last = all[at] // no chance ended as the row says
	}
	if end.last.Skipped != "" || end.last.Problem == "" {
		return end, nil
	}
	end.broken, err = r.failsWhole(s.Name, built.Stamp.Flavour, func(aside *stageRun, patched *host.Build) (process.Result, error) {
		all, err := aside.outcomes(ctx, s, patched, 1, failed)
		if err != nil {
			return process.Result{}, err
		}
		return all[len(all)-1], nil
	})
	return end, err
}

// add sorts in how a scenario ended in a flavour, with others left out besides the patch.
func (a *ablation) add(s scenario, end withoutEnd, flavour builds.Flavour, with []string) {
	a.seconds += end.seconds
	// By the table a scenario fails for want of one of its own patches. Where that is one of the others, it says nothing of this one.
	foreign := !slices.Contains(s.Patches, a.patch) && slices.ContainsFunc(s.Patches, func(name string) bool { return slices.Contains(with, name) })
	switch {
	case end.last.Skipped != "":
	case end.last.Problem == "":
		a.passed = addName(a.passed, s.Name)
	case end.broken:
		a.broken = addName(a.broken, s.Name)
	case foreign:
		a.others = addName(a.others, s.Name)
	default:
		end.last.Path = s.Name + ", " + string(flavour)
		if s.namesWithout(end.last) {
			a.noticed = append(a.noticed, end.last)
		} else {
			a.unnamed = append(a.unnamed, end.last)
		}
	}
}

// noticing are the scenarios and programs that fail for want of the patch.
func (a *ablation) noticing() []string { return scenariosOf(a.noticed) }

// scenariosOf are the scenarios and programs of ends.
func scenariosOf(ends []process.Result) []string {
	var names []string
	for _, o := range ends {
		names = append(names, o.Path[:strings.LastIndex(o.Path, ", ")])
	}
	return names
}

// judge fills the check. Only a scenario that is right with the whole series and fails for want of this patch is evidence.
func (a *ablation) judge(check *reports.Check) {
	check.Seconds, check.Cells = a.seconds, process.Cells(a.noticed)
	noticing := a.noticing()
	among := func(all []string) (some []string) {
		for _, name := range a.named {
			if slices.Contains(all, name) && !slices.Contains(noticing, name) {
				some = append(some, name)
			}
		}
		return some
	}
	otherwise := scenariosOf(a.unnamed)
	passed, broken, unnamed := among(a.passed), among(a.broken), among(otherwise)
	passed = slices.DeleteFunc(passed, func(name string) bool { return slices.Contains(broken, name) })
	var said []string
	say := func(what string, names []string) {
		if len(names) > 0 {
			said = append(said, what+strings.Join(names, ", "))
		}
	}
	check.Verdict = reports.Failed
	say("its trailer says that these fail without it, but they pass: ", passed)
	say("fail with the whole series, too, which says nothing about it: ", broken)
	switch {
	case len(passed)+len(broken)+len(unnamed) > 0:
	case len(a.noticed) > 0:
		check.Verdict = reports.Passed
	case len(a.named) > 0:
		check.Verdict = reports.Skipped
		say("the scenarios that its trailer names could not show it here: ", a.named)
	case len(a.elsewhere) > 0:
		check.Verdict = reports.Skipped
		say("no scenario of this stage fails without it; its proof is: ", a.elsewhere)
	default:
		said = append(said, "nothing notices that it is left out: give it a scenario, or take it out of the series")
	}
	var seen []string
	for i, o := range a.noticed {
		seen = append(seen, fmt.Sprintf("%s (%s)", noticing[i], cmp.Or(o.Signature, string(o.Kind))))
	}
	say("fail without it: ", seen)
	for i, o := range a.unnamed {
		otherwise[i] += fmt.Sprintf(" (%s)", o.Problem)
	}
	say("fail in a way that their rows do not name, which is no evidence: ", otherwise)
	say("fail, but for want of what was left out with it: ", slices.DeleteFunc(slices.Clone(a.others),
		func(name string) bool { return slices.Contains(noticing, name) }))
	check.Detail = strings.Join(said, "; ")
	if len(a.leftOut) > 0 {
		check.Detail += fmt.Sprintf(" (left out with it: %s)", strings.Join(a.leftOut, ", "))
	}
}

func addName(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// buildWithout builds the series without a patch and those that do not apply without it. Where what is left does not
// compile, since one of the rest uses what the patch declares, all that follow are left out as well.
func (r *stageRun) buildWithout(ctx context.Context, name string, flavour builds.Flavour) (*host.Build, []string, error) {
	source, err := r.sources.Without(ctx, r.env.Series, name, r.env.Cache)
	if err != nil {
		return nil, nil, err
	}
	built, err := r.build(ctx, source, flavour)
	if errors.Is(err, builds.ErrSources) {
		if source, err = r.sources.Before(ctx, r.env.Series, name, r.env.Cache); err != nil {
			return nil, nil, err
		}
		built, err = r.build(ctx, source, flavour)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the series without %s: %w", strings.Join(source.LeftOut, ", "), err)
	}
	return built, source.LeftOut, nil
}
