package ci

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mpsforge/fork"
	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
)

// patch makes a patch that adds one line to a file.
func patch(t *testing.T, name, path, message string) *patches.Patch {
	t.Helper()
	diff := "diff --git a/" + path + " b/" + path + "\n" +
		"index " + strings.Repeat("1", 40) + ".." + strings.Repeat("2", 40) + " 100644\n--- a/" + path + "\n+++ b/" + path +
		"\n@@ -1,2 +1,3 @@\n one\n+added \n two\n"
	return require.One(patches.Format(name, patches.NewHeader("A", "a@example.org", time.Unix(0, 0).UTC(), message), []byte(diff)))(t)
}

// request is one in a stack of the given patches.
func request(of *patches.Patch, number int) *Request {
	return &Request{Number: number, Name: of.Name, Title: of.Header.Subject, Commit: "c", layer: fork.Layer{Patch: of}}
}

func TestOutsideTextIsShownAndDoesNothing(t *testing.T) {
	for _, c := range []struct{ name, shown, want string }{
		{"plain", code("text"), "`text`"},
		{"markup in a code span", code("<b> *x* @all #1"), "`<b> *x* @all #1`"},
		{"ticks", code("a `b` c"), "``a `b` c``"},
		{"ticks at the end", code("`b`"), "`` `b` ``"},
		{"more ticks", code("a ``` b"), "````a ``` b````"},
		{"lines", code("a\nb\r\nc"), "`a b  c`"},
		{"escape sequences", code("a\x1b[31mb"), "`a\uFFFD[31mb`"},
		{"text turned around", code("a\u202eb"), "`a\uFFFDb`"},
		{"a bar in a table", cell("a|b"), "`a\\|b`"},
		{"an empty cell", cell(""), "-"},
		{"running text", prose("*a* <b> @all #1 [x](y)"), `\*a\* \<b\> \@all \#1 \[x\]\(y\)`},
		{"a block with ticks in it", fence("text", "a\n```\nb"), "````text\na\n```\nb\n````"},
	} {
		require.Equal(t, c.shown, c.want, c.name)
	}
}

func TestTrailersOfTheSeriesAreNotForUpstream(t *testing.T) {
	for name, c := range map[string][2]string{
		"only such":             {"Why.\n\nUpstream-Status: Pending\nScenario: a", "Why."},
		"with one that stays":   {"Why.\n\nUpstream-Status: Pending\nFixes: #1\nScenario: a", "Why.\n\nFixes: #1"},
		"one of two lines":      {"Why.\n\nUpstream-Status: Inappropriate it is\n for us alone\nFixes: #1", "Why.\n\nFixes: #1"},
		"like one, in the text": {"Scenario: this is prose\nand goes on.\n\nUpstream-Status: Pending", "Scenario: this is prose\nand goes on."},
		"none":                  {"Why.", "Why."},
	} {
		h := patches.NewHeader("A", "a@example.org", time.Time{}, "[MPS] Subject\n\n"+c[0])
		require.Equal(t, withoutTrailers(h), c[1], name)
	}
}

// GitHub closes an issue with the first merged pull request that says Fixes: of a stack, only the last one may.
func TestTheStacksIssueIsFixedByItsLastPart(t *testing.T) {
	series := &patches.Series{Patches: []*patches.Patch{patch(t, "a", "f", "[MPS] A"),
		patch(t, "b", "f", "[MPS] B\n\nWhy.\n\nFixes: https://github.com/pytorch/pytorch/issues/5"), patch(t, "c", "f", "[MPS] C")}}
	var requests []*Request
	for i, p := range series.Patches {
		requests = append(requests, request(p, i+1))
	}
	require.NoError(t, linkIssues(requests, series, "https://github.com/pytorch/pytorch/issues/9"))
	for i, want := range []string{"Part of #9", "Fixes #5", "Fixes #9"} {
		require.Equal(t, requests[i].Issue, want, "part", i+1)
	}
	if err := linkIssues(requests, series, ""); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "name none: a, c;") {
		t.Errorf("without an issue: %v", err)
	}
}

func TestGeneratedFilesDoNotCount(t *testing.T) {
	g := gate{limit: 10, generated: []string{"*.lock", "gen/*.h", "/top.txt"}}
	for path, want := range map[string]int{"a/b.lock": 0, "gen/a.h": 0, "gen/sub/a.h": 1, "top.txt": 0, "b/top.txt": 1, "a.h": 1} {
		require.Equal(t, g.lines(patch(t, "a", path, "[MPS] A")), want, path, "lines")
	}
}

// Upstream's configuration says which files its clang-format is for.
func TestFormattedPaths(t *testing.T) {
	p := plain{}
	err := p.configure([]byte(
		"[[linter]]\ncode = 'FLAKE8'\ninclude_patterns = ['**/*.py']\n[[linter]]\ncode = 'CLANGFORMAT'\ninclude_patterns = [\n    'a/*.h',  " +
			"# top\n    \"m/**/*.mm\",\n]\nexclude_patterns = [\n  '**/fb/**',\n]\n"))
	require.NoError(t, err)
	for path, want := range map[string]bool{"a/x.h": true, "a/b/x.h": false, "m/x.mm": true, "m/n/o/x.mm": true, "m/fb/x.mm": false, "x.py": false} {
		require.Equal(t, p.isFormatted(path), want, path)
	}
	if p = (plain{}); !p.isFormatted("any.h") {
		t.Error("without a configuration every file is formatted")
	}
}

// Lines that a patch adds are looked at; others are not its own.
func TestPlainChecks(t *testing.T) {
	p := plain{lint: &Lint{}, python: 5}
	of := patch(t, "a", "test/x.py", "[MPS] A")
	require.NoError(t, p.check(t.Context(), request(of, 1), of.Files[0], []byte("one is long \nadded \ntwo")))
	var found []string
	for _, f := range p.lint.Findings {
		found = append(found, f.String())
	}
	want := "a: test/x.py:2: trailing space: cut it\na: test/x.py:2: line length: 6 columns, at most 5\na: test/x.py:0: newline: the file does not end with one"
	require.Equal(t, strings.Join(found, "\n"), want)
}

// A linter that broke down is none that found nothing, and a file that it named is the checkout's.
func TestLintrunnersMessages(t *testing.T) {
	lint := &Lint{Tool: lintrunner}
	output := `{"path":"/tmp/s/a/b.h","line":3,"code":"SPACES","name":"trailing","description":null}
{"path":"/tmp/s/c.h","line":null,"code":"CLANGFORMAT","name":"format","description":"see","original":"a\nb\n","replacement":"a\nB\n"}
{"path":null,"line":null,"code":"RUFF","name":"command-failed","description":"no\nmodule"}
{"path":null,"line":null,"code":"RUFF","name":"command-failed","description":"again"}`
	require.NoError(t, lint.read(&Request{Name: "p"}, "/tmp/s", []byte(output)))
	if len(lint.Findings) != 2 || lint.Findings[0].String() != "p: a/b.h:3: SPACES: trailing" ||
		lint.Findings[1].String() != `p: c.h:2: CLANGFORMAT: the formatter writes "B" here, and may change more lines below` || len(lint.NotRun) != 1 ||
		lint.NotRun[0] != "RUFF: command-failed: no module" {
		t.Errorf("findings %v, not run %v", lint.Findings, lint.NotRun)
	}
	if clean, _ := lint.of("other"); clean {
		t.Error("a patch is called clean though a linter could not run")
	}
	if err := lint.read(&Request{Name: "p"}, "/tmp/s", []byte("panic")); err == nil {
		t.Error("output that is no JSON passes")
	}
}

// What a text says comes from the report: who needs this part, what ran at all, and the benchmarks in the last part.
func TestEvidenceIsTheReports(t *testing.T) {
	report := &reports.Report{Verdict: reports.Passed, Tool: reports.Tool{Name: "mpsforge", Version: "v1"},
		Machine: reports.Machine{System: "linux/amd64"}, Stages: []reports.Stage{
			{Name: "conformance", Verdict: reports.Passed},
			{Name: "runtime", Verdict: reports.Passed, Checks: []reports.Check{
				{Name: "events", Subject: "stock, plain", Detail: "died | aborted"}, {Name: "events", Subject: "patched, plain", Detail: "lived"},
				{Name: "without a", Subject: "ablation", Detail: "fail without it: events"},
				{Name: "layout", Subject: "at::mps::MPSEvent", Detail: "144 bytes"}}},
			{Name: "bench", Verdict: reports.Passed, Tables: []reports.Table{{Title: "Threads", Note: "Of a <CPU>.", Columns: []string{"op", "2"},
				Rows: [][]string{{"mlp", "9"}}}}},
		}}
	last := page{Request: request(patch(t, "a", "aten/src/ATen/mps/MPSEvent.h", "[MPS] A"), 2), Total: 2, report: report, baseline: "v2.9.1"}
	for want, in := range map[string]string{
		"| `events` | `died \\| aborted` | `lived` |":                     last.evidence([]string{"events", "slot conformance", "more"}),
		"| `slot conformance` | - | `passed` |":                           last.evidence([]string{"slot conformance"}),
		"| `more` | - | `not in this report` |":                           last.evidence([]string{"more"}),
		"With this part left out: `fail without it: events`":              last.evidence(nil),
		"**No Apple GPU was used**":                                       last.evidence(nil),
		"It verified the series on v2.9.1, not on the commit":             last.evidence(nil),
		"Threads. Of a \\<CPU\\>.\n\n| `op` | `2` |":                      last.benchmark(),
		"`MPSEvent` in the report: `144 bytes`":                           last.compatibility(nil),
		"Old extensions must be built again.":                             last.compatibility([]string{"Old extensions must be built again."}),
		"mpsforge verify --baseline v2.9.1 --stages conformance,runtime,": last.commands(),
	} {
		require.Contains(t, in, want)
	}
	first := last
	first.Request = request(patch(t, "b", "f", "[MPS] B"), 1)
	require.Contains(t, first.benchmark(), "part 2 has the numbers", "benchmark of the first part")
	require.Contains(t, first.evidence(nil), "never left this part out", "evidence of a part that was not left out")
	first.report = nil
	require.Contains(t, first.evidence(nil), "nothing here is shown to have run", "without a report")
	if _, err := json.Marshal(Prepared{Requests: []*Request{last.Request}}); err != nil {
		t.Error(err)
	}
}

// Own words stay with their patch, whatever its number.
func TestOwnWordsAreFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a [folder]*")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	if words, err := ownWords(dir, "a"); words != "" || err != nil {
		t.Errorf("%q, %v in an empty folder", words, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "07-a.md"), []byte("x\n"+wordsBegin+"\n\nMine.\nTwo.\n"+wordsEnd+"\ny\n"), 0o644))
	if words, err := ownWords(dir, "a"); words != "Mine.\nTwo.\n" || err != nil {
		t.Errorf("%q, %v", words, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "07-a.md"), []byte("all mine"), 0o644))
	_, err := ownWords(dir, "a")
	require.Is(t, err, ErrText, "for a text without comments")
}
