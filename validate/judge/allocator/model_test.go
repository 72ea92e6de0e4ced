//go:build cgo

package allocator

import (
	"testing"
	"time"

	"mpsforge/internal/require"
	"mpsforge/native/slots"
)

func TestCString(t *testing.T) {
	require.Equal(t, cString("a\"b\\c\n?é"), `"a\042b\134c\012\077\303\251"`, "cString")
}

// record makes records for the model; times are the position and what follows.
func leased(start, end int64, thread, slot uint32, generation uint64) slots.Record {
	return slots.Record{Start: start, End: end, Thread: thread, Kind: slots.Acquire, Slot: slot, Generation: generation}
}

func returned(start, end int64, thread, slot uint32, generation uint64) slots.Record {
	return slots.Record{Start: start, End: end, Thread: thread, Kind: slots.Release, Slot: slot, Generation: generation, Accepted: true, Valid: true}
}

func TestModelJudgesHistories(t *testing.T) {
	shared := func(start, end int64, thread uint32, first bool) slots.Record {
		return slots.Record{Start: start, End: end, Thread: thread, Outcome: slots.Shared, FirstShare: first}
	}
	refused := returned(30, 40, 0, 0, 1)
	refused.Accepted = false
	for _, c := range []struct {
		name    string
		slots   uint32
		records []slots.Record
		legal   bool
	}{
		{"lowest free", 2, []slots.Record{leased(0, 10, 0, 0, 1), leased(11, 20, 0, 1, 1)}, true},
		{"not the lowest", 2, []slots.Record{leased(0, 10, 0, 1, 1)}, false},
		{"not the lowest, but at the same time", 2, []slots.Record{leased(0, 10, 0, 1, 1), leased(5, 15, 1, 0, 1)}, true},
		{"two leases on a slot", 1, []slots.Record{leased(0, 10, 0, 0, 1), leased(11, 20, 1, 0, 1)}, false},
		{"generation repeated", 1, []slots.Record{leased(0, 10, 0, 0, 1), returned(11, 20, 0, 0, 1), leased(21, 30, 0, 0, 1)}, false},
		{"shared while one was free", 2, []slots.Record{leased(0, 10, 0, 0, 1), shared(11, 20, 1, true)}, false},
		{"shared while full", 1, []slots.Record{leased(0, 10, 0, 0, 1), shared(11, 20, 1, true), shared(21, 30, 1, false)}, true},
		{"first share twice", 1, []slots.Record{leased(0, 10, 0, 0, 1), shared(11, 20, 1, true), shared(21, 30, 1, true)}, false},
		{"second return accepted", 1, []slots.Record{leased(0, 10, 0, 0, 1), returned(11, 20, 0, 0, 1), returned(30, 40, 0, 0, 1)}, false},
		{"second return refused", 1, []slots.Record{leased(0, 10, 0, 0, 1), returned(11, 20, 0, 0, 1), refused}, true},
		{"first return refused", 1, []slots.Record{leased(0, 10, 0, 0, 1), refused}, false},
	} {
		steps := make([]step, len(c.records))
		for i := range c.records {
			steps[i].Record = &c.records[i]
		}
		if illegal(slotState{slots: c.slots}, steps, time.Minute) == c.legal {
			t.Errorf("%s: legal = %v, want %v", c.name, !c.legal, c.legal)
		}
	}
}

// A fault after a long right beginning must come out as a few operations that are illegal by themselves.
func TestMinimiseFindsTheFault(t *testing.T) {
	var records []slots.Record
	now := int64(0)
	next := func() (int64, int64) { now += 10; return now, now + 5 }
	for generation := uint64(1); generation < 200; generation += 2 {
		start, end := next()
		records = append(records, leased(start, end, 0, 0, generation))
		start, end = next()
		records = append(records, slots.Record{Start: start, End: end, Thread: 1, Outcome: slots.Shared, FirstShare: generation == 1})
		start, end = next()
		records = append(records, returned(start, end, 0, 0, generation))
	}
	start, end := next()
	records = append(records, leased(start, end, 0, 0, 201))
	start, end = next()
	records = append(records, leased(start, end, 1, 0, 203)) // while the other holds it
	for generation := uint64(205); generation < 300; generation += 2 {
		start, end = next()
		records = append(records, leased(start, end, 0, 0, generation))
	}
	state, steps := minimise(t.Context(), slotState{slots: 1}, records)
	if len(steps) != 1 || steps[0].Generation != 203 || state.generation[0] != 201 || !state.shared {
		t.Errorf("minimised to %d operations from %v", len(steps), state.generation[0])
	}
}
