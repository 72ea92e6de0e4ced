package validate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
	runtimestage "mpsforge/validate/stages/runtime"
)

// CheckControl says how it is known of a check that it can fail.
type CheckControl struct {
	Check string `json:"check"` // as STAGE/NAME
	// Control is empty where nothing has shown it.
	Control string `json:"control"`
}

// CheckControls gives what shows of each scenario and each Python parallel test that it can fail: stock, which must fail in every run, a
// patch that was left out, a mutant, or a control. The Python tests that compare speeds are no checks.
func CheckControls(ablation patches.Ablation, mutants patches.Mutants, controls patches.Controls) []CheckControl {
	var all []CheckControl
	add := func(stage, name string, stock process.Stock) {
		one := CheckControl{Check: stage + "/" + name}
		if stock == process.StockFails {
			one.Control = "stock fails"
		}
		for _, p := range ablation.Patches {
			if one.Control == "" && stage == "runtime" && slices.ContainsFunc(p.Noticed, func(n patches.Notice) bool { return n.Scenario == name }) {
				one.Control = "fails without " + p.Patch
			}
		}
		for _, control := range controls.Controls {
			if one.Control == "" && control.SeenToFail(one.Check) {
				one.Control = "fails with the fault " + control.Name
			}
		}
		for _, m := range mutants.Mutants {
			if one.Control == "" && m.Judged != nil && m.Judged.Verdict == patches.MutantFound && m.Judged.Stage == stage && m.Judged.Check == name {
				one.Control = "fails with the mutant " + m.Name
			}
		}
		all = append(all, one)
	}
	runtimestage.EachScenario(func(name string, stock process.Stock) { add("runtime", name, stock) })
	for _, t := range pytests.Tests() {
		if t.Section != pytests.BenchSection {
			add("python", t.Name, t.Stock())
		}
	}
	return all
}

// JudgeControl puts the fault on the checkout, which must hold the whole series and nothing else, runs the checks that must fail with it,
// in their short form, and takes it off again, also when the context ends. Options name the series without it.
func JudgeControl(ctx context.Context, options Options, c patches.Control, sink events.Sink) (*patches.ControlSeen, error) {
	seen := &patches.ControlSeen{SeriesDigest: options.Series.Digest(), Date: time.Now().UTC(), Tool: toolOf(options.Tool), Seed: options.Seed}
	if err := onlyChecks(&options, c); err != nil {
		return nil, err
	}
	err := withFault(ctx, options, c.Name, c.Plant, sink, func(options Options) error {
		report, err := Run(ctx, options, sink)
		if err != nil {
			return err
		}
		for _, check := range c.Checks {
			one, err := endOf(report, check)
			if err != nil {
				return fmt.Errorf("%w: %s: %w", patches.ErrControls, c.Name, err)
			}
			one.Detail = withoutCache(one.Detail, options.Cache)
			seen.Checks = append(seen.Checks, one)
		}
		return nil
	})
	return seen, err
}

// onlyChecks chooses the stages and the rows of their tables that the control names.
func onlyChecks(options *Options, c patches.Control) error {
	options.KeepGoing, options.Stages, options.Host.Scenarios, options.Host.Flavours = true, nil, nil, []builds.Flavour{builds.Plain}
	if c.Flavour != "" {
		options.Host.Flavours = []builds.Flavour{builds.Flavour(c.Flavour)}
	}
	var tests []string
	for _, check := range c.Checks {
		stage, name, _ := strings.Cut(check, "/")
		switch stage {
		case "runtime":
			options.Host.Scenarios = append(options.Host.Scenarios, name)
		case "python":
			tests = append(tests, name)
		default:
			return fmt.Errorf("%w: %s: %q: checks of the stages runtime and python have controls; write runtime/NAME or python/NAME",
				patches.ErrControls, c.Name, check)
		}
		if !slices.Contains(options.Stages, stage) {
			options.Stages = append(options.Stages, stage)
		}
	}
	options.Python.Only, options.Python.Environment = stage.Exactly(tests), c.Environment
	return nil
}

// endOf gives how a check ended on the patched sources. One that did not run is an error.
func endOf(report *reports.Report, check string) (patches.ControlCheck, error) {
	stage, name, _ := strings.Cut(check, "/")
	end, ran := patches.ControlCheck{Check: check}, false
	for _, s := range report.Stages {
		if s.Name != stage {
			continue
		}
		if at := slices.IndexFunc(s.Checks, func(c reports.Check) bool { return c.Name == "compile" && c.Verdict == reports.Failed }); at >= 0 {
			return end, fmt.Errorf("the fault does not compile: %s", words.FirstLine(s.Checks[at].Detail))
		}
		for _, c := range s.Checks {
			if c.Name != name || c.Verdict != reports.Passed && c.Verdict != reports.Failed || end.Failed {
				continue
			}
			ran, end.Failed = true, c.Verdict == reports.Failed
			end.Detail, _, _ = strings.Cut(words.FirstLine(c.Detail), "; again: ")
		}
		if !ran {
			return end, fmt.Errorf("%s did not run: %s", check, words.FirstLine(s.Reason))
		}
	}
	if !ran {
		return end, fmt.Errorf("%s did not run: the report has no stage %s", check, stage)
	}
	return end, nil
}
