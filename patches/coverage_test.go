package patches

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
)

// Of the lines that the series adds those count that have code and are more than punctuation. Those of a file that was not measured are
// named by the file.
func TestCountCoverage(t *testing.T) {
	series, tree := mutantsFixture(t)
	counts := map[int]uint64{}
	for i := range strings.Count(tree["a.mm"], "\n") {
		counts[i+1] = 1 // LLVM counts comments and braces in a function, too
	}
	counts[5] = 0
	var c Coverage
	c.Count(series, map[string]map[int]uint64{"a.mm": counts})
	if c.Lines != 4 || c.Run != 3 || fmt.Sprint(c.Unrun) != "[{a.mm 5   count = 1; }]" && fmt.Sprint(c.Unrun) != "[{a.mm 5 count = 1; }]" {
		t.Errorf("%+v\nof\n%s", c, tree["a.mm"])
	}
	c.Count(series, map[string]map[int]uint64{"b.mm": counts})
	if fmt.Sprint(c.NotMeasured) != "[a.mm]" {
		t.Errorf("%+v", c)
	}
}

// A line keeps its reason while its text is the same, wherever it has moved to in its file.
func TestKeepReasonsOfCoverage(t *testing.T) {
	c := Coverage{Unrun: []UnrunLine{{Path: "a", Line: 7, Text: "x"}, {Path: "b", Line: 1, Text: "x"}}}
	c.KeepReasons(Coverage{Unrun: []UnrunLine{{Path: "a", Line: 3, Text: "x", Reason: "why"}}})
	if c.Unrun[0].Reason != "why" || c.Unrun[1].Reason != "" {
		t.Errorf("%+v", c.Unrun)
	}
}

// lint warns of too many lines that have not run, of those without a reason, and of a record of another series.
func TestLintCoverage(t *testing.T) {
	fsys, series := onePatch(t)
	unrun := func(count int, reason string) (lines []UnrunLine) {
		for i := range count {
			lines = append(lines, UnrunLine{Path: "a.h", Line: i + 1, Text: "x", Reason: reason})
		}
		return lines
	}
	for name, c := range map[string]struct {
		digest string
		unrun  []UnrunLine
		finds  string
	}{
		"all run":            {series.Digest(), nil, ""},
		"three in a hundred": {series.Digest(), unrun(3, "only a failing driver comes there"), ""},
		"four in a hundred":  {series.Digest(), unrun(4, "only a failing driver comes there"), "4 of 100 lines have never run; at most 3 may"},
		"no reason":          {series.Digest(), unrun(1, ""), "1 lines that have never run have no reason"},
		"another series":     {"old", nil, "the series has changed since its coverage was measured"},
	} {
		t.Run(name, func(t *testing.T) {
			record(fsys, CoverageFile, Coverage{Schema: 1, Tag: "v1.0.0", SeriesDigest: c.digest, Date: time.Unix(0, 0), Lines: 100,
				Run: 100 - len(c.unrun), Unrun: c.unrun})
			found := require.One(LintCoverage(fsys, "v1.0.0"))(t)
			wantFinding(t, found.Findings, SeverityWarning, c.finds)
		})
	}
	delete(fsys, "v1.0.0/"+CoverageFile)
	if found, err := LintCoverage(fsys, "v1.0.0"); err != nil || len(found.Findings) != 0 || found.Summary() != "which lines run was not measured" {
		t.Errorf("without the file: %+v, %v", found, err)
	}
}
