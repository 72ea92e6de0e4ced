//go:build cgo

package reference

import (
	"testing"

	"mpsforge/reports"
	"mpsforge/validate/judge/stagetest"
)

func TestReferencePasses(t *testing.T) {
	report := reports.Stage{Name: "reference"}
	options, progress := stagetest.Options(t), &stagetest.Progress{}
	options.Sink = progress
	if err := checkReference(t.Context(), options, &report); err != nil {
		t.Fatal(err)
	}
	stagetest.NeedPassed(t, report)
	progress.NeedTotal(t)
}
