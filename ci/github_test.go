package ci_test

import (
	"fmt"
	"strings"
	"testing"

	"mpsforge/ci"
	"mpsforge/internal/require"
	"mpsforge/reports"
)

// long is a report with so many failures, each with its output in a folded block.
func long(failures int) *reports.Report {
	report := &reports.Report{Schema: reports.Schema, Stages: []reports.Stage{{Name: "runtime", Question: "right values?"}}}
	for i := range failures {
		report.Stages[0].Add(reports.Check{Name: fmt.Sprintf("linear, %d threads", i), Verdict: reports.Failed, Detail: "wrong values",
			Output: strings.Repeat("a line of output, with ümlauts\n", 20)})
	}
	report.Conclude(nil)
	return report
}

func summary(t *testing.T, report *reports.Report, limit int) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, ci.WriteSummary(&text, report, limit))
	return text.String()
}

// A report that fits is written as it is.
func TestShortSummaryIsWhole(t *testing.T) {
	var whole strings.Builder
	report := long(3)
	require.NoError(t, report.WriteMarkdown(&whole))
	require.Equal(t, summary(t, report, whole.Len()), whole.String())
}

// GitHub drops a summary above its limit; so it is cut at whole lines, says so, and leaves no fence and no details open,
// wherever the limit falls.
func TestLongSummaryIsCut(t *testing.T) {
	report := long(2000)
	if text := summary(t, report, ci.SummaryLimit); len(text) > ci.SummaryLimit || len(text) < ci.SummaryLimit-1000 ||
		!strings.Contains(text, "**Cut here.**") {
		t.Errorf("%d bytes: ...%s", len(text), text[len(text)-300:])
	}
	report = long(2)
	for limit := 400; limit < len(summary(t, report, ci.SummaryLimit)); limit++ {
		text := summary(t, report, limit)
		opened, closed := strings.Count(text, "<details>"), strings.Count(text, "</details>")
		if len(text) > limit || opened != closed || strings.Count(text, "````")%2 != 0 || strings.Contains(text, "\uFFFD") {
			t.Fatalf("limit %d: %d bytes, details opened %d, closed %d:\n%s", limit, len(text), opened, closed, text)
		}
		if !strings.Contains(text, "\n**Cut here.** The report is ") {
			t.Fatalf("limit %d: it does not say that it was cut:\n%s", limit, text)
		}
	}
}

// A text of a check that closes more than was opened, as a hand may write it into a report, is cut, too.
func TestSummaryThatClosesTooMuchIsCut(t *testing.T) {
	report := long(20)
	report.Identity.Baseline = "</details></details>"
	report.Stages[0].Checks[0].Detail = "</details></details></details>"
	report.Stages[0].Reason = "</details></details>"
	if text := summary(t, report, 2000); !strings.Contains(text, "**Cut here.**") {
		t.Error(text)
	}
}

// Where the summary is full already, nothing is added: anything would make GitHub drop all of it.
func TestFullSummaryStaysAsItIs(t *testing.T) {
	for _, limit := range []int{10, 0, -5} {
		require.Equal(t, summary(t, long(1), limit), "", "limit", limit)
	}
}

// Failures become errors, with file and line where the check has them; what could not run becomes a warning.
func TestAnnotations(t *testing.T) {
	report := &reports.Report{Stages: []reports.Stage{{Name: "series"}, {Name: "runtime", Verdict: reports.Skipped, Reason: "no compiler"},
		{Name: "python", Verdict: reports.Failed, Reason: "another torch"},
		{Name: "device", Verdict: reports.Skipped, Reason: "no Metal"}, {Name: "bench", Verdict: reports.NotRun, Reason: "not asked for"}}}
	report.Stages[0].Add(reports.Check{Name: "context", Subject: "patches/v2.9.1/slots.patch:12", Verdict: reports.Failed,
		Detail: "100% wrong:\nexpected a, found b"})
	report.Stages[0].Add(reports.Check{Name: "exact", Subject: "checkout", Verdict: reports.Failed, Detail: "x"})
	report.Stages[0].Add(reports.Check{Name: "good", Verdict: reports.Passed})
	report.Conclude([]string{"runtime"})
	var lines []string
	for _, annotation := range ci.Annotations(report) {
		lines = append(lines, annotation.String())
	}
	want := `::error file=patches/v2.9.1/slots.patch,line=12,title=series%3A context::100%25 wrong:%0Aexpected a, found b
::error title=series%3A exact (checkout)::x
::error title=stage python failed::another torch
::error title=required stage runtime did not run::no compiler
::warning title=stage device did not run::no Metal`
	require.Equal(t, strings.Join(lines, "\n"), want)
}

// Text from elsewhere cannot end the command and begin another.
func TestAnnotationsAreEscaped(t *testing.T) {
	a := ci.Annotation{Level: "error", File: "a,line=9:b", Title: "x::y\r\n::warning::z", Message: "m\n::set-output name=a::b"}
	require.Equal(t, a.String(), "::error file=a%2Cline=9%3Ab,title=x%3A%3Ay%0D%0A%3A%3Awarning%3A%3Az::m%0A::set-output name=a::b")
}

// GitHub keeps ten errors of a step, so the tenth says how many there are beside the nine before it.
func TestManyAnnotationsAreCounted(t *testing.T) {
	all := ci.Annotations(long(25))
	if len(all) != 10 || all[8].Title != "runtime: linear, 8 threads" || all[9].Title != "16 more errors" {
		t.Errorf("%d: %v", len(all), all)
	}
}
