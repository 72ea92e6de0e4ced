package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork/build"
	"mpsforge/internal/run"
	"mpsforge/reports"
)

// ablate leaves each patch out in turn, with those that do not apply without it, and tells which scenarios fail then. A
// patch whose absence no scenario notices is reported; it fails where the patch's own trailer names a scenario.
func (r *runtimeRun) ablate(ctx context.Context) error {
	for _, patch := range r.Series.Patches {
		check := reports.Check{Name: "without " + patch.Name, Subject: "ablation", Verdict: reports.Passed}
		source, err := r.Checkout.Without(ctx, r.Series, patch.Name, r.Cache)
		if err != nil {
			return err
		}
		var failing []string
		for _, flavour := range r.flavours() {
			built, err := r.build(ctx, source, flavour)
			if err != nil {
				return fmt.Errorf("the series without %s: %w", strings.Join(source.LeftOut, ", "), err)
			}
			for _, s := range runtimeScenarios() {
				if len(r.waits(s)) > 0 || slices.Contains(failing, s.name) || (s.notThread != "" && flavour == build.Thread) {
					continue
				}
				all, err := r.outcomes(ctx, s, built, s.chances(), func(o outcome) bool { return o.end.problem != "" })
				if err != nil {
					return err
				}
				check.Seconds += secondsOf(all)
				if last := all[len(all)-1]; last.end.problem != "" && last.run.notRun(last.end) == "" {
					failing = append(failing, s.name)
				}
			}
		}
		var promised []string // by the patch's trailer
		for _, name := range patch.Header.Values("Scenario") {
			if slices.ContainsFunc(runtimeScenarios(), func(s runtimeScenario) bool { return s.name == name }) && !slices.Contains(failing, name) {
				promised = append(promised, name)
			}
		}
		left := ""
		if len(source.LeftOut) > 1 {
			left = fmt.Sprintf(" (left out with it: %s)", strings.Join(source.LeftOut[1:], ", "))
		}
		switch {
		case len(promised) > 0:
			check.Verdict = reports.Failed
			check.Detail = fmt.Sprintf("its trailer says that these fail without it, and they pass: %s%s", strings.Join(promised, ", "), left)
		case len(failing) == 0:
			check.Detail = fmt.Sprintf("no scenario of this stage notices its absence; its proof is: %s%s", strings.Join(patch.Header.Values("Scenario"), ", "), left)
		default:
			check.Detail = fmt.Sprintf("fail without it: %s%s", strings.Join(failing, ", "), left)
		}
		r.add(check)
	}
	return nil
}

// operationTests asks the program for its list.
func operationTests(ctx context.Context, built *build.HostBuild) ([]string, error) {
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
