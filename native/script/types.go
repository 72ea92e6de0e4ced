// Package script runs programs in a small language over the software Metal and the reference pool; script.h describes the
// language. Whether a program's outcome is right is its caller's to judge.
package script

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// ErrNoCgo is returned by Run in a build without cgo.
var ErrNoCgo = errors.New("this mpsforge was built without cgo: it has no software Metal")

// ErrProgram is returned, wrapped, for a text that is no program, or a schedule that is none.
var ErrProgram = errors.New("cannot be run")

// Mode is how the threads of a program are run. The numbers are those of script.h.
type Mode uint32

// The modes.
const (
	Free   Mode = 0 // freely; the seed decides delays
	Drawn  Mode = 1 // by the deterministic scheduler, every step drawn from the seed
	Search Mode = 2 // by the deterministic scheduler, one schedule after another
	Replay Mode = 3 // one schedule
)

// Unbounded is the number of deviations that means any number.
const Unbounded = -1

// Backend is what runs a program.
type Backend string

// The backends.
const (
	Software Backend = "software"
	Apple    Backend = "apple" // Apple's framework, on a Mac: what Metal forbids ends the process there
)

// ErrNoBackend is returned for a backend that this system does not have.
var ErrNoBackend = errors.New("there is no Metal on this system")

// Options say how to run a program.
type Options struct {
	Backend    Backend // empty: Software
	Abort      bool    // what Metal forbids ends the process on the software Metal, too
	Mode       Mode
	Seed       uint64        // of the first run; each further run takes the next
	Runs       uint64        // of Search: at most so many
	Deviations int           // of Search: places at most where a schedule differs from the default one
	MaxDelay   time.Duration // of the software GPU, before a command or a handler
	Stall      time.Duration // without a step until a free run counts as stuck
	Record     bool          // keep every step
	Schedule   string        // of Replay
	Trace      string        // a file for a trace of the runs (docs/dev/trace.md); then no other program may run in this process
}

// Kind is what a finding is.
type Kind string

// The kinds of findings.
const (
	Violation Kind = "violation" // a call that Metal answers with an assertion
	Race      Kind = "race"      // two conflicting accesses that nothing orders
	Deadlock  Kind = "deadlock"
	Lifetime  Kind = "lifetime" // left behind, or used after its end
	Model     Kind = "model"    // a model's observation
)

// kinds are in the order of their numbers in native/metal/metal.h.
var kinds = []Kind{Violation, Race, Deadlock, Lifetime, Model}

// UnmarshalJSON takes a word or, from programs that print what the engine gives them, its number.
func (k *Kind) UnmarshalJSON(text []byte) error {
	if number, err := strconv.Atoi(string(text)); err == nil {
		if number < 0 || number >= len(kinds) {
			*k = "finding" // of an engine that knows more
			return nil
		}
		*k = kinds[number]
		return nil
	}
	return json.Unmarshal(text, (*string)(k))
}

// Finding is something that the software Metal found. Runs and Example are known where a program ran many times.
type Finding struct {
	Kind      Kind   `json:"kind"`
	Signature int    `json:"signature"` // of docs/dev/spec/metal.md, or 0
	Message   string `json:"message"`
	First     string `json:"first"`
	Second    string `json:"second"`
	History   string `json:"history"`
	Runs      uint64 `json:"runs"`    // that had it
	Example   string `json:"example"` // the seed or schedule of the first
}

// Failure is an expectation of the program that was not met.
type Failure struct {
	Text    string `json:"text"`
	Runs    uint64 `json:"runs"`
	Example string `json:"example"`
}

// Record is one step of a thread. Times are nanoseconds of one clock.
type Record struct {
	Thread string `json:"thread"`
	Line   int    `json:"line"`
	Start  int64  `json:"start"`
	End    int64  `json:"end"`
	Value  int64  `json:"value"`
}

// Statistics are the software Metal's of the last run.
type Statistics struct {
	CommandBuffers uint64 `json:"command_buffers"`
	Commands       uint64 `json:"commands"`
	Handlers       uint64 `json:"handlers"`
	CheckerRanges  uint64 `json:"checker_ranges"`
	CheckerBytes   uint64 `json:"checker_bytes"`
}

// Language is the version of the language of programs. It rises whenever a line changes its meaning or is refused; new verbs do not
// raise it.
const Language = 1

// Result is what the runs of a program came to.
type Result struct {
	Language   int             `json:"language"`
	Runs       uint64          `json:"runs"`
	Complete   bool            `json:"complete"`  // Search: there are no more schedules
	Stuck      bool            `json:"stuck"`     // the last run could not end; its threads are left behind
	Steps      uint64          `json:"steps"`     // of the longest run, under a scheduler
	RunsWith   map[Kind]uint64 `json:"runs_with"` // runs that had such a finding
	Failures   []Failure       `json:"failures"`
	Findings   []Finding       `json:"findings"`
	Statistics Statistics      `json:"statistics"`
	Records    []Record        `json:"records,omitempty"`
}

// Clean reports whether nothing was found and nothing failed.
func (r *Result) Clean() bool { return !r.Stuck && len(r.Failures) == 0 && len(r.Findings) == 0 }
