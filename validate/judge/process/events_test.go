package process

import (
	"testing"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/reports"
)

// The end of a process is reported as what it was; that stock goes wrong is reported as expected.
func TestEndingsAreToldByKind(t *testing.T) {
	_, killed := run.Command{Name: "sh", Args: []string{"-c", "kill -ABRT $$"}}.Run(t.Context())
	crash := Result{Output: "second.mm:1: failed assertion `A command encoder is already encoding to this command buffer'\n"}
	crash.Crashed(killed)
	for name, c := range map[string]struct {
		end  Result
		want events.StepOutcome
	}{
		"lived":        {Result{}, events.OK},
		"crashed":      {crash, events.Crashed},
		"hung":         {Result{Problem: "hung: not done", Kind: reports.OutcomeHung}, events.Hung},
		"wrong values": {Result{Problem: "wrong values: 1 of 2", Kind: reports.OutcomeWrongValues}, events.WrongValues},
		"races":        {Result{Problem: "data races by ThreadSanitizer: 1"}, events.Failed},
	} {
		for _, expected := range []bool{true, false} {
			got := c.end.Finished(expected)
			if got.Outcome != c.want || got.Expected != (expected && c.want != events.OK) || got.Detail != c.end.Problem {
				t.Errorf("%s, expected %t: %+v", name, expected, got)
			}
		}
	}
	require.Equal(t, crash.Finished(false).Signature, "5 second-encoder", "signature")
}
