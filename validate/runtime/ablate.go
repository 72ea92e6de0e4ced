package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/host"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/process"
	"mpsforge/validate/stage"
)

// ablate leaves each of the chosen patches out in turn and reports which scenarios fail then. A patch whose absence no
// scenario notices is reported; it fails where the patch's own trailer names a scenario of this stage. The short form
// runs the named scenarios alone.
func (r *stageRun) ablate(ctx context.Context) error {
	chosen, err := r.env.Series.Named(r.env.Host.Ablate)
	if err != nil {
		return err
	}
	for _, patch := range chosen {
		check, err := r.leaveOut(ctx, patch)
		if err != nil {
			return err
		}
		r.add(check)
	}
	return nil
}

// leaveOut runs the scenarios without a patch, as a step of its own, with a grid of its own.
func (r *stageRun) leaveOut(ctx context.Context, patch *patches.Patch) (reports.Check, error) {
	check := reports.Check{Name: "without " + patch.Name, Subject: "ablation", Verdict: reports.Passed}
	r.step = check.Name
	finish := events.Step(r.env.Sink, r.step)
	defer func() {
		finish(events.Failed, "")
		r.step = stage.StepName(r.stage.Name)
	}()
	named := patch.Header.Values("Scenario")
	scenarios := slices.DeleteFunc(scenarios(), func(s scenario) bool {
		return len(r.waits(s)) > 0 || r.env.Quick && !slices.Contains(named, s.name)
	})
	var failing []string
	var leftOut []string
	for f, flavour := range r.flavours() {
		if r.env.Quick && len(failing) == len(scenarios) {
			break // nothing is left to be noticed
		}
		built, without, err := r.buildWithout(ctx, patch.Name, flavour)
		if err != nil {
			return check, err
		}
		leftOut = without
		r.plan(scenarios, built)
		for i, s := range scenarios {
			r.env.Sink.Emit(events.StepProgress{Step: r.step, Done: int64(f*len(scenarios) + i), Total: int64(len(r.flavours()) * len(scenarios)), Unit: "scenarios", Note: s.name})
			if slices.Contains(failing, s.name) || (s.notThread != "" && flavour == builds.Thread) {
				continue
			}
			all, err := r.outcomes(ctx, s, built, s.chances(), func(o process.Result) bool { return o.Problem != "" })
			if err != nil {
				return check, err
			}
			check.Seconds += secondsOf(all)
			if last := all[len(all)-1]; last.Problem != "" && last.Skipped == "" {
				failing = append(failing, s.name)
			}
		}
		if flavour == builds.Plain && !r.env.Quick {
			noticing, err := r.noticingProgram(ctx, built)
			if err != nil {
				return check, err
			}
			failing = append(failing, noticing...)
		}
	}
	var missed []string // though the patch's trailer names them
	for _, s := range scenarios {
		if slices.Contains(named, s.name) && !slices.Contains(failing, s.name) {
			missed = append(missed, s.name)
		}
	}
	left := ""
	if len(leftOut) > 1 {
		left = fmt.Sprintf(" (left out with it: %s)", strings.Join(leftOut[1:], ", "))
	}
	switch {
	case len(missed) > 0:
		check.Verdict = reports.Failed
		check.Detail = fmt.Sprintf("its trailer says that these fail without it, but they pass: %s%s", strings.Join(missed, ", "), left)
	case len(failing) == 0:
		check.Detail = fmt.Sprintf("no scenario of this stage fails without it; its proof is: %s%s", strings.Join(named, ", "), left)
	default:
		check.Detail = fmt.Sprintf("fail without it: %s%s", strings.Join(failing, ", "), left)
	}
	outcome := events.OK
	if check.Verdict == reports.Failed {
		outcome = events.Failed
	}
	finish(outcome, check.Detail)
	return check, nil
}

// buildWithout builds the series without a patch and those that do not apply without it. Where what is left does not
// compile, since one of the rest uses what the patch declares, all that follow are left out as well.
func (r *stageRun) buildWithout(ctx context.Context, name string, flavour builds.Flavour) (*host.Build, []string, error) {
	source, err := r.env.Checkout.Without(ctx, r.env.Series, name, r.env.Cache)
	if err != nil {
		return nil, nil, err
	}
	built, err := r.hosts.Build(ctx, source, flavour)
	if errors.Is(err, builds.ErrSources) {
		if source, err = r.env.Checkout.Before(ctx, r.env.Series, name, r.env.Cache); err != nil {
			return nil, nil, err
		}
		built, err = r.hosts.Build(ctx, source, flavour)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the series without %s: %w", strings.Join(source.LeftOut, ", "), err)
	}
	return built, source.LeftOut, nil
}

// operationTests asks the program for its list.
func operationTests(ctx context.Context, built *host.Build) ([]string, error) {
	found, err := run.Command{Name: built.Driver, Args: []string{"--list"}}.Run(ctx)
	if err != nil {
		return nil, err
	}
	var listed []struct {
		Name      string `json:"name"`
		Operation bool   `json:"operation"`
	}
	if err := json.Unmarshal(found.Stdout, &listed); err != nil {
		return nil, fmt.Errorf("list of scenarios: %w", err)
	}
	var names []string
	for _, one := range listed {
		if one.Operation {
			names = append(names, one.Name)
		}
	}
	return names, nil
}
