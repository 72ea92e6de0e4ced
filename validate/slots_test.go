//go:build cgo

package validate

import (
	"strings"
	"testing"

	"mpsforge/reports"
)

func TestConformancePassesAndProvesIdentity(t *testing.T) {
	stage := reports.Stage{Name: "conformance"}
	if err := checkConformance(t.Context(), slotTestOptions(t), &stage); err != nil {
		t.Fatal(err)
	}
	needPassed(t, stage)
	if len(stage.Facts) == 0 || stage.Facts[0].Name != "identity" || !strings.HasSuffix(stage.Facts[0].Value, " test") {
		t.Errorf("facts = %v, want the identity with the stamp first", stage.Facts)
	}
	if stage.Counts["interleavings"] < 10000 || stage.Counts["operations"] < 10000 {
		t.Errorf("counts = %v: too little was done", stage.Counts)
	}
	t.Logf("counts %v", stage.Counts)
	for _, check := range stage.Checks {
		if check.Name == "history: three words, share" && !strings.Contains(check.Detail, "at most 70 of 70") {
			t.Errorf("the histories do not fill the pool: %s", check.Detail)
		}
		t.Logf("%6.2f s  %s: %s", check.Seconds, check.Name, check.Detail)
	}
}
