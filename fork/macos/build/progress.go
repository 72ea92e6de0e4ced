package build

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"mpsforge/internal/events"
	"mpsforge/internal/words"
)

// updateInterval is the least time between two reports of progress.
const updateInterval = 100 * time.Millisecond

// noteLimit keeps what a command makes readable: PyTorch's code generator is one that names dozens of files.
const noteLimit = 120

// cut replaces the rest of a long line: a linker's command names thousands of objects.
const cut = " …"

// outputKept is how much of a step's output is kept for finding its first error; the log on disk has all of it.
const outputKept = 1 << 20

// watcher takes a step's output: all of it goes into the log, ninja's lines become progress, and what came from the first
// failed command on is kept.
type watcher struct {
	mutex     sync.Mutex
	log       io.Writer
	logError  error
	logLeft   int // bytes that the log still takes
	sink      events.Sink
	step      string
	estimator *estimator // nil where nothing is counted
	started   time.Time
	updated   time.Time
	line      []byte // an unfinished one
	kept      []byte
	failed    bool
	ran       int // commands of ninja that ended
	lines     int // shown in this second
	leftOut   int // not shown
	second    time.Time
}

// Limits of what a step may write, in bytes: of a line, which is taken in pieces then, and of the log on disk.
const (
	lineLimit = 1 << 16
	logLimit  = 1 << 30
)

func newWatcher(log io.Writer, sink events.Sink, step string, e *estimator) *watcher {
	return &watcher{log: log, logLeft: logLimit, sink: sink, step: step, estimator: e, started: time.Now()}
}

// Write never fails, so that a full disk, which the log feels first, does not end the tools by a closed pipe before they
// say so themselves.
func (w *watcher) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	written, err := w.log.Write(p[:min(len(p), w.logLeft)])
	w.logLeft -= written
	if err != nil && w.logError == nil {
		w.logError = err
	}
	w.line = append(w.line, p...)
	for {
		line, rest, found := bytes.Cut(w.line, []byte("\n"))
		if !found && len(line) < lineLimit {
			return len(p), nil
		}
		w.take(string(bytes.TrimSuffix(line, []byte("\r"))))
		w.line = rest
	}
}

func (w *watcher) take(line string) {
	n, ok := parseNinja(line)
	if !ok || w.estimator == nil {
		w.keep(line)
		w.emit(line)
		if w.estimator == nil {
			w.report(events.StepProgress{Step: w.step, Note: words.Shorten(line, noteLimit, cut)}, false)
		}
		return
	}
	w.ran++
	w.estimator.end(n.what)
	elapsed := time.Since(w.started)
	left, _ := w.estimator.left(elapsed, n.done, n.total) // 0 if it is not known
	w.report(events.StepProgress{Step: w.step, Done: int64(n.done), Total: int64(n.total), Unit: "commands", Note: words.Shorten(n.what, noteLimit,
		cut), Running: int64(n.running), Left: left},
		n.done == n.total)
}

// linesASecond bounds the output that is reported while it comes; the log on disk has all of it.
const linesASecond = 100

// emit reports a line of output, and a failed command of ninja's as a part of the step.
func (w *watcher) emit(line string) {
	if what, failed := strings.CutPrefix(line, "FAILED: "); failed && w.estimator != nil {
		w.sink.Emit(events.PartFinished{Part: events.Part{Step: w.step, Name: words.Shorten(strings.TrimSpace(what), noteLimit, cut)}, Outcome: events.Failed})
	}
	if now := time.Now(); now.Sub(w.second) >= time.Second {
		if w.leftOut > 0 {
			w.sink.Emit(events.StepLine{Step: w.step, Text: fmt.Sprintf("… %d lines more; the log has them", w.leftOut)})
		}
		w.second, w.lines, w.leftOut = now, 0, 0
	}
	if w.lines++; w.lines > linesASecond {
		w.leftOut++
		return
	}
	w.sink.Emit(events.StepLine{Step: w.step, Text: words.Shorten(line, 400, cut)})
}

func (w *watcher) report(progress events.StepProgress, last bool) {
	if now := time.Now(); last || now.Sub(w.updated) >= updateInterval {
		w.updated = now
		w.sink.Emit(progress)
	}
}

// keep keeps lines for the diagnosis: the newest ones, and from the first failure on the oldest.
func (w *watcher) keep(line string) {
	if !w.failed && bytes.HasPrefix([]byte(line), []byte("FAILED: ")) {
		w.failed, w.kept = true, nil
	}
	if over := len(w.kept) - outputKept; over > 0 {
		if w.failed {
			return
		}
		w.kept = append([]byte(nil), w.kept[over+outputKept/2:]...)
	}
	w.kept = append(append(w.kept, line...), '\n')
}

// output is what was kept, an unfinished line included.
func (w *watcher) output() []byte {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append(bytes.Clone(w.kept), w.line...)
}
