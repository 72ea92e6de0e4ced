package reports_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"mpsforge/internal/require"
	"mpsforge/internal/words"
	"mpsforge/reports"
)

// hostile is what a crashing program may say: markup, control characters, bytes that are no text.
const hostile = "<script>alert(1)</script> & \"'` ]]> \x1b[2J\x00 \xff\xfe | </td>"

// grown is a report with stock, patched, cells, findings and charts.
func grown() *reports.Report {
	report := example()
	python := reports.Stage{Name: "python", Question: "?", Seconds: 2, Tables: []reports.Table{{Title: "A table", Columns: []string{"a", "b"},
		Rows: [][]string{{"1", hostile}}}},
		Plots: []reports.Plot{{Title: "Speed", Unit: "operations a second", X: "threads", Lines: []reports.PlotLine{
			{Name: "linear", Points: []reports.PlotPoint{{X: 1, Y: 100, Samples: []float64{90, 100, 120}}, {X: 2, Y: 150}}},
			{Name: hostile, Points: []reports.PlotPoint{{X: 1, Y: 50}}}}}}}
	python.Add(reports.Check{Name: "linear", Subject: "stock", Verdict: reports.Passed, Detail: "fails", Cells: []reports.Cell{
		{Threads: 1, Outcome: reports.OutcomePassed, Of: 2}, {Threads: 4, Outcome: reports.OutcomeCrashed, Bad: 1, Of: 3,
			Signature: "6 encode-after-commit", Detail: hostile}},
		Findings: []reports.Finding{{Kind: "violation", Threads: 4, Message: hostile, First: "commit by thread 1", Second: "encode by thread 2",
			Signature: "6 encode-after-commit"}}})
	python.Add(reports.Check{Name: "linear", Subject: "patched", Verdict: reports.Failed, Detail: "wrong numbers", Output: hostile, Cells: []reports.Cell{
		{Threads: 1, Outcome: reports.OutcomePassed, Of: 2}, {Threads: 4, Outcome: reports.OutcomeWrongValues, Bad: 2, Of: 2}}})
	var many []reports.Cell
	for threads := 1; threads <= 33; threads++ {
		many = append(many, reports.Cell{Threads: threads, Outcome: reports.OutcomePassed, Of: 1})
	}
	many[32].Outcome, many[32].Bad = reports.OutcomeHung, 1
	python.Add(reports.Check{Name: "boundary", Subject: "patched", Verdict: reports.Failed, Cells: many})
	python.Add(reports.Check{Name: "waiting", Subject: "patched", Verdict: reports.Skipped, Detail: "waits for a patch"})
	report.Stages = append(report.Stages, python)
	report.Conclude([]string{"device"})
	return report
}

func rendered(t *testing.T, report *reports.Report, form string) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, report.Write(&text, form))
	return text.String()
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("no XML: %v\n%s", err, text)
		}
	}
}

// The text form begins with the answer and what failed, sets stock beside patched, shows the grid with signs and thread counts
// as ranges, and ends with digests.
func TestText(t *testing.T) {
	text := rendered(t, grown(), "text")
	last := 0
	for _, want := range []string{
		"mpsforge: ✗ failed", "required but not run: device",
		"  Failed: python: linear: wrong numbers\n",
		"  python: stock crashed in 1 of 1 Python tests; patched passed 0 of these,",
		"  Not run: device (no Metal | device).\n",
		"\nFailed\n", "✗ python: linear, patched",
		"python: stock against patched",
		"linear  † crashed 1 of 3 at 4 threads:  ✗ failed, wrong values 2 of 2 at 4 threads",
		"encode-after-commit",
		"python: thread grid", "metal explain NAME explains a crash by its name, such as encode-after-commit.",
		"check   on       1      4",
		"linear  stock    ✓ 2/2  † 1/3: encode-after-commit",
		"        patched  ✓ 2/2  ≠ 2/2",
		"boundary, patched: 1 to 32 threads ✓ 1/1; 33 threads ∞ 1/1",
		"\nSpeed (operations a second)\n", " 1 thread  █",
		"\nSkipped\n", "waits for a patch",
		"What this run cannot show",
		"What was verified", "series digest",
	} {
		at := strings.Index(text[last:], want)
		if at < 0 {
			t.Fatalf("after %q lacks %q:\n%s", text[max(0, last-40):last], want, text)
		}
		last += at
	}
	if strings.ContainsAny(text, "\x1b\x00") {
		t.Error("what a program said reaches the terminal's controls")
	}
}

// A summary is what the whole text begins with, without tables.
func TestSummary(t *testing.T) {
	var summary strings.Builder
	require.NoError(t, grown().WriteSummary(&summary, words.Palette{}, reports.PipeWidth))
	if whole := rendered(t, grown(), "text"); !strings.HasPrefix(whole, summary.String()) || strings.Contains(summary.String(), "thread grid") {
		t.Errorf("the summary is\n%s", &summary)
	}
}

// Stock's ends are counted by kind unless all are crashes, they open the report unless another stage failed, and the command that runs
// it again is the last line.
func TestAnswer(t *testing.T) {
	cells := func(outcome reports.Outcome) []reports.Cell {
		return []reports.Cell{{Threads: 4, Outcome: outcome, Bad: map[bool]int{true: 1}[outcome != reports.OutcomePassed], Of: 1}}
	}
	python := reports.Stage{Name: "python", Verdict: reports.Passed}
	for name, outcome := range map[string]reports.Outcome{"a": reports.OutcomeCrashed, "b": reports.OutcomeHung, "c": reports.OutcomePassed} {
		python.Add(reports.Check{Name: name, Subject: "stock", Verdict: reports.Passed, Cells: cells(outcome)})
		python.Add(reports.Check{Name: name, Subject: "patched", Verdict: reports.Passed, Cells: cells(reports.OutcomePassed)})
	}
	report := reports.Report{Command: "mpsforge verify --seed 7", Stages: []reports.Stage{{Name: "series", Verdict: reports.Passed}, python,
		{Name: "mac", Verdict: reports.Skipped, Reason: "no wheel"}}}
	check := func(verification string, answer ...string) {
		t.Helper()
		report.Conclude(nil)
		require.Equal(t, report.Verification(), verification)
		require.Equal(t, report.Answer(), append(answer, "Run it again: mpsforge verify --seed 7"))
	}
	check("Stock failed in 2 of 3 Python tests (crashed 1, hung 1); patched passed 3 of these. Verification passed 2 of 3 stages",
		"Passed: series.", "Not run: mac (no wheel).")
	report.Stages[0].Verdict, report.Stages[0].Reason = reports.Failed, "a patch does not apply"
	check("verification failed, passed 1 of 3 stages", "Failed: series: a patch does not apply",
		"python: stock failed in 2 of 3 Python tests (crashed 1, hung 1); patched passed 3 of these.", "Not run: mac (no wheel).")
	for i := range python.Checks {
		python.Checks[i].Cells = cells(reports.OutcomePassed)
	}
	python.Add(reports.Check{Name: "d", Subject: "stock", Verdict: reports.Skipped, Cells: []reports.Cell{{Threads: 4, Outcome: reports.OutcomeSkipped}}})
	python.Add(reports.Check{Name: "d", Subject: "patched", Verdict: reports.Passed, Cells: cells(reports.OutcomePassed)})
	report.Stages = []reports.Stage{python}
	check("Stock passed 3 of 3 Python tests; patched passed 3 of these, and 1 of 1 that stock does not run. Verification passed")
}

// Colour comes only when it is asked for, and changes nothing else.
func TestTextInColour(t *testing.T) {
	var coloured strings.Builder
	require.NoError(t, grown().WriteText(&coloured, words.Palette{Bold: "1", Good: "32", Bad: "31", Odd: "33"}, reports.PipeWidth))
	require.Contains(t, coloured.String(), "\x1b[31m✗ failed \x1b[0m", "no red")
	plain := coloured.String()
	for _, code := range []string{"0", "1", "31", "32", "33"} {
		plain = strings.ReplaceAll(plain, "\x1b["+code+"m", "")
	}
	if plain != rendered(t, grown(), "text") {
		t.Error("without its colours it is another text")
	}
}

// JUnit's form has a case for each check and for each stage that has none, counts them, and is XML whatever was said.
func TestJUnit(t *testing.T) {
	text := rendered(t, grown(), "junit")
	wellFormed(t, text)
	type message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	var read struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string   `xml:"name,attr"`
				Class   string   `xml:"classname,attr"`
				Failure *message `xml:"failure"`
				Skipped *message `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal([]byte(text), &read))
	if read.Tests != 6 || read.Failures != 4 || read.Skipped != 1 || len(read.Suites) != 3 {
		t.Errorf("tests %d, failures %d, skipped %d, suites %d", read.Tests, read.Failures, read.Skipped, len(read.Suites))
	}
	device, python := read.Suites[1].Cases[0], read.Suites[2].Cases
	if device.Failure == nil || !strings.Contains(device.Failure.Message, "required, but skipped: no Metal") {
		t.Errorf("a required stage that did not run is %+v", device)
	}
	if python[1].Class != "python.patched" || python[1].Failure.Message != "wrong numbers" || !strings.Contains(python[1].Failure.Text, "<script>") {
		t.Errorf("%+v", python[1])
	}
	if python[0].Failure != nil || python[0].Skipped != nil || python[3].Skipped.Message != "waits for a patch" {
		t.Errorf("%+v", python)
	}
}

// The page shows what programs said as text, never as markup, and needs nothing from anywhere.
func TestHTML(t *testing.T) {
	text := rendered(t, grown(), "html")
	for _, bad := range []string{"<script", "src=", "@import", "url(", "\x1b"} {
		if strings.Contains(text, bad) {
			t.Errorf("holds %q", bad)
		}
	}
	for _, want := range []string{
		"&lt;script&gt;alert(1)", "prefers-color-scheme:dark", "@media print",
		`<td class="cell wanted" data-label="4 threads"`,              // stock crashed, as it must
		`<td class="cell failed" data-label="4 threads"`,              // patched must not
		`<span class="range passed">1 to 32 threads ✓ 1/1</span>`,     // no 33 columns
		`<td class="side" data-label="first">commit by thread 1</td>`, // both sides
		`<details class="stage" id="stage-python" open>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q", want)
		}
	}
}

// Each chart is a file of its own, XML whatever its names are, and named after what it shows.
func TestCharts(t *testing.T) {
	paths := require.One(grown().WriteCharts(filepath.Join(t.TempDir(), "new", "folder")))(t)
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
		text := require.One(os.ReadFile(path))(t)
		wellFormed(t, string(text))
	}
	require.Equal(t, strings.Join(names, " "), "python-speed.svg report-time-of-each-stage.svg", "files")
}

// Reports of real runs, old ones too, can be had in every form.
func TestRealReportsInEveryForm(t *testing.T) {
	for _, path := range realReports(t) {
		report := require.One(reports.ReadFile(path))(t)
		for _, form := range reports.Formats() {
			if text := rendered(t, report, form); len(text) < 1000 {
				t.Errorf("%s as %s has only %d bytes", path, form, len(text))
			}
		}
		wellFormed(t, rendered(t, report, "junit"))
	}
}

// A grid of checks that each have thread counts of their own would be as large as the product of both.
func TestGridOfManyThreadCountsStaysNarrow(t *testing.T) {
	report := example()
	stage := reports.Stage{Name: "runtime", Verdict: reports.Passed}
	for i := range 1000 {
		stage.Add(reports.Check{Name: fmt.Sprintf("check %d", i), Subject: "patched", Verdict: reports.Passed,
			Cells: []reports.Cell{{Threads: i + 1, Outcome: reports.OutcomePassed, Of: 1}}})
	}
	report.Stages = []reports.Stage{stage}
	for _, form := range []string{"html", "markdown", "text"} {
		text := rendered(t, report, form)
		if len(text) > 2_000_000 || !strings.Contains(text, "1000 threads") {
			t.Errorf("%s has %d bytes, or lacks a check", form, len(text))
		}
	}
}

// Text breaks between words where its terminal ends, and says in its first lines what the report was run on.
func TestTextFitsItsTerminal(t *testing.T) {
	for _, width := range []int{80, 100, 200} {
		var text strings.Builder
		require.NoError(t, grown().WriteText(&text, words.Palette{}, width))
		for line := range strings.Lines(text.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && !strings.HasPrefix(line, "  Run it again: ") {
				t.Errorf("at %d characters a line has %d: %s", width, n, line)
			}
		}
	}
}

// Every form says where it ran before anything that could be taken for more.
func TestFormsSayWhereTheyRan(t *testing.T) {
	const place = "over the software Metal on Linux; not run on a Mac"
	for form, before := range map[string]string{"text": "Stages", "markdown": "#### Stages", "html": `<section id="stages">`, "junit": "<testsuite "} {
		text := rendered(t, grown(), form)
		if at, end := strings.Index(text, place), strings.Index(text, before); at < 0 || end < 0 || at > end {
			t.Errorf("%s has %q at %d, and %q at %d", form, place, at, before, end)
		}
	}
}
