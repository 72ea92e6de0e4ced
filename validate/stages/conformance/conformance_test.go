//go:build cgo

package conformance

import (
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/reports"
	"mpsforge/validate/judge/stagetest"
)

func TestConformancePassesAndProvesIdentity(t *testing.T) {
	report := reports.Stage{Name: "conformance"}
	options, progress := stagetest.Options(t), &stagetest.Progress{}
	options.Sink = progress
	require.NoError(t, checkConformance(t.Context(), options, &report))
	stagetest.NeedPassed(t, report)
	progress.NeedTotal(t)
	if len(report.Facts) == 0 || report.Facts[0].Name != "identity" || !strings.HasSuffix(report.Facts[0].Value, " test") {
		t.Errorf("facts = %v, want the identity with the stamp first", report.Facts)
	}
	if report.Counts["interleavings"] < 10000 || report.Counts["operations"] < 10000 {
		t.Errorf("counts = %v: too little was done", report.Counts)
	}
	t.Logf("counts %v", report.Counts)
	for _, check := range report.Checks {
		if check.Name == "history: three words, share" && !strings.Contains(check.Detail, "at most 70 of 70") {
			t.Errorf("the histories do not fill the pool: %s", check.Detail)
		}
		t.Logf("%6.2f s  %s: %s", check.Seconds, check.Name, check.Detail)
	}
}
