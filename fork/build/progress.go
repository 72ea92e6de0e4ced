package build

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"mpsforge/internal/events"
)

// updateInterval is the least time between two reports of progress.
const updateInterval = 100 * time.Millisecond

// noteLimit keeps what a command makes readable: PyTorch's code generator is one that names dozens of files.
const noteLimit = 120

// outputKept is how much of a step's output is kept for finding its first error; the log on disk has all of it.
const outputKept = 1 << 20

// watcher takes a step's output: all of it goes into the log, ninja's lines become progress, and what came from the first
// failed command on is kept.
type watcher struct {
	mutex     sync.Mutex
	log       io.Writer
	logError  error
	sink      events.Sink
	step      string
	estimator *estimator // nil where nothing is counted
	started   time.Time
	updated   time.Time
	line      []byte // an unfinished one
	kept      []byte
	failed    bool
	ran       int // commands of ninja that ended
}

func newWatcher(log io.Writer, sink events.Sink, step string, e *estimator) *watcher {
	return &watcher{log: log, sink: sink, step: step, estimator: e, started: time.Now()}
}

// Write never fails, so that a full disk, which the log feels first, does not end the tools by a closed pipe before they
// say so themselves.
func (w *watcher) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if _, err := w.log.Write(p); err != nil && w.logError == nil {
		w.logError = err
	}
	w.line = append(w.line, p...)
	for {
		line, rest, found := bytes.Cut(w.line, []byte("\n"))
		if !found {
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
		if w.estimator == nil {
			w.report(events.StepProgress{Step: w.step, Note: shorten(line, noteLimit)}, false)
		}
		return
	}
	w.ran++
	w.estimator.end(n.what)
	elapsed := time.Since(w.started)
	note := shorten(n.what, noteLimit)
	if n.running > 0 {
		note += fmt.Sprintf(", %d running", n.running)
	}
	if elapsed > time.Second {
		note += fmt.Sprintf(", %.1f a second", float64(n.done)/elapsed.Seconds())
	}
	if left, known := w.estimator.left(elapsed, n.done, n.total); known {
		note += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	w.report(events.StepProgress{Step: w.step, Done: int64(n.done), Total: int64(n.total), Note: note}, n.done == n.total)
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
