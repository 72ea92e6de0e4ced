package allocator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"

	"mpsforge/native/slots"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

const (
	// historyOperations bounds a history: beyond 30,000 operations porcupine's memory grows out of proportion.
	historyOperations = 30000
	// DecideLimit bounds the check of one history; measured times are under a second.
	DecideLimit = 60 * time.Second
	// MinimiseLimit bounds the work on a failing one.
	MinimiseLimit = 20 * time.Second
)

// historyShape is a kind of random history. Each thread holds at most held leases at a time, one where the wait is
// endless: threads that wait for a second lease would wait for each other.
type historyShape struct {
	name    string
	config  slots.Config
	threads uint32
	held    uint32
}

var historyShapes = []historyShape{
	{"two threads, one slot, share", slots.Config{WorkerSlots: 1, Policy: slots.Share, WaitMS: -1}, 2, 1},
	{"more threads than slots, share", slots.Config{WorkerSlots: 3, Policy: slots.Share, WaitMS: -1}, 6, 2},
	{"default size, share", slots.Config{WorkerSlots: 31, Policy: slots.Share, WaitMS: -1}, 8, 6},
	{"two words, share", slots.Config{WorkerSlots: 40, Policy: slots.Share, WaitMS: -1}, 8, 8},
	{"three words, share", slots.Config{WorkerSlots: 70, Policy: slots.Share, WaitMS: -1}, 8, 12},
	{"one slot, endless wait", slots.Config{WorkerSlots: 1, Policy: slots.Wait, WaitMS: -1}, 4, 1},
	{"many threads, endless wait", slots.Config{WorkerSlots: 4, Policy: slots.Wait, WaitMS: -1}, 16, 1},
	{"wait of 0 ms", slots.Config{WorkerSlots: 2, Policy: slots.Wait, WaitMS: 0}, 4, 2},
	{"wait of 1 ms", slots.Config{WorkerSlots: 2, Policy: slots.Wait, WaitMS: 1}, 5, 1},
	{"two words, wait of 0 ms", slots.Config{WorkerSlots: 34, Policy: slots.Wait, WaitMS: 0}, 6, 8},
	{"error", slots.Config{WorkerSlots: 2, Policy: slots.Error, WaitMS: -1}, 6, 1},
	{"three words, error", slots.Config{WorkerSlots: 70, Policy: slots.Error, WaitMS: -1}, 12, 4},
}

// options gives the history number round of a shape; its length varies with the round.
func (s historyShape) options(o stage.CheckOptions, round int) slots.HistoryOptions {
	total := uint32(2400)
	if !o.Quick && round%4 == 3 {
		total = historyOperations
	} else if !o.Quick {
		total = 8000
	}
	return slots.HistoryOptions{
		Config:       s.config,
		Seed:         o.Seed + uint64(round)*0x9e3779b97f4a7c15,
		Threads:      s.threads,
		Operations:   total/s.threads - s.held,
		MaxHeld:      s.held,
		StalePercent: 15,
		HoldYields:   uint32(1 + round%4),
		StallMS:      uint32(o.Patience.Milliseconds()),
	}
}

// checkHistories runs many random histories on the subject: one check per shape.
func checkHistories(ctx context.Context, c *stage.Checker, subject *slots.Subject) []reports.Check {
	rounds := 8
	if !c.Quick {
		rounds = 40
	}
	var checks []reports.Check
	stalled := false
	for _, shape := range historyShapes {
		if ctx.Err() != nil {
			break
		}
		check := reports.Check{Name: "history: " + shape.name, Rule: "2, 8", Verdict: reports.Passed}
		checks = append(checks, c.Check(ctx, check, func(check *reports.Check) {
			done := 0
			var peak, full uint64
			for round := 0; round < rounds && check.Verdict == reports.Passed && ctx.Err() == nil; round++ {
				if stalled {
					check.Verdict, check.Detail = reports.NotRun, "an earlier history stalled; its threads are still inside the library"
					break
				}
				options := shape.options(c.CheckOptions, round)
				history, err := subject.RunHistory(options)
				if err != nil {
					check.Verdict, check.Detail = reports.Failed, err.Error()
					break
				}
				stalled = history.Stuck != ""
				done += len(history.Records)
				peak = max(peak, history.Statistics.Peak)
				full += history.Statistics.Shares + history.Statistics.Waits
				judge(ctx, c, check, options, history)
			}
			if check.Verdict == reports.Passed {
				check.Detail = fmt.Sprintf("%d histories, %d operations, linearizable; at most %d of %d slots at once, none free %d times", rounds, done,
					peak, shape.config.WorkerSlots, full)
			}
			c.Count("operations", int64(done))
			c.Count("history shapes", 1)
		}))
	}
	return checks
}

// judge decides about one history and writes what failed into the check.
func judge(ctx context.Context, c *stage.Checker, check *reports.Check, options slots.HistoryOptions, history slots.History) {
	fail := func(format string, args ...any) {
		check.Verdict = reports.Failed
		check.Detail = fmt.Sprintf(format, args...) + fmt.Sprintf(" (seed %d)", options.Seed)
	}
	switch wrong := inconsistent(history); {
	case history.Stuck != "":
		fail("lost wake-up or deadlock: %s", history.Stuck)
		return
	case history.Overlaps > 0:
		fail("two live leases shared a slot %d times", history.Overlaps)
		return
	case history.Torn > 0:
		fail("statistics read meanwhile were inconsistent %d times", history.Torn)
		return
	case wrong != "":
		fail("%s", wrong)
		return
	}
	initial := slotState{slots: options.Config.WorkerSlots}
	steps := make([]step, len(history.Records))
	for i := range history.Records {
		steps[i].Record = &history.Records[i]
	}
	switch porcupine.CheckOperationsTimeout(slotModel(initial), operations(steps), DecideLimit) {
	case porcupine.Unknown:
		fail("undecided: %d operations took longer than %v to check", len(steps), DecideLimit)
	case porcupine.Illegal:
		limited, cancel := context.WithTimeout(ctx, MinimiseLimit)
		initial, steps = minimise(limited, initial, history.Records)
		cancel()
		fail("not linearizable; smallest part found that shows it has %d operations, the last %q", len(steps), describeRecord(lastStep(steps)))
		path, err := keepHistory(c, options, initial, steps)
		if err != nil {
			check.Detail += "; " + err.Error()
			return
		}
		check.Artifact = path
	}
}

func lastStep(steps []step) *slots.Record {
	last := steps[0].Record
	for _, s := range steps {
		if !s.pending && s.End > last.End {
			last = s.Record
		}
	}
	return last
}

// inconsistent compares the subject's own counters with what was recorded.
func inconsistent(history slots.History) string {
	var want slots.Statistics
	for _, record := range history.Records {
		switch {
		case record.Kind == slots.Release && !record.Accepted:
			want.Refused++
		case record.Kind == slots.Release:
			// live is 0 at the end
		case record.Outcome == slots.Leased:
			want.Leases++
			want.Peak = max(want.Peak, uint64(record.Slot)+1)
		case record.Outcome == slots.Shared:
			want.Shares++
		case record.Outcome == slots.Exhausted:
			want.Exhausted++
		}
	}
	want.Waits = history.Statistics.Waits // how many had to wait cannot be seen from outside
	if history.Stuck != "" || history.Statistics == want {
		return ""
	}
	return fmt.Sprintf("statistics at the end: expected %+v, found %+v", want, history.Statistics)
}

// keptHistory is the file that a failing history leaves.
type keptHistory struct {
	Options slots.HistoryOptions `json:"options"`
	// Generations of the slots when the operations begin; odd means leased.
	Generations []uint32     `json:"generations"`
	Shared      bool         `json:"shared"` // whether the first share had been answered
	Operations  []keptRecord `json:"operations"`
}

type keptRecord struct {
	slots.Record
	Pending bool   `json:"pending,omitempty"`
	Text    string `json:"text"`
}

// keepHistory writes the history as JSON, and beside it porcupine's picture of it. It returns the path of the former.
func keepHistory(c *stage.Checker, options slots.HistoryOptions, initial slotState, steps []step) (string, error) {
	kept := keptHistory{Options: options, Generations: initial.generation[:initial.slots], Shared: initial.shared}
	for _, s := range steps {
		kept.Operations = append(kept.Operations, keptRecord{*s.Record, s.pending, describeRecord(s.Record)})
	}
	data, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		return "", fmt.Errorf("keep history: %w", err)
	}
	if err := os.MkdirAll(c.Artifacts, 0o755); err != nil {
		return "", fmt.Errorf("keep history: %w", err)
	}
	base := filepath.Join(c.Artifacts, fmt.Sprintf("history-%s-%d-slots-%s-%d", c.Subject, options.Config.WorkerSlots, options.Config.Policy, options.Seed))
	if err := os.WriteFile(base+".json", append(data, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("keep history: %w", err)
	}
	model := slotModel(initial)
	_, info := porcupine.CheckOperationsVerbose(model, operations(steps), MinimiseLimit)
	if err := porcupine.VisualizePath(model, info, base+".html"); err != nil {
		return "", fmt.Errorf("draw history: %w", err)
	}
	return base + ".json", nil
}
