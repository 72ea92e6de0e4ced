package events

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Version of the stream, see the package's comment.
const Version = 2

// Event is one of the types below.
type Event interface{ kind() string }

// Stream opens a stream.
type Stream struct {
	Version int      `json:"version"`
	Tool    string   `json:"tool"` // the program's version
	Command string   `json:"command"`
	Args    []string `json:"args"` // behind the command
}

// Pipeline announces steps, in the order in which they will start. Parent is empty for those of the command itself.
type Pipeline struct {
	Parent string   `json:"parent,omitempty"`
	Steps  []string `json:"steps"`
}

// StepStarted opens a step.
type StepStarted struct {
	Step   string `json:"step"`
	Parent string `json:"parent,omitempty"` // the step that it is a part of
}

// StepProgress reports how far a step is. Total is 0 when it is not known; Unit is empty for a bare count.
type StepProgress struct {
	Step    string        `json:"step"`
	Done    int64         `json:"done"`
	Total   int64         `json:"total,omitempty"`
	Unit    string        `json:"unit,omitempty"`
	Note    string        `json:"note,omitempty"`    // what it does now, or has just done
	Running int64         `json:"running,omitempty"` // how many at once
	Left    time.Duration `json:"left_ns,omitempty"` // as the step itself reckons; 0: it does not
}

// PartsPlanned announces parts of a step: those called Names, each once for every column where there are columns.
type PartsPlanned struct {
	Step    string   `json:"step"`
	Subject string   `json:"subject,omitempty"`
	Names   []string `json:"names"`
	Columns []string `json:"columns,omitempty"`
}

// Part names a part of a step.
type Part struct {
	Step    string `json:"step"`
	Subject string `json:"subject,omitempty"` // what it is about, such as "stock, plain"
	Name    string `json:"name"`
	Column  string `json:"column,omitempty"` // such as "4 threads"
}

// PartStarted opens a run of a part.
type PartStarted struct{ Part }

// PartFinished closes it.
type PartFinished struct {
	Part
	Outcome StepOutcome `json:"outcome"`
	// Expected is set when a bad outcome is no bad news: unpatched sources that crash, a test that waits for a patch.
	Expected  bool          `json:"expected,omitempty"`
	Signature string        `json:"signature,omitempty"` // of a crash, number and name as "mpsforge metal explain" knows them
	Detail    string        `json:"detail,omitempty"`
	Elapsed   time.Duration `json:"elapsed_ns"`
}

// StepLine is a line of output of a step's program.
type StepLine struct {
	Step string `json:"step"`
	Text string `json:"text"`
}

// StepFinished closes a step.
type StepFinished struct {
	Step    string        `json:"step"`
	Outcome StepOutcome   `json:"outcome"`
	Detail  string        `json:"detail,omitempty"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// StepOutcome is how a step or a part of one ended.
type StepOutcome string

// The outcomes. Steps know the first four only.
const (
	OK          StepOutcome = "ok"
	Failed      StepOutcome = "failed"
	Skipped     StepOutcome = "skipped"
	Interrupted StepOutcome = "interrupted" // by the user; see Until
	WrongValues StepOutcome = "wrong values"
	Crashed     StepOutcome = "crashed"
	Hung        StepOutcome = "hung"
)

// Until gives a sink for work that ends with the context. What fails after that was interrupted, whatever its error says.
func Until(ctx context.Context, sink Sink) Sink {
	return SinkFunc(func(event Event) {
		if ctx.Err() != nil {
			switch e := event.(type) {
			case StepFinished:
				interrupt(&e.Outcome, &e.Detail)
				event = e
			case PartFinished:
				interrupt(&e.Outcome, &e.Detail)
				event = e
			}
		}
		sink.Emit(event)
	})
}

func interrupt(outcome *StepOutcome, detail *string) {
	if *outcome == Failed {
		*outcome, *detail = Interrupted, ""
	}
}

// Message is a line for the user outside any step's progress.
type Message struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

// Level ranks a Message.
type Level string

// The levels of a message. Quiet mode keeps warnings, and what the user has asked for by a signal.
const (
	Info    Level = "info"
	Warning Level = "warning"
	Status  Level = "status"
)

// End closes a stream.
type End struct {
	ExitCode int    `json:"exit_code"`
	Message  string `json:"message,omitempty"`
	Report   string `json:"report,omitempty"` // path of the HTML page, on the machine of the command
}

func (Stream) kind() string       { return "stream" }
func (Pipeline) kind() string     { return "pipeline" }
func (StepStarted) kind() string  { return "step-started" }
func (StepProgress) kind() string { return "step-progress" }
func (PartsPlanned) kind() string { return "parts-planned" }
func (PartStarted) kind() string  { return "part-started" }
func (PartFinished) kind() string { return "part-finished" }
func (StepLine) kind() string     { return "step-line" }
func (StepFinished) kind() string { return "step-finished" }
func (Message) kind() string      { return "message" }
func (End) kind() string          { return "end" }

// Sink takes events. Implementations are safe for use by several goroutines and never block for long.
type Sink interface{ Emit(Event) }

// SinkFunc is a function as a sink.
type SinkFunc func(Event)

// Emit calls the function.
func (f SinkFunc) Emit(event Event) { f(event) }

// Discard drops every event.
var Discard Sink = SinkFunc(func(Event) {})

// OrDiscard is the sink, or Discard for none.
func OrDiscard(sink Sink) Sink {
	if sink == nil {
		return Discard
	}
	return sink
}

// Step emits the start of a step and returns the function that emits its end. Calling that function a second time does
// nothing, so it can be deferred as a guard for early returns.
func Step(sink Sink, name string) func(StepOutcome, string) {
	started := time.Now()
	sink.Emit(StepStarted{Step: name})
	var once sync.Once
	return func(outcome StepOutcome, detail string) {
		once.Do(func() {
			sink.Emit(StepFinished{Step: name, Outcome: outcome, Detail: detail, Elapsed: time.Since(started)})
		})
	}
}

// Under gives a sink for the work inside a step: steps that start there, and know no parent, are parts of it.
func Under(sink Sink, step string) Sink {
	return SinkFunc(func(event Event) {
		switch e := event.(type) {
		case StepStarted:
			e.Parent = cmp.Or(e.Parent, step)
			event = e
		case Pipeline:
			e.Parent = cmp.Or(e.Parent, step)
			event = e
		}
		sink.Emit(event)
	})
}

// RunPart emits the start of a part's run and returns the function that emits its end.
func RunPart(sink Sink, part Part) func(PartFinished) {
	started := time.Now()
	sink.Emit(PartStarted{part})
	return func(end PartFinished) {
		end.Part, end.Elapsed = part, time.Since(started)
		sink.Emit(end)
	}
}
