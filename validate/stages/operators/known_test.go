package operators

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/pytests"
)

var view = patches.OperatorFailure{Operator: "unfold", DType: "float32", Form: "first-work", Threads: 4, Seed: 7, Seen: []string{"wrong values"}, Reason: "R0"}

func ended(operator, dtype, form string, end status) outcome {
	o := outcome{Job: plan{seed: 7}.job(operator, dtype, form, 4)}
	o.Result.Status = end
	return o
}

// judged gives the report of the known failures' runs.
func judged(failure patches.OperatorFailure, ends ...outcome) reports.Stage {
	report := reports.Stage{Facts: []reports.Fact{{Name: "baseline", Value: "v2.6.0"}}}
	judgeKnown(&pool{subject: &pytests.Subject{Name: "patched"}}, patches.KnownOperators{Failures: []patches.OperatorFailure{failure}}, ends, &report)
	return report
}

func TestKnownFailures(t *testing.T) {
	for name, c := range map[string]struct {
		end     status
		verdict reports.Verdict
		says    string
	}{
		"one that fails is no news":     {wrongValues, reports.Passed, "as listed: 1"},
		"one that passes fails":         {right, reports.Failed, "it passes: delete it from patches/v2.6.0/operators.json"},
		"one that does not run fails":   {notAlone, reports.Failed, "listed as wrong values, now: does not run alone"},
		"one that ends otherwise fails": {crashed, reports.Failed, ", now: crashed"},
	} {
		t.Run(name, func(t *testing.T) {
			report := judged(view, ended("unfold", "float32", "first-work", c.end))
			if report.Verdict != c.verdict || !strings.Contains(cmp.Or(report.Reason, report.Checks[0].Detail), c.says) {
				t.Errorf("%+v", report)
			}
		})
	}
}

// A flaky one that passes fails nothing, and is not a pass either; how often it was seen is reported.
func TestFlakyKnownFailureMayPass(t *testing.T) {
	flaky := view
	flaky.Flaky = true
	report := judged(flaky, ended("unfold", "float32", "first-work", right), ended("unfold", "float32", "first-work", right))
	if report.Verdict != "" || report.Tables[0].Rows[0][3] != "0 of 2" {
		t.Errorf("%+v", report)
	}
}

// A listed form covers those that add words to it, and nothing else.
func TestKnownFailureCoversMoreSpecialForms(t *testing.T) {
	known := patches.KnownOperators{Failures: []patches.OperatorFailure{view}}
	for _, c := range []struct {
		end  outcome
		want bool
	}{
		{ended("unfold", "float32", "first-work", wrongValues), true},
		{ended("unfold", "float16", "strided+first-work", wrongValues), true},
		{ended("add", "float32", "first-work+group:unfold", wrongValues), true},
		{ended("unfold", "float32", "first-work", raced), false},
		{ended("unfold", "float32", "shared", wrongValues), false},
		{ended("fold", "float32", "first-work", wrongValues), false},
	} {
		require.Equal(t, knownOf(known, c.end) != nil, c.want, c.end.Job.cell, c.end.Result.Status)
	}
}

// mostKnown may only be lowered: the list of known failures shrinks.
const mostKnown = 0

func TestKnownFailuresOnlyShrink(t *testing.T) {
	series := require.One(patches.Load(os.DirFS("../../../patches"), "v2.6.0"))(t)
	known := require.One(series.KnownOperators())(t)
	if len(known.Failures) != mostKnown {
		t.Errorf("%d known failures, %d allowed; fewer: lower mostKnown", len(known.Failures), mostKnown)
	}
}

// A line for any operator covers its form and nothing else, and is not run by itself.
func TestLineForAnyOperatorCoversItsForm(t *testing.T) {
	known := patches.KnownOperators{Failures: []patches.OperatorFailure{{Operator: patches.AnyOperator, Form: "shared", Seen: []string{"race"}, Flaky: true}}}
	ended := func(form string, status status) outcome {
		return outcome{Job: job{cell: cell{Operator: "msort", DType: "float32", Form: form, Threads: 4}}, Result: result{Status: status}}
	}
	for _, c := range []struct {
		form   string
		status status
		want   bool
	}{{"shared", raced, true}, {"shared+strided", raced, true}, {"shared", crashed, false}, {"basic", raced, false}} {
		require.Equal(t, knownOf(known, ended(c.form, c.status)) != nil, c.want, c.form, c.status, "covered")
	}
	require.Equal(t, (plan{}).knownJobs(known), nil, "it runs")
}

// An entry that no longer runs alone, and one that does again, are both news; what is listed, in another type or another form is none.
func TestEntriesThatDoNotRunAloneAreListed(t *testing.T) {
	known := patches.KnownOperators{NotAlone: map[string]string{"qr": "no kernel", "eig": "no kernel"}, SomeNotAlone: map[string]string{"pool": "sizes"}}
	var report reports.Stage
	judgeNotAlone("patched", known, []outcome{ended("add", "float32", "basic", right), ended("qr", "float32", "basic", notAlone),
		ended("pool", "float32", "basic", right), ended("add", "int64", "basic", notAlone), ended("add", "float32", "out", notAlone)}, &report)
	if report.Verdict != reports.Passed || report.Checks[0].Detail != "yes: 2, no, as listed: 1" {
		t.Errorf("%+v", report)
	}
	report = reports.Stage{}
	judgeNotAlone("patched", known, []outcome{ended("add", "float32", "basic", notAlone), ended("eig", "float32", "basic", right)}, &report)
	if report.Verdict != reports.Failed || !strings.Contains(report.Checks[0].Output, "add does not, and not_alone") ||
		!strings.Contains(report.Checks[0].Output, "eig does: delete it") {
		t.Errorf("%+v", report)
	}
}
