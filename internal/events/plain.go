package events

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// plainInterval is the least time between two lines of progress of one step.
const plainInterval = 2 * time.Second

// idleInterval is how long nothing is written before a line says what is running, less what a Feed takes to notice.
const idleInterval = 25 * time.Second

// liveInterval is the least time between two updates of the live line.
const liveInterval = 100 * time.Millisecond

// lines writes a line for each change, with the time since the start: progress every now and then, parts whose end is bad
// news, the end of a step, messages. When live, progress is one line that is written over, and no times are there: it is
// for commands that are done in a moment.
type lines struct {
	w        io.Writer
	quiet    bool
	live     bool
	standing bool // the live line
	started  time.Time
	written  time.Time            // when there was a line last
	shown    map[string]time.Time // by step
	state    *State
}

// NewPlain makes the renderer of plain lines. Quiet keeps warnings only.
func NewPlain(w io.Writer, quiet bool) Renderer {
	return &lines{w: w, quiet: quiet, shown: map[string]time.Time{}, state: NewState()}
}

// NewLive makes the renderer of plain lines with a live line, for a terminal.
func NewLive(w io.Writer) Renderer {
	return &lines{w: w, live: true, shown: map[string]time.Time{}, state: NewState()}
}

func (l *lines) Show(records []Record) {
	for _, record := range records {
		l.show(record)
	}
}

func (l *lines) show(record Record) {
	if l.started.IsZero() {
		l.started, l.written = record.Time, record.Time
	}
	l.state.Apply(record)
	switch e := record.Event.(type) {
	case StepStarted:
		l.shown[e.Step] = record.Time
		l.status(e.Step + " …")
	case StepProgress:
		l.progress(record.Time, e)
	case PartFinished:
		if e.Bad() { // the others show in the step's progress
			l.print(record.Time, e.Step+": "+partText(e))
		}
	case StepFinished:
		l.print(record.Time, finishedText(e))
	case Message:
		if e.Level == Info {
			l.print(record.Time, e.Text)
		} else {
			l.write(record.Time, messageText(e))
		}
	}
}

func (l *lines) progress(at time.Time, p StepProgress) {
	interval := plainInterval
	if l.live {
		interval = liveInterval
	}
	if at.Sub(l.shown[p.Step]) < interval {
		return
	}
	l.shown[p.Step] = at
	p.Left, _ = l.state.newest[p.Step].LeftAt(at)
	if text := p.Step + ": " + ProgressText(p); l.live {
		l.status(text)
	} else {
		l.print(at, text)
	}
}

// print writes a line that quiet mode leaves out.
func (l *lines) print(at time.Time, text string) {
	if !l.quiet {
		l.write(at, text)
	}
}

// Idle shows that the work goes on where nobody would see it otherwise.
func (l *lines) Idle(now time.Time, status string) {
	if !l.live && !l.started.IsZero() && now.Sub(l.written) >= idleInterval {
		l.print(now, "running: "+status)
	}
}

func (l *lines) write(at time.Time, text string) {
	l.clear()
	l.written = at
	since := ""
	if !l.live && !l.quiet {
		since = fmt.Sprintf("%7s ", sinceText(at.Sub(l.started)))
	}
	// Of several lines, such as a compiler's words, each is cleaned; they stay lines.
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i > 0 {
			since = strings.Repeat(" ", len(since))
		}
		fmt.Fprintln(l.w, since+Clean(line))
	}
}

// sinceText has a tenth of a second in the first minutes, where it is of use.
func sinceText(d time.Duration) string {
	if d = max(0, d); d < 10*time.Minute {
		tenths := int64(d / (100 * time.Millisecond))
		return fmt.Sprintf("%d:%02d.%d", tenths/600, tenths/10%60, tenths%10)
	}
	return Clock(d)
}

func (l *lines) status(text string) {
	if l.live {
		l.clear()
		fmt.Fprint(l.w, Clean(text))
		l.standing = true
	}
}

func (l *lines) clear() {
	if l.standing {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.standing = false
	}
}

func (l *lines) Close() { l.clear() }
