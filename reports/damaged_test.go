package reports_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/reports"
)

// A report that was damaged or made by hand is refused with the place of its fault; shown or merged it would end the program.
func TestDamagedReportsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ in, says string }{
		"a bar below zero": {`"plots": [{"title": "gain", "bars": [{"group": "", "name": "a", "value": 2}, {"group": "", "name": "b", "value": -1}]}]`,
			`in its stage bench the plot "gain" has the value -1`},
		"a point below zero": {`"plots": [{"title": "gain", "lines": [{"name": "a", "points": [{"x": 1, "y": -1}]}]}]`, `has the value -1`},
		"a line of nothing":  {`"plots": [{"title": "gain", "lines": [{"name": "a", "points": []}]}]`, `a line without points, "a"`},
		"a key beyond the columns": {`"tables": [{"title": "counts", "key": 3, "columns": ["a"], "rows": [["1"]]}]`,
			`the table "counts" has 1 columns, of which 3 name a row`},
		"a row of another length": {`"tables": [{"title": "counts", "key": 1, "columns": ["a", "b"], "rows": [["1"]]}]`,
			`the table "counts" has 2 columns, and a row of 1`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report.json")
			text := `{"schema": 1, "verdict": "passed", "stages": [{"name": "bench", "verdict": "passed", ` + c.in + `}]}`
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			if _, err := reports.ReadFile(path); !errors.Is(err, reports.ErrNoReport) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s", err, c.says)
			}
		})
	}
}

// A shard of a number that nobody makes is refused before there is a list of them.
func TestMergeOfTooManyShards(t *testing.T) {
	shard := &reports.Report{Schema: reports.Schema, Shard: &reports.Shard{Index: 1, Of: 1 << 40}}
	_, err := reports.Merge([]*reports.Report{shard}, []string{"one.json"})
	if !errors.Is(err, reports.ErrMerge) || !strings.Contains(err.Error(), "which cannot be") {
		t.Error(err)
	}
}

// The least number above zero has a chart, too.
func TestChartOfNextToNothing(t *testing.T) {
	plot := reports.Plot{Title: "gain", Bars: []reports.PlotBar{{Name: "a", Value: 5e-324}}}
	report := &reports.Report{Stages: []reports.Stage{{Name: "bench", Plots: []reports.Plot{plot}}}}
	if _, err := report.WriteCharts(t.TempDir()); err != nil {
		t.Error(err)
	}
}
