package reports

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
)

// large is a report of so many checks, on stock and patched by turns; one in a thousand failed.
func large(checks int) *Report {
	stage := Stage{Name: "operators", Question: "Is it right?", Verdict: Failed, Reason: "some failed"}
	for i := range checks {
		check := Check{Name: fmt.Sprintf("operator %d", i/2), Subject: []string{"stock", "patched"}[i%2], Verdict: Passed, Detail: "1 of 1 right",
			Cells: []Cell{{Threads: 4, Outcome: OutcomePassed, Of: 1}}}
		if i%1000 == 999 {
			check.Verdict, check.Output = Failed, "it printed this\n"
		}
		stage.Checks = append(stage.Checks, check)
	}
	report := &Report{Schema: Schema, Started: time.Unix(0, 0), Stages: []Stage{stage}}
	report.Conclude(nil)
	return report
}

// The page of a report with more checks than a browser can show has the first ones, counts all, and says how many rows it leaves out.
func TestAPageOfManyChecksSaysWhatItLeavesOut(t *testing.T) {
	var page strings.Builder
	require.NoError(t, large(12_000).WriteHTML(&page))
	// 11,988 passed, of 6,000 operators in the comparison, and 12,000 in the grid.
	for _, want := range []string{"This page leaves out 14988 rows of long tables; the JSON form of the report has all.", "checks that passed: 11988<"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if rows := strings.Count(page.String(), "<tr"); rows > 4*mostRows {
		t.Errorf("the page has %d rows", rows)
	}
}

// BenchmarkForms shows how the time and the memory of each form grow with a report's checks.
func BenchmarkForms(b *testing.B) {
	for _, checks := range []int{10_000, 100_000, 1_000_000} {
		report := large(checks)
		measure := func(name string, act func() error) {
			b.Run(fmt.Sprintf("%s/%d", name, checks), func(b *testing.B) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for b.Loop() {
					require.NoError(b, act())
				}
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(checks), "ns/check")
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/float64(checks), "B/check")
			})
		}
		for _, name := range Formats() {
			measure(name, func() error { return report.Write(io.Discard, name) })
		}
		path := filepath.Join(b.TempDir(), "report.json")
		file, err := os.Create(path)
		if err == nil {
			err = report.WriteJSON(file)
		}
		require.NoError(b, err)
		file.Close()
		measure("read", func() error { _, err := ReadFile(path); return err })
	}
}
