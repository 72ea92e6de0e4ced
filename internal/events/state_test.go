package events_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
)

// A build inside a step says nothing of how fast the step's own work is.
func TestTimeLeftWithoutStepsInside(t *testing.T) {
	state := events.NewState()
	for _, record := range at(0.0, events.StepStarted{Step: "verify runtime"}, 0.0, events.StepStarted{Step: "build", Parent: "verify runtime"},
		60.0, events.StepFinished{Step: "build", Outcome: events.OK, Elapsed: time.Minute}, 70.0, events.StepProgress{Step: "verify runtime", Done: 10,
			Total: 30}) {
		state.Apply(record)
	}
	if left, known := state.Steps[0].LeftAt(start.Add(70 * time.Second)); !known || left != 20*time.Second {
		t.Errorf("%v left, known: %t", left, known)
	}
}

// A flood of output takes nothing out of the log that the summary is made of, and the log stays bounded.
func TestFloodLeavesBadNewsInTheLog(t *testing.T) {
	state := events.NewState()
	for _, record := range at(0.0, events.Message{Level: events.Warning, Text: "mind this"}, 1.0, events.Message{Level: events.Status, Text: "it runs"}) {
		state.Apply(record)
	}
	for i := range 50_000 {
		state.Apply(at(2.0, events.StepLine{Step: "build", Text: fmt.Sprint("line ", i)})[0])
	}
	if n := len(state.Log); n > 10_000 {
		t.Errorf("the log has %d lines", n)
	}
	var first []string
	for _, line := range state.Log[:3] {
		first = append(first, line.Text)
	}
	if !slices.Equal(first[:2], []string{"warning: mind this", "status: it runs"}) || first[2] == "line 0" {
		t.Errorf("the log begins with %q", first)
	}
	require.Equal(t, state.Log[len(state.Log)-1].Text, "line 49999", "the log ends with")
}
