// Package slots loads implementations of the slot allocator, the reference and those of checkouts, and drives them from Go and
// from many threads. What they must answer is judged by package validate/judge/allocator, not here.
package slots

import "errors"

// ErrNoCgo is returned by everything that needs the C++ side in a build without cgo.
var ErrNoCgo = errors.New("this mpsforge was built without cgo: it has no native reference and can load no subject")

// ErrConfig is returned for a configuration that an allocator refuses.
var ErrConfig = errors.New("slot allocator refused the configuration")

// MaxWorkerSlots is the most worker slots that an allocator may have.
const MaxWorkerSlots = 1023

// Policy is what Acquire does when every slot is leased. The numbers are those of slots.h.
type Policy uint32

// The three policies of rule 8.
const (
	Share Policy = 0
	Wait  Policy = 1
	Error Policy = 2
)

func (p Policy) String() string { return name(uint32(p), "share", "wait", "error") }

// AcquireOutcome is what Acquire answered. The numbers are those of slots.h.
type AcquireOutcome uint32

// The three outcomes.
const (
	Leased    AcquireOutcome = 0
	Shared    AcquireOutcome = 1
	Exhausted AcquireOutcome = 2
)

func (o AcquireOutcome) String() string { return name(uint32(o), "leased", "shared", "exhausted") }

func name(number uint32, names ...string) string {
	if int(number) < len(names) {
		return names[number]
	}
	return "unknown"
}

// Config configures an allocator.
type Config struct {
	WorkerSlots uint32 `json:"worker_slots"`
	Policy      Policy `json:"policy"`
	WaitMS      int64  `json:"wait_ms"` // for Wait only; negative: for ever
}

// Result is the answer of Acquire. Slot and Generation are zero unless the outcome is Leased.
type Result struct {
	Outcome    AcquireOutcome
	Slot       uint32
	Generation uint64
	FirstShare bool
}

// Statistics are the counters of an allocator; slots.h says what each counts.
type Statistics struct {
	Live, Peak, Leases, Waits, Shares, Exhausted, Refused, Waiting uint64
}

// Kind is what a recorded operation was.
type Kind uint32

// The two kinds of operation in a history.
const (
	Acquire Kind = 0
	Release Kind = 1
)

// HistoryOptions says what the threads of a history do; slots_harness.h explains each.
type HistoryOptions struct {
	Config       Config `json:"config"`
	Seed         uint64 `json:"seed"`
	Threads      uint32 `json:"threads"`
	Operations   uint32 `json:"operations"`
	MaxHeld      uint32 `json:"max_held"`
	StalePercent uint32 `json:"stale_percent"`
	HoldYields   uint32 `json:"hold_yields"`
	StallMS      uint32 `json:"stall_ms"`
}

// Record is one finished operation of a history. Times are nanoseconds on one monotonic clock.
type Record struct {
	Start      int64          `json:"start"`
	End        int64          `json:"end"`
	Thread     uint32         `json:"thread"`
	Kind       Kind           `json:"kind"`
	Slot       uint32         `json:"slot"`
	Generation uint64         `json:"generation"`
	Outcome    AcquireOutcome `json:"outcome"`            // of an acquire
	FirstShare bool           `json:"first_share"`        // of an acquire
	Accepted   bool           `json:"accepted,omitempty"` // of a release
	Valid      bool           `json:"valid,omitempty"`    // of a release: it named the thread's own live lease
}

// History is what a run of the harness left.
type History struct {
	Records    []Record
	Overlaps   uint64 // times that a slot had two holders
	Torn       uint64 // statistics read meanwhile that are of no single moment
	Stuck      string // not empty: nothing moved any more, and who was inside what
	Statistics Statistics
}
