package operators

import (
	"testing"

	"mpsforge/validate/judge/stagetest"
)

// TestWhatAJobsProcessMayDoWrong runs testdata/children against storm.py, without torch.
func TestWhatAJobsProcessMayDoWrong(t *testing.T) {
	stagetest.Children(t, "test_storm_children")
}
