package overlay

import (
	"context"
	"errors"
	"slices"
	"testing"

	"mpsforge/fork/macos/overlay"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// over runs a stage made for a test, and gives what the stage was given and what came of it.
func over(t *testing.T, env stage.Env, check *reports.Check, end error) (given stage.Env, report reports.Stage) {
	t.Helper()
	inner := stage.Stage{Name: "inner", Run: func(_ context.Context, env *stage.Env, report *reports.Stage) error {
		given = *env
		report.Count("jobs", 2)
		if check != nil {
			report.Add(*check)
		}
		return end
	}}
	report.Name = "overlay"
	i := installed{Trial: overlay.Trial{Python: "trapped/python3"}, environment: []string{"A=b"}}
	if err := i.run(t.Context(), &env, inner, &report); err != nil {
		t.Fatal(err)
	}
	return given, report
}

func TestStagesRunOnTheOverlaysPython(t *testing.T) {
	given, _ := over(t, stage.Env{Options: stage.Options{Artifacts: "left", Python: stage.PythonOptions{Stock: "other"}}}, nil, nil)
	if p := given.Python; p.Interpreter != "trapped/python3" || p.Stock != "" || !slices.Equal(p.Environment, []string{"A=b"}) || !given.Quick ||
		given.Artifacts != "left/overlay" {
		t.Errorf("the stage was given %+v", given.Options)
	}
}

func TestShortFormRunsASample(t *testing.T) {
	given, _ := over(t, stage.Env{Options: stage.Options{Quick: true}}, nil, nil)
	if given.Python.Only == "" || given.Upstream.Tests == "" || len(given.Operators.Names) == 0 {
		t.Errorf("the stage was given %+v", given.Options)
	}
}

func TestChecksOfAStageAreTakenOver(t *testing.T) {
	_, report := over(t, stage.Env{}, &reports.Check{Name: "one", Subject: "patched", Verdict: reports.Passed}, nil)
	if len(report.Checks) != 1 || report.Checks[0].Name != "inner: one" || report.Verdict != reports.Passed || report.Counts["inner: jobs"] != 2 {
		t.Errorf("%+v", report)
	}
}

func TestAFailureOfAStageFails(t *testing.T) {
	if _, report := over(t, stage.Env{}, &reports.Check{Name: "one", Verdict: reports.Failed}, nil); report.Verdict != reports.Failed {
		t.Errorf("%+v", report)
	}
}

func TestAnErrorOfAStageFails(t *testing.T) {
	if _, report := over(t, stage.Env{}, &reports.Check{Name: "one", Verdict: reports.Passed}, errors.New("no such torch")); report.Verdict != reports.Failed {
		t.Errorf("%+v", report)
	}
}

func TestASkippedStageIsNoPass(t *testing.T) {
	_, report := over(t, stage.Env{}, nil, stage.Skipf("no tests"))
	if len(report.Checks) != 1 || report.Checks[0].Verdict != reports.Skipped || report.Checks[0].Detail != "no tests" || report.Verdict != "" {
		t.Errorf("%+v", report)
	}
}

func TestAStageWithoutChecksIsNoPass(t *testing.T) {
	if _, report := over(t, stage.Env{}, nil, nil); len(report.Checks) != 1 || report.Checks[0].Verdict != reports.Skipped {
		t.Errorf("%+v", report)
	}
}

func TestWithoutACheckoutItSkips(t *testing.T) {
	env := stage.Env{Options: stage.Options{NoCheckout: "no checkout"}}
	if _, skipped := stage.SkipReason(Stage().Run(t.Context(), &env, &reports.Stage{})); !skipped {
		t.Error("without a checkout the stage has nothing to build")
	}
}
