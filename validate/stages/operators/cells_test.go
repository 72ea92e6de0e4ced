package operators

import (
	"fmt"
	"slices"
	"testing"

	"mpsforge/internal/events"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

// allEvents is a sink that keeps all.
type allEvents []events.Event

func (k *allEvents) Emit(event events.Event) { *k = append(*k, event) }

// A row is a form, and a column some thread counts, so that all operators fit on a screen.
func TestCellsOfJobs(t *testing.T) {
	var sink allEvents
	r := &stormRun{env: &stage.Env{Sink: &sink}, report: &reports.Stage{Name: "operators"}}
	p := plan{seed: 7}
	jobs := []job{p.job("add", "float32", "basic", 1), p.job("mul", "float32", "basic", 1), p.job("add", "float32", "out+strided", 4),
		p.job("add", "float32", "group:mul", 16)}
	jobs[1].Environment[streamPerThread] = "0"
	r.planCells(&pool{subject: &pytests.Subject{Name: "patched"}}, append(jobs, jobs[0]))
	planned := func(subject, name, column string) events.Event {
		return events.PartsPlanned{Step: "verify operators", Subject: subject, Names: []string{name}, Columns: []string{column}}
	}
	want := []events.Event{planned("patched", "basic", "1 thread"), planned("patched, one stream", "basic", "1 thread"),
		planned("patched", "two forms", "2-4 threads"), planned("patched", "beside another", "9+ threads")}
	if !slices.EqualFunc(sink, want, func(a, b events.Event) bool { return text(a) == text(b) }) {
		t.Errorf("%s", text(sink))
	}
}

// What goes wrong is bad news, unless it is known or a patch is left out; what does not run alone is in no cell.
func TestEndsInCells(t *testing.T) {
	for name, c := range map[string]struct {
		subject string
		status  status
		known   bool
		want    events.StepOutcome // empty: no cell
		bad     bool
	}{
		"right":                 {"patched", right, false, events.OK, false},
		"wrong values":          {"patched", wrongValues, false, events.WrongValues, true},
		"a known failure":       {"patched", crashed, true, events.Crashed, false},
		"without a patch":       {"without op-guards", hung, false, events.Hung, false},
		"stock is not expected": {"stock", raised, false, events.Failed, true},
		"does not run alone":    {"patched", notAlone, false, "", false},
	} {
		var sink allEvents
		r := &stormRun{env: &stage.Env{Sink: &sink}, report: &reports.Stage{Name: "operators"}}
		if c.known {
			r.known.Failures = []patches.OperatorFailure{{Operator: "add", DType: "float32", Form: "basic", Seen: []string{string(c.status)}}}
		}
		r.cell(&pool{subject: &pytests.Subject{Name: c.subject}}, outcome{plan{seed: 7}.job("add", "float32", "basic", 4),
			result{Status: c.status, Text: "text"}})
		if c.want == "" {
			if len(sink) != 0 {
				t.Errorf("%s: %s", name, text(sink))
			}
			continue
		}
		end, ok := sink[len(sink)-1].(events.PartFinished)
		if !ok || end.Outcome != c.want || end.Bad() != c.bad {
			t.Errorf("%s: %s", name, text(sink))
		}
	}
}

func text(value any) string { return fmt.Sprintf("%+v", value) }
