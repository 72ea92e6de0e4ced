// Package events defines what a running command tells the world, and the faces that show it.
//
// A command emits typed events into a Sink and knows nothing of terminals; renderers turn the same stream into plain
// lines, JSON lines or a live status line. All faces write to standard error: standard output holds data only.
package events

import (
	"sync"
	"time"
)

// Event is one of the types below.
type Event interface{ kind() string }

// StepStarted opens a step. Steps may nest; names are unique within one run of a command.
type StepStarted struct {
	Step string `json:"step"`
}

// StepProgress reports how far a step is. Total is 0 when it is not known; Unit is empty for a bare count.
type StepProgress struct {
	Step  string `json:"step"`
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"`
	Unit  string `json:"unit,omitempty"`
	Note  string `json:"note,omitempty"`
}

// StepFinished closes a step.
type StepFinished struct {
	Step    string        `json:"step"`
	Outcome Outcome       `json:"outcome"`
	Detail  string        `json:"detail,omitempty"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Outcome is how a step ended.
type Outcome string

// The outcomes of a step.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Message is a line for the user outside any step's progress.
type Message struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

// Level ranks a Message.
type Level string

// The levels of a message. Quiet mode keeps warnings.
const (
	Info    Level = "info"
	Warning Level = "warning"
)

func (StepStarted) kind() string  { return "step-started" }
func (StepProgress) kind() string { return "step-progress" }
func (StepFinished) kind() string { return "step-finished" }
func (Message) kind() string      { return "message" }

// Sink takes events. Implementations are safe for use by several goroutines and never block for long.
type Sink interface{ Emit(Event) }

// Discard drops every event.
var Discard Sink = discard{}

type discard struct{}

func (discard) Emit(Event) {}

// Step emits the start of a step and returns the function that emits its end. Calling that function a second time does
// nothing, so it can be deferred as a guard for early returns.
func Step(sink Sink, name string) func(Outcome, string) {
	started := time.Now()
	sink.Emit(StepStarted{Step: name})
	var once sync.Once
	return func(outcome Outcome, detail string) {
		once.Do(func() {
			sink.Emit(StepFinished{Step: name, Outcome: outcome, Detail: detail, Elapsed: time.Since(started)})
		})
	}
}
