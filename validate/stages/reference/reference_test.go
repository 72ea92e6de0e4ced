//go:build cgo

package reference

import (
	"testing"

	"mpsforge/internal/require"
	"mpsforge/reports"
	"mpsforge/validate/judge/stagetest"
)

func TestReferencePasses(t *testing.T) {
	report := reports.Stage{Name: "reference"}
	options, progress := stagetest.Options(t), &stagetest.Progress{}
	options.Sink = progress
	require.NoError(t, checkReference(t.Context(), options, &report))
	stagetest.NeedPassed(t, report)
	progress.NeedTotal(t)
}
