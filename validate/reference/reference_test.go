//go:build cgo

package reference

import (
	"testing"

	"mpsforge/reports"
	"mpsforge/validate/stagetest"
)

func TestReferencePasses(t *testing.T) {
	report := reports.Stage{Name: "reference"}
	if err := checkReference(t.Context(), stagetest.Options(t), &report); err != nil {
		t.Fatal(err)
	}
	stagetest.NeedPassed(t, report)
}
