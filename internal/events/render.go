package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Mode is a face for the event stream, as --progress names it.
type Mode string

// The modes. Auto is Terminal on a terminal and Plain elsewhere; Terminal without a terminal is an error, because
// escape codes in a log file help nobody.
const (
	Auto     Mode = "auto"
	Terminal Mode = "tty"
	Plain    Mode = "plain"
	JSON     Mode = "json"
)

// ErrMode is returned, wrapped, for a mode that is unknown or can not be had here.
var ErrMode = errors.New("no such progress mode here")

// plainInterval is the least time between two plain progress lines of one step.
const plainInterval = 2 * time.Second

// terminalInterval is the least time between two updates of the status line.
const terminalInterval = 100 * time.Millisecond

// Renderer is a Sink that shows events. Close it when the command is done.
type Renderer interface {
	Sink
	Close()
}

// New makes the renderer for a mode. Quiet keeps warnings only; JSON lines are never thinned out.
func New(mode Mode, w io.Writer, isTerminal, quiet bool) (Renderer, error) {
	switch mode {
	case Auto, "":
		return &lines{w: w, quiet: quiet, live: isTerminal && !quiet, shown: map[string]time.Time{}}, nil
	case Terminal:
		if !isTerminal {
			return nil, fmt.Errorf("%w: --progress tty needs standard error to be a terminal; use auto, plain or json", ErrMode)
		}
		return &lines{w: w, quiet: quiet, live: !quiet, shown: map[string]time.Time{}}, nil
	case Plain:
		return &lines{w: w, quiet: quiet, shown: map[string]time.Time{}}, nil
	case JSON:
		return &jsonLines{encoder: json.NewEncoder(w)}, nil
	}
	return nil, fmt.Errorf("%w: --progress %s; use auto, tty, plain or json", ErrMode, mode)
}

// jsonLines writes each event as one JSON object with its kind.
type jsonLines struct {
	mutex   sync.Mutex
	encoder *json.Encoder
}

func (j *jsonLines) Emit(event Event) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	// An event that can not be written must not stop the work; standard error is gone then.
	_ = j.encoder.Encode(struct {
		Kind  string    `json:"kind"`
		Time  time.Time `json:"time"`
		Event Event     `json:"event"`
	}{event.kind(), time.Now().UTC(), event})
}

func (j *jsonLines) Close() {}

// lines writes one line for each end of a step, thinned progress, and, when live, the progress as a line that is
// written over.
type lines struct {
	mutex sync.Mutex
	w     io.Writer
	quiet bool
	live  bool
	dirty bool // a status line stands
	shown map[string]time.Time
}

func (l *lines) Emit(event Event) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch e := event.(type) {
	case StepStarted:
		l.shown[e.Step] = time.Now()
		l.status(e.Step + " …")
	case StepProgress:
		interval := plainInterval
		if l.live {
			interval = terminalInterval
		}
		if time.Since(l.shown[e.Step]) < interval {
			return
		}
		l.shown[e.Step] = time.Now()
		text := e.Step + ": " + progressText(e)
		if l.live {
			l.status(text)
		} else {
			l.print(text)
		}
	case StepFinished:
		text := fmt.Sprintf("%s: %s", e.Step, e.Outcome)
		if e.Detail != "" {
			text += ", " + e.Detail
		}
		l.print(fmt.Sprintf("%s (%.1f s)", text, e.Elapsed.Seconds()))
	case Message:
		if e.Level == Warning {
			l.write("warning: " + e.Text)
			return
		}
		l.print(e.Text)
	}
}

// print writes a line that quiet mode leaves out.
func (l *lines) print(text string) {
	if !l.quiet {
		l.write(text)
	}
}

func (l *lines) write(text string) {
	l.clear()
	fmt.Fprintln(l.w, text)
}

func (l *lines) status(text string) {
	if !l.live {
		return
	}
	l.clear()
	fmt.Fprint(l.w, strings.ReplaceAll(text, "\n", " "))
	l.dirty = true
}

func (l *lines) clear() {
	if l.dirty {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.dirty = false
	}
}

func (l *lines) Close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.clear()
}

func progressText(p StepProgress) string {
	done, total := fmt.Sprint(p.Done), fmt.Sprint(p.Total)
	if p.Unit == "bytes" {
		done, total = megabytes(p.Done), megabytes(p.Total)
	}
	var parts []string
	switch {
	case p.Total > 0:
		parts = append(parts, fmt.Sprintf("%s/%s", done, total))
	case p.Done > 0:
		parts = append(parts, done)
	}
	if p.Unit != "" && p.Unit != "bytes" && len(parts) > 0 {
		parts = append(parts, p.Unit)
	}
	if p.Note != "" {
		parts = append(parts, p.Note)
	}
	return strings.Join(parts, " ")
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
