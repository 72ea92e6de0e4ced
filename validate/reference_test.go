//go:build cgo

package validate

import (
	"mpsforge/reports"
	"testing"
)

func TestReferencePasses(t *testing.T) {
	stage := reports.Stage{Name: "reference"}
	if err := checkReference(t.Context(), slotTestOptions(t), &stage); err != nil {
		t.Fatal(err)
	}
	needPassed(t, stage)
}
