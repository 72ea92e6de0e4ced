//go:build cgo

package validate

import (
	"testing"

	"mpsforge/reports"
)

// report fails the test for each check that did not pass.
func report(t *testing.T, checks []reports.Check) {
	t.Helper()
	for _, check := range checks {
		t.Logf("%6.2f s  %s: %s", check.Seconds, check.Name, check.Detail)
		if check.Verdict != reports.Passed {
			t.Errorf("%s: %s: %s\n%s", check.Name, check.Verdict, check.Detail, check.Output)
		}
	}
}

func referenceChecker(t *testing.T) *stageChecker {
	return newStageChecker(slotTestOptions(t), &reports.Stage{Name: "reference"}, "reference")
}

func TestProgramsOverMetalComeToTheirVerdicts(t *testing.T) {
	report(t, referenceChecker(t).checkMetal(t.Context()))
}

func TestReferencePoolObeysItsRules(t *testing.T) {
	report(t, referenceChecker(t).checkPool(t.Context()))
}

func TestReferencePoolHandsOver(t *testing.T) {
	c := referenceChecker(t)
	report(t, c.checkHandOver(t.Context()))
	report(t, c.checkPoolSchedules(t.Context()))
}

func TestHistoriesOfTheReferencePoolAreLinearizable(t *testing.T) {
	report(t, referenceChecker(t).checkPoolHistories(t.Context()))
}
