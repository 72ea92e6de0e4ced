package upstream

import (
	"testing"

	"mpsforge/validate/judge/stagetest"
)

// TestWhatATestsProcessMayDoWrong runs testdata/children against suite.py, without torch.
func TestWhatATestsProcessMayDoWrong(t *testing.T) {
	stagetest.Children(t, "test_suite_children")
}
