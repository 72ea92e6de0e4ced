package reports_test

import (
	"fmt"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/reports"
)

// of makes a report with one stage.
func of(stage reports.Stage, checks ...reports.Check) *reports.Report {
	report := example()
	stage.Name = "python"
	for _, check := range checks {
		stage.Add(check)
	}
	report.Stages = []reports.Stage{stage}
	report.Conclude(nil)
	return report
}

func check(name string, verdict reports.Verdict, cells ...reports.Cell) reports.Check {
	return reports.Check{Name: name, Subject: "patched", Verdict: verdict, Cells: cells}
}

func at(threads int, outcome reports.Outcome) reports.Cell {
	return reports.Cell{Threads: threads, Outcome: outcome, Of: 1}
}

func speeds(samples ...float64) reports.Stage {
	return reports.Stage{Plots: []reports.Plot{{Title: "Speed", X: "threads",
		Lines: []reports.PlotLine{{Name: "linear", Points: []reports.PlotPoint{{X: 4, Y: samples[len(samples)/2], Samples: samples}}}}}}}
}

// One row a rule: what counts as a regression, what is fixed, new or of no weight.
func TestCompare(t *testing.T) {
	type report = *reports.Report
	for name, c := range map[string]struct {
		before, after report
		want          string // "worse", "fixed", "new" and "other" with the changes
	}{
		"the same":          {of(reports.Stage{}, check("a", reports.Passed)), of(reports.Stage{}, check("a", reports.Passed)), ""},
		"a pass that fails": {of(reports.Stage{}, check("a", reports.Passed)), of(reports.Stage{}, check("a", reports.Failed)), "worse: a passed->failed"},
		"a pass that is skipped": {of(reports.Stage{}, check("a", reports.Passed), check("b", reports.Passed)),
			of(reports.Stage{}, check("a", reports.Skipped), check("b", reports.Passed)), "worse: a passed->skipped"},
		"a skip that fails": {of(reports.Stage{}, check("a", reports.Skipped), check("b", reports.Failed)),
			of(reports.Stage{}, check("a", reports.Failed), check("b", reports.Failed)), "worse: a skipped->failed"},
		"a check that is gone": {of(reports.Stage{}, check("a", reports.Passed), check("b", reports.Passed)),
			of(reports.Stage{}, check("b", reports.Passed)), "worse: a passed->gone"},
		"a stage not reached":   {of(reports.Stage{}, check("a", reports.Passed)), of(reports.Stage{Verdict: reports.NotRun}), "worse:  passed->not run"},
		"a stage not asked for": {of(reports.Stage{}, check("a", reports.Passed)), of(reports.Stage{Verdict: reports.NotRun, Reason: reports.NotAsked}), ""},
		"a stage that breaks down": {of(reports.Stage{}, check("a", reports.Passed)), of(reports.Stage{Verdict: reports.Failed, Reason: "no compiler"},
			check("a", reports.Passed)),
			"worse:  passed->failed"},
		"a new check that fails": {of(reports.Stage{}, check("a", reports.Passed)), of(reports.Stage{}, check("a", reports.Passed),
			check("b", reports.Failed)), "worse: b not there->failed"},
		"a new check that passes": {of(reports.Stage{}, check("a", reports.Passed)), of(reports.Stage{}, check("a", reports.Passed),
			check("b", reports.Passed)), "new: b not there->passed"},
		"a failure fixed": {of(reports.Stage{}, check("a", reports.Failed)), of(reports.Stage{}, check("a", reports.Passed)),
			"fixed: a failed->passed"},
		"a failure not looked at": {of(reports.Stage{}, check("a", reports.Failed), check("b", reports.Passed)),
			of(reports.Stage{}, check("a", reports.Skipped), check("b", reports.Passed)), "other: a failed->skipped"},
		"fewer thread counts": {of(reports.Stage{}, check("a", reports.Passed, at(4, reports.OutcomePassed), at(8, reports.OutcomePassed))),
			of(reports.Stage{}, check("a", reports.Passed, at(4, reports.OutcomePassed))),
			"worse: a passed->not run"},
		"another end of stock": {of(reports.Stage{}, check("a", reports.Passed, at(4, reports.OutcomeCrashed))),
			of(reports.Stage{}, check("a", reports.Passed, at(4, reports.OutcomeRace))),
			"other: a † 0/1->⇄ 0/1"},
		"clearly slower": {of(speeds(100, 101, 102), check("a", reports.Passed)), of(speeds(50, 51, 52), check("a", reports.Passed)),
			"worse: Speed 101 (98.5 to 103)->51 (48.5 to 53.5)"},
		"perhaps slower": {of(speeds(80, 101, 120), check("a", reports.Passed)), of(speeds(60, 91, 110), check("a", reports.Passed)), ""},
		"measured once":  {of(speeds(100), check("a", reports.Passed)), of(speeds(50), check("a", reports.Passed)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			compared := reports.Compare(c.before, c.after)
			var got []string
			for _, group := range []struct {
				name    string
				changes []reports.Change
			}{{"worse", compared.Regressions}, {"fixed", compared.Fixed}, {"new", compared.New}, {"other", compared.Other}} {
				for _, change := range group.changes {
					got = append(got, fmt.Sprintf("%s: %s %s->%s", group.name, change.Name, change.Before, change.After))
				}
			}
			require.Equal(t, strings.Join(got, "; "), c.want)
		})
	}
}

// That the quick form runs fewer thread counts than the whole one is not a regression; that the forms differ is said.
func TestOtherFormIsSaid(t *testing.T) {
	before := of(reports.Stage{}, check("a", reports.Passed, at(4, reports.OutcomePassed), at(8, reports.OutcomePassed)))
	after := of(reports.Stage{}, check("a", reports.Passed, at(4, reports.OutcomePassed)))
	after.Quick, after.Identity.SeriesDigest, after.Identity.Patches = true, "d2", []string{"two"}
	compared := reports.Compare(before, after)
	if len(compared.Regressions) != 0 || len(compared.Other) != 1 {
		t.Errorf("%+v", compared)
	}
	var what []string
	for _, d := range compared.Differences {
		what = append(what, d.What+": "+d.Before+" "+d.After)
	}
	require.Equal(t, what, []string{"form: whole quick", "series digest: d1 d2", "patches on one side only: one two"})
}

// Speeds of different machines are not compared, and that is said.
func TestSpeedsOfAnotherMachine(t *testing.T) {
	before, after := of(speeds(100, 101, 102), check("a", reports.Passed)), of(speeds(50, 51, 52), check("a", reports.Passed))
	after.Machine.Cores = 64
	compared := reports.Compare(before, after)
	if len(compared.Regressions) != 0 || !strings.Contains(strings.Join(compared.Notes, " "), "not compared") {
		t.Errorf("%+v", compared)
	}
}

// The Markdown form begins with what got worse.
func TestComparisonAsMarkdown(t *testing.T) {
	compared := reports.Compare(of(reports.Stage{}, check("a", reports.Passed), check("b", reports.Failed)),
		of(reports.Stage{}, check("a", reports.Failed), check("b", reports.Passed)))
	var text strings.Builder
	require.NoError(t, compared.WriteMarkdown(&text))
	if !strings.HasPrefix(text.String(), "### mpsforge: ✗ regressions: 1, fixed: 1") || strings.Index(text.String(),
		"#### Regressions") > strings.Index(text.String(), "#### Fixed") {
		t.Error(text.String())
	}
}
