package events

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is what a stream says, put together. The terminal UI draws it; a status line is made of it.
type State struct {
	Stream  Stream
	Started time.Time
	Steps   []*StepState // of the command itself, in order; each holds those inside it
	Log     []LogLine    // the newest
	End     *End         // nil while the command works
	Ended   time.Time

	newest map[string]*StepState // by name
}

// Phase says whether something is to come, running, or over.
type Phase int

// The phases.
const (
	Pending Phase = iota
	Running
	Done
)

// StepState is one step.
type StepState struct {
	Name     string
	Parent   *StepState // nil: the command
	Children []*StepState
	Phase    Phase
	Outcome  StepOutcome // when it is done
	Detail   string
	Started  time.Time
	Elapsed  time.Duration // when it is done
	Progress StepProgress
	Parts    []*PartState // in the order of their plan, or of their start
	Columns  []string     // of parts, by their leading numbers

	parts map[Part]*PartState
}

// PartState is one part with all its runs.
type PartState struct {
	Part
	Running int
	Runs    int // that have ended
	// What follows is of the worst run; a bad end that was expected is less bad than any other.
	Outcome   StepOutcome
	Expected  bool
	Signature string
	Detail    string
	Elapsed   time.Duration // of all runs
}

// LogLine is a line of the log: output of a step, a message, the end of a step or part, or what a step without parts does.
type LogLine struct {
	Time  time.Time
	Step  string // empty: none
	Bad   bool   // a failure or a warning
	Text  string
	Asked bool // a status
}

// logLimit bounds the log: of the newest lines so many are kept, and of the bad news and answers before them half as many.
const logLimit = 5000

// NewState gives the state before any event.
func NewState() *State { return &State{newest: map[string]*StepState{}} }

// Apply takes the next event. Events of steps that were not announced are taken as they come.
func (s *State) Apply(record Record) {
	if s.Started.IsZero() {
		s.Started = record.Time
	}
	switch e := record.Event.(type) {
	case Stream:
		s.Stream = e
	case Pipeline:
		parent := s.newest[e.Parent]
		for _, name := range e.Steps {
			if !slices.ContainsFunc(*s.children(parent), func(have *StepState) bool { return have.Name == name && have.Phase != Done }) {
				s.addStep(parent, name)
			}
		}
	case StepStarted:
		s.start(e, record.Time)
	case StepProgress:
		step := s.step(e.Step, record.Time)
		e.Note = Clean(e.Note)
		if len(step.Parts) == 0 && e.Note != "" && e.Note != step.Progress.Note {
			s.log(LogLine{Time: record.Time, Step: e.Step, Text: e.Step + ": " + e.Note})
		}
		step.Progress = e
	case PartsPlanned:
		step := s.step(e.Step, record.Time)
		columns := e.Columns
		if len(columns) == 0 {
			columns = []string{""}
		}
		for _, name := range e.Names {
			for _, column := range columns {
				step.part(Part{e.Step, e.Subject, name, column})
			}
		}
	case PartStarted:
		s.step(e.Step, record.Time).part(e.Part).Running++
	case PartFinished:
		s.finishPart(e, record.Time)
	case StepLine:
		s.log(LogLine{Time: record.Time, Step: e.Step, Text: e.Text})
	case StepFinished:
		step := s.step(e.Step, record.Time)
		step.Phase, step.Outcome, step.Detail, step.Elapsed = Done, e.Outcome, Clean(e.Detail), e.Elapsed
		for _, part := range step.Parts {
			part.Running = 0
		}
		s.log(LogLine{Time: record.Time, Step: e.Step, Bad: e.Outcome == Failed, Text: finishedText(e)})
	case Message:
		s.log(LogLine{Time: record.Time, Bad: e.Level == Warning, Asked: e.Level == Status, Text: messageText(e)})
	case End:
		s.End, s.Ended = &e, record.Time
		if e.ExitCode != 0 {
			for line := range strings.SplitSeq(e.Message, "\n") {
				s.log(LogLine{Time: record.Time, Bad: true, Text: line})
			}
		}
	}
}

func (s *State) children(parent *StepState) *[]*StepState {
	if parent == nil {
		return &s.Steps
	}
	return &parent.Children
}

// addStep puts a step at the end.
func (s *State) addStep(parent *StepState, name string) *StepState {
	step := &StepState{Name: name, Parent: parent, parts: map[Part]*PartState{}}
	list := s.children(parent)
	*list = append(*list, step)
	return step
}

func (s *State) start(e StepStarted, at time.Time) *StepState {
	parent := s.newest[e.Parent]
	list := s.children(parent)
	i := slices.IndexFunc(*list, func(have *StepState) bool { return have.Name == e.Step && have.Phase == Pending })
	var step *StepState
	if i >= 0 {
		step = (*list)[i]
	} else {
		step = s.addStep(parent, e.Step)
		// before those that are still to come
		if first := slices.IndexFunc(*list, func(have *StepState) bool { return have.Phase == Pending }); first < len(*list)-1 {
			*list = slices.Insert((*list)[:len(*list)-1], first, step)
		}
	}
	step.Phase, step.Started = Running, at
	s.newest[e.Step] = step
	return step
}

// step gives the newest of that name. One that has not begun is taken to begin now.
func (s *State) step(name string, at time.Time) *StepState {
	if step := s.newest[name]; step != nil {
		return step
	}
	return s.start(StepStarted{Step: name}, at)
}

func (s *StepState) part(key Part) *PartState {
	part := s.parts[key]
	if part != nil {
		return part
	}
	shown := key
	shown.Name, shown.Subject, shown.Column = Clean(key.Name), Clean(key.Subject), Clean(key.Column)
	part = &PartState{Part: shown}
	s.parts[key] = part
	s.Parts = append(s.Parts, part)
	if shown.Column != "" && !slices.Contains(s.Columns, shown.Column) {
		s.Columns = append(s.Columns, shown.Column)
		slices.SortStableFunc(s.Columns, func(a, b string) int { return leadingNumber(a) - leadingNumber(b) })
	}
	return part
}

// leadingNumber is the 4 of "4 threads".
func leadingNumber(column string) int {
	number, _ := strconv.Atoi(column[:len(column)-len(strings.TrimLeft(column, "0123456789"))])
	return number
}

func (s *State) finishPart(e PartFinished, at time.Time) {
	part := s.step(e.Step, at).part(e.Part)
	part.Running = max(0, part.Running-1)
	part.Elapsed += e.Elapsed
	if part.Runs == 0 || badness(e.Outcome, e.Expected) > badness(part.Outcome, part.Expected) {
		part.Outcome, part.Expected, part.Signature, part.Detail = e.Outcome, e.Expected, Clean(e.Signature), Clean(e.Detail)
	}
	part.Runs++
	s.log(LogLine{Time: at, Step: e.Step, Bad: e.Bad(), Text: partText(e)})
}

// badness orders ends: what is worst is shown of several runs.
func badness(outcome StepOutcome, expected bool) int {
	rank := slices.Index([]StepOutcome{OK, Skipped, Failed, WrongValues, Hung, Crashed}, outcome)
	if rank >= 2 && !expected {
		rank += 10
	}
	return rank
}

// Bad reports whether the part's end is bad news.
func (e PartFinished) Bad() bool { return badness(e.Outcome, e.Expected) >= 10 }

// Bad reports whether any run of the part was bad news.
func (p *PartState) Bad() bool { return p.Runs > 0 && badness(p.Outcome, p.Expected) >= 10 }

// Bad counts the parts of the step that are bad news; those of steps inside it are not among them.
func (s *StepState) Bad() int {
	n := 0
	for _, part := range s.Parts {
		if part.Bad() {
			n++
		}
	}
	return n
}

func (s *State) log(line LogLine) {
	line.Text = Clean(line.Text)
	if s.Log = append(s.Log, line); len(s.Log) >= 2*logLimit {
		old, recent := s.Log[:len(s.Log)-logLimit], s.Log[len(s.Log)-logLimit:]
		old = slices.DeleteFunc(slices.Clone(old), func(l LogLine) bool { return !l.Bad && !l.Asked })
		s.Log = slices.Concat(old[max(0, len(old)-logLimit/2):], recent)
	}
}

// ElapsedAt is how long the step has run, or ran.
func (s *StepState) ElapsedAt(now time.Time) time.Duration {
	switch s.Phase {
	case Pending:
		return 0
	case Done:
		return s.Elapsed
	}
	return max(0, now.Sub(s.Started))
}

// LeftAt is how long the step will take, as it says itself or, once it has done some of a known total, at the speed so far. The time
// of steps inside it, such as builds, does not count: it says nothing of the speed.
func (s *StepState) LeftAt(now time.Time) (time.Duration, bool) {
	if s.Phase != Running {
		return 0, false
	}
	own := s.ElapsedAt(now)
	for _, child := range s.Children {
		own -= child.ElapsedAt(now)
	}
	switch p := s.Progress; {
	case p.Left > 0:
		return p.Left, true
	case p.Done <= 0 || p.Total <= p.Done || own < 3*time.Second:
		return 0, false
	default:
		return time.Duration(float64(own) / float64(p.Done) * float64(p.Total-p.Done)), true
	}
}

// ElapsedAt is how long the command has run, or ran.
func (s *State) ElapsedAt(now time.Time) time.Duration {
	switch {
	case s.Started.IsZero():
		return 0
	case s.End != nil:
		return s.Ended.Sub(s.Started)
	}
	return max(0, now.Sub(s.Started))
}

// Active gives the innermost steps that run.
func (s *State) Active() []*StepState {
	var active []*StepState
	var walk func([]*StepState) bool
	walk = func(steps []*StepState) bool {
		found := false
		for _, step := range steps {
			if inside := walk(step.Children); !inside && step.Phase == Running {
				active = append(active, step)
				found = true
			} else if inside {
				found = true
			}
		}
		return found
	}
	walk(s.Steps)
	return active
}

// Status says in one line what runs, how far it is, and since when.
func (s *State) Status(now time.Time) string {
	var parts []string
	for _, step := range s.Active() {
		text := fmt.Sprintf("%s for %s", step.Name, Clock(step.ElapsedAt(now)))
		shown := step.Progress
		shown.Left, _ = step.LeftAt(now)
		if progress := ProgressText(shown); progress != "" {
			text += ": " + progress
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		parts = []string{"no step is running"}
	}
	return fmt.Sprintf("%s; %s began %s ago", strings.Join(parts, "; "), s.Stream.Command, Clock(s.ElapsedAt(now)))
}
