package reports_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
	"mpsforge/reports"
)

func passed(name string) reports.Check { return reports.Check{Name: name, Verdict: reports.Passed} }

// One failed check fails its stage, whatever came before or after it.
func TestFailedCheckFailsTheStage(t *testing.T) {
	var stage reports.Stage
	stage.Add(passed("one"))
	stage.Add(reports.Check{Name: "two", Verdict: reports.Failed, Detail: "why"})
	stage.Add(passed("three"))
	if stage.Verdict != reports.Failed || stage.Reason != "two: why" {
		t.Errorf("verdict %q, reason %q", stage.Verdict, stage.Reason)
	}
}

// A stage in which every check was skipped has no verdict of its own.
func TestSkippedChecksAreNoPass(t *testing.T) {
	var stage reports.Stage
	stage.Add(reports.Check{Name: "one", Verdict: reports.Skipped})
	require.Equal(t, stage.Verdict, "", "verdict")
}

// Bars are as long as their values say; a group is named once.
func TestPlotsAreDrawn(t *testing.T) {
	report := &reports.Report{Stages: []reports.Stage{{Name: "bench", Plots: []reports.Plot{{Title: "Speed", Unit: "operations a second",
		Bars: []reports.PlotBar{{Group: "linear", Name: "1 thread", Value: 100}, {Group: "linear", Name: "2 threads", Value: 150},
			{Group: "mlp", Name: "1 thread", Value: 200}}}}}}}
	var text strings.Builder
	require.NoError(t, report.WriteMarkdown(&text))
	want := "linear   1 thread  " + strings.Repeat("█", 25) + " 100\n" +
		"        2 threads  " + strings.Repeat("█", 37) + "▌ 150\n" +
		"mlp      1 thread  " + strings.Repeat("█", 50) + " 200\n"
	if !strings.Contains(text.String(), want) {
		t.Errorf("%s\nlacks\n%s", &text, want)
	}
}

func TestConclude(t *testing.T) {
	for name, c := range map[string]struct {
		stages   []reports.Verdict // of stages a, b, c
		required []string
		want     reports.Verdict
		missing  string
	}{
		"all passed":                         {[]reports.Verdict{reports.Passed, reports.Passed}, nil, reports.Passed, ""},
		"one failed":                         {[]reports.Verdict{reports.Passed, reports.Failed, reports.NotRun}, nil, reports.Failed, ""},
		"a skip does not spoil a pass":       {[]reports.Verdict{reports.Passed, reports.Skipped}, nil, reports.Passed, ""},
		"a skip alone is not a pass":         {[]reports.Verdict{reports.Skipped, reports.NotRun}, nil, reports.NotRun, ""},
		"a required skip":                    {[]reports.Verdict{reports.Passed, reports.Skipped}, []string{"b"}, reports.Skipped, "b"},
		"a required stage that is not there": {[]reports.Verdict{reports.Passed}, []string{"c"}, reports.Skipped, "c"},
		"failure outweighs a missing stage":  {[]reports.Verdict{reports.Failed, reports.NotRun}, []string{"b"}, reports.Failed, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			var report reports.Report
			for i, verdict := range c.stages {
				report.Stages = append(report.Stages, reports.Stage{Name: string(rune('a' + i)), Verdict: verdict})
			}
			report.Conclude(c.required)
			if report.Verdict != c.want || strings.Join(report.Missing, ",") != c.missing {
				t.Errorf("verdict %q, missing %v", report.Verdict, report.Missing)
			}
		})
	}
}

func example() *reports.Report {
	report := &reports.Report{
		Schema: reports.Schema, Tool: reports.Tool{Name: "mpsforge", Version: "v1"}, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 1.5,
		Seed:     7,
		Identity: reports.Identity{Baseline: "v2.9.1", SeriesDigest: "d1", Patches: []string{"one"}},
		Limits:   []string{"It shows nothing else."},
		Stages: []reports.Stage{
			{Name: "series", Question: "well-formed?", Verdict: reports.Passed, Counts: map[string]int64{"patches": 1, "hunks": 2}},
			{Name: "device", Verdict: reports.Skipped, Reason: "no Metal | device"},
		},
	}
	report.Stages[0].Facts = []reports.Fact{{Name: "digest", Value: "d1"}}
	report.Stages[0].Add(reports.Check{Name: "lint", Verdict: reports.Failed, Detail: "line\nbreak", Output: "tool's words", Artifact: "kept.json"})
	report.Conclude(nil)
	return report
}

// What is written is read back, and other schemas are refused.
func TestJSONRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	var first, second bytes.Buffer
	require.NoError(t, example().WriteJSON(&first))
	require.NoError(t, os.WriteFile(path, first.Bytes(), 0o644))
	read := require.One(reports.ReadFile(path))(t)
	require.NoError(t, read.WriteJSON(&second))
	if first.String() != second.String() {
		t.Errorf("read back:\n%s\nwritten:\n%s", second.String(), first.String())
	}
}

// Checks are encoded one by one: the text is that of the whole report at once.
func TestJSONIsThatOfTheWholeReport(t *testing.T) {
	report := example()
	report.Stages = append(report.Stages, reports.Stage{Name: "no checks", Checks: []reports.Check{}},
		reports.Stage{Name: "one", Checks: []reports.Check{{Name: "<a> & b\n"}}})
	var got, want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	require.NoError(t, errors.Join(report.WriteJSON(&got), encoder.Encode(report)))
	require.Equal(t, got.String(), want.String(), "written")
}

// The Markdown form names verdicts, reasons, counts, failures with their output, and the limits; cells do not break.
func TestMarkdown(t *testing.T) {
	var text strings.Builder
	require.NoError(t, example().WriteMarkdown(&text))
	for _, want := range []string{
		"### mpsforge: ✗ failed, passed 0 of 2 stages\n\nNothing of PyTorch was compiled or run; not run on a Mac. PyTorch v2.9.1, patches: 1. 1.5 s.\n",
		"| series | ✗ failed | 0.0 | hunks: 2, patches: 1 | lint: line break |",
		`| device | ○ skipped | 0.0 |  | no Metal \| device |`,
		"- digest: `d1`",
		"<details><summary>lint</summary>",
		"tool's words",
		"kept: `kept.json`",
		"- It shows nothing else.",
	} {
		require.Contains(t, text.String(), want)
	}
}

// The summary counts the stages unless all of them ran; what had to run and did not is named.
func TestConclusion(t *testing.T) {
	for name, c := range map[string]struct {
		stages   []reports.Verdict // of stages a, b, c
		required []string
		want     string
	}{
		"all passed":        {[]reports.Verdict{reports.Passed, reports.Passed}, []string{"a", "b"}, "passed"},
		"some passed":       {[]reports.Verdict{reports.Passed, reports.Skipped, reports.NotRun}, nil, "passed 1 of 3 stages"},
		"all ran, one bad":  {[]reports.Verdict{reports.Passed, reports.Failed}, nil, "failed"},
		"one bad, one left": {[]reports.Verdict{reports.Passed, reports.Failed, reports.NotRun}, nil, "failed, passed 1 of 3 stages"},
		"one missing": {[]reports.Verdict{reports.Passed, reports.Skipped}, []string{"b", "b"},
			"incomplete, passed 1 of 2 stages; required but not run: b"},
		"none ran": {[]reports.Verdict{reports.Skipped}, nil, "not run, passed 0 of 1 stages"},
	} {
		t.Run(name, func(t *testing.T) {
			var report reports.Report
			for i, verdict := range c.stages {
				report.Stages = append(report.Stages, reports.Stage{Name: string(rune('a' + i)), Verdict: verdict})
			}
			report.Conclude(c.required)
			if got := report.Conclusion(); got != c.want || report.Summary != c.want {
				t.Errorf("%q, in the JSON form %q, want %q", got, report.Summary, c.want)
			}
		})
	}
}

// A trial leaves nothing behind and an existing report as it is.
func TestTryFilesChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "below", "out.json")
	require.NoError(t, reports.TryFiles(path))
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	if err := reports.TryFiles(path); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
	require.Is(t, reports.TryFiles(filepath.Join(path, "out.json")), reports.ErrUnwritable)
}
