package allocator

import (
	"context"
	"fmt"
	"hash/maphash"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"mpsforge/native/slots"
)

// modelSlots is the most worker slots that the sequential model holds; histories stay below.
const modelSlots = 72

// slotState is the sequential model of a slot allocator. A slot is leased while its generation is odd.
type slotState struct {
	slots      uint32
	shared     bool // the first share was answered
	generation [modelSlots]uint32
}

func (s *slotState) lowestFree() uint32 {
	for slot := range s.slots {
		if s.generation[slot]%2 == 0 {
			return slot
		}
	}
	return s.slots
}

// apply does the recorded operation. It returns false, and leaves the state, if the operation cannot have had its
// result now.
//
// Waiting needs no state: an acquire that had to wait takes effect when a slot is given to it, and one whose time was up
// must have seen the pool full at some moment. That waiters are served in their order is not a matter of
// linearizability: the schedule search and the scripted scenarios check it.
func (s *slotState) apply(record *slots.Record) bool {
	slot := record.Slot
	if record.Kind == slots.Release {
		live := slot < s.slots && s.generation[slot]%2 == 1 && uint64(s.generation[slot]) == record.Generation
		if live && record.Accepted {
			s.generation[slot]++
		}
		return live == record.Accepted
	}
	switch free := s.lowestFree(); record.Outcome {
	case slots.Leased:
		if slot != free || free == s.slots || record.Generation != uint64(s.generation[slot])+1 {
			return false
		}
		s.generation[slot]++
		return true
	case slots.Shared:
		if free != s.slots || record.FirstShare == s.shared {
			return false
		}
		s.shared = true
		return true
	case slots.Exhausted:
		return free == s.slots
	}
	return false
}

// step is one operation of a history to be checked.
type step struct {
	*slots.Record
	// pending: the history ends before the operation does, so that it may or may not have taken effect. It ends last of
	// all, so it can always be put behind the others, without effect if none is possible there.
	pending bool
}

// readOnly says that the operation leaves every state as it is.
func (s step) readOnly() bool {
	if s.Kind == slots.Release {
		return !s.Accepted
	}
	return s.Outcome == slots.Exhausted || s.Outcome == slots.Shared && !s.FirstShare
}

var stateSeed = maphash.MakeSeed()

// slotModel is the model for porcupine, starting from the given state.
func slotModel(initial slotState) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return initial },
		Step: func(state, input, _ any) (bool, any) {
			next := state.(slotState)
			operation := input.(step)
			if !next.apply(operation.Record) {
				return operation.pending, state
			}
			return true, next
		},
		Equal: func(a, b any) bool { return a.(slotState) == b.(slotState) },
		Hash:  func(state any) uint64 { return maphash.Comparable(stateSeed, state.(slotState)) },
		DescribeOperation: func(input, _ any) string {
			operation := input.(step)
			if operation.pending {
				return describeRecord(operation.Record) + " (cut off)"
			}
			return describeRecord(operation.Record)
		},
		DescribeState: func(state any) string {
			s := state.(slotState)
			var leased []string
			for slot := range s.slots {
				if s.generation[slot]%2 == 1 {
					leased = append(leased, fmt.Sprintf("%d#%d", slot, s.generation[slot]))
				}
			}
			return "leased: " + strings.Join(leased, " ")
		},
	}
}

// describeRecord writes an operation as slot#generation with what came of it.
func describeRecord(record *slots.Record) string {
	switch {
	case record.Kind == slots.Release && record.Accepted:
		return fmt.Sprintf("return %d#%d", record.Slot, record.Generation)
	case record.Kind == slots.Release:
		return fmt.Sprintf("return %d#%d: refused", record.Slot, record.Generation)
	case record.Outcome == slots.Leased:
		return fmt.Sprintf("lease: %d#%d", record.Slot, record.Generation)
	case record.FirstShare:
		return "lease: shared, for the first time"
	}
	return "lease: " + record.Outcome.String()
}

// operations turns steps into porcupine's form.
func operations(steps []step) []porcupine.Operation {
	last := int64(0)
	for _, s := range steps {
		last = max(last, s.End)
	}
	result := make([]porcupine.Operation, len(steps))
	for i, s := range steps {
		result[i] = porcupine.Operation{ClientId: int(s.Thread), Input: s, Call: s.Start, Return: s.End}
		if s.pending {
			result[i].Return = last + 1
		}
	}
	return result
}

// illegal says whether the steps cannot be explained from the state. False also if the time was up.
func illegal(initial slotState, steps []step, limit time.Duration) bool {
	return porcupine.CheckOperationsTimeout(slotModel(initial), operations(steps), limit) == porcupine.Illegal
}

// minimise makes an illegal history smaller. Only reductions are made after which an illegal history proves the whole
// one illegal: it may end earlier (what is under way then is pending), begin at a moment when nothing was under way
// (the state is known there), and lack operations that change nothing. Dropping a lease or its return would make up a
// fault of its own. The context bounds the time; what was reached until then is returned.
func minimise(ctx context.Context, initial slotState, records []slots.Record) (slotState, []step) {
	const limit = 5 * time.Second
	sort.SliceStable(records, func(i, j int) bool { return records[i].End < records[j].End })
	cut := func(n int) []step { // the history up to the end of its first n operations
		var steps []step
		for i := range records {
			if i < n || n > 0 && records[i].Start <= records[n-1].End {
				steps = append(steps, step{&records[i], i >= n})
			}
		}
		return steps
	}
	// A longer beginning of an illegal one is illegal, so the shortest can be found by halving.
	shortest := sort.Search(len(records), func(n int) bool { return ctx.Err() == nil && illegal(initial, cut(n), limit) })
	if ctx.Err() != nil || shortest == 0 {
		return initial, cut(len(records))
	}
	steps := cut(shortest)

	// From the last quiet moment on. Everything before is explained, and each slot's generation there is the highest
	// that was seen.
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].Start < steps[j].Start })
	begin, end := 0, int64(-1)
	for i, s := range steps {
		if s.Start > end && !s.pending {
			begin = i
		}
		end = max(end, s.End)
	}
	state := initial
	for _, s := range steps[:begin] {
		if s.readOnly() || s.Slot >= modelSlots {
			continue
		}
		if s.Kind == slots.Acquire && s.Outcome == slots.Shared {
			state.shared = true
			continue
		}
		generation := uint32(s.Generation)
		if s.Kind == slots.Release {
			generation++
		}
		state.generation[s.Slot] = max(state.generation[s.Slot], generation)
	}
	if late := steps[begin:]; illegal(state, late, limit) {
		initial, steps = state, late
	}

	for size := len(steps); size > 0; size /= 2 { // groups first, single operations last
		for i := 0; i < len(steps) && ctx.Err() == nil; {
			kept := append([]step{}, steps[:i]...)
			stop := min(i+size, len(steps))
			for _, s := range steps[i:stop] {
				if !s.readOnly() {
					kept = append(kept, s)
				}
			}
			next := len(kept)
			kept = append(kept, steps[stop:]...)
			if len(kept) < len(steps) && illegal(initial, kept, limit) {
				steps, i = kept, next
			} else {
				i = stop
			}
		}
	}
	return initial, steps
}
