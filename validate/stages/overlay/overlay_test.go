package overlay

import (
	"context"
	"errors"
	"slices"
	"testing"

	"mpsforge/fork/macos/overlay"
	"mpsforge/internal/require"
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
	require.NoError(t, i.run(t.Context(), &env, inner, &report))
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

func TestEndsOfAStage(t *testing.T) {
	failed, passed := &reports.Check{Name: "one", Verdict: reports.Failed}, &reports.Check{Name: "one", Verdict: reports.Passed}
	for name, c := range map[string]struct {
		check   *reports.Check
		end     error
		verdict reports.Verdict
		last    reports.Verdict // of the checks
		detail  string          // of that one
	}{
		"a failure fails":               {failed, nil, reports.Failed, reports.Failed, ""},
		"an error fails":                {passed, errors.New("no such torch"), reports.Failed, reports.Failed, "no such torch"},
		"a skipped one is no pass":      {nil, stage.Skipf("no tests"), "", reports.Skipped, "no tests"},
		"one without checks is no pass": {nil, nil, "", reports.Skipped, "none of its checks could run here"},
	} {
		t.Run(name, func(t *testing.T) {
			_, report := over(t, stage.Env{}, c.check, c.end)
			if last := report.Checks[len(report.Checks)-1]; report.Verdict != c.verdict || last.Verdict != c.last || last.Detail != c.detail {
				t.Errorf("%+v", report)
			}
		})
	}
}
