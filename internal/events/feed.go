package events

import (
	"fmt"
	"sync"
	"time"
)

// Record is an event and when it was.
type Record struct {
	Time  time.Time
	Event Event
}

// Renderer is a face of the stream. It is called by one goroutine at a time.
type Renderer interface {
	// Show shows what has happened since the last call.
	Show([]Record)
	// Close is called once, after the last Show.
	Close()
}

// Idler is a renderer that wants to know when nothing happens.
type Idler interface {
	// Idle gives the state of the stream at a time at which there was nothing to show.
	Idle(now time.Time, status string)
}

// idleCheck is how often a feed looks whether anything has happened.
const idleCheck = 5 * time.Second

// A Feed holds back what its renderer is too slow for; from busyRecords on progress takes the place of older progress, and
// more than busyLines of programs' output are left out.
const (
	busyRecords = 1024
	busyLines   = 4096
)

// Feed is the Sink of a command. It puts the time on events and hands them to a renderer from a goroutine of its own, so
// that a slow terminal or pipe does not slow the work.
type Feed struct {
	now      func() time.Time
	renderer Renderer
	wake     chan struct{} // of room one: there is something to show
	shown    chan struct{} // closed when all is

	mutex   sync.Mutex // guards the rest
	state   *State
	pending []Record
	lines   int // among them
	leftOut int // lines
	closed  bool
}

// NewFeed starts a feed. Close it when the command is done.
func NewFeed(renderer Renderer, now func() time.Time) *Feed {
	f := &Feed{now: now, renderer: renderer, wake: make(chan struct{}, 1), shown: make(chan struct{}), state: NewState()}
	go f.show()
	return f
}

// Emit takes an event that happens now.
func (f *Feed) Emit(event Event) { f.Put(Record{f.now(), event}) }

// Put takes an event with its time. After Close it does nothing.
func (f *Feed) Put(record Record) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.closed {
		return
	}
	f.state.Apply(record)
	f.add(record)
	select {
	case f.wake <- struct{}{}:
	default: // it is awake
	}
}

func (f *Feed) add(record Record) {
	switch event := record.Event.(type) {
	case StepLine:
		if f.lines++; f.lines > busyLines {
			f.leftOut++
			return
		}
	case StepProgress:
		if len(f.pending) > busyRecords {
			if last, ok := f.pending[len(f.pending)-1].Event.(StepProgress); ok && last.Step == event.Step {
				f.pending = f.pending[:len(f.pending)-1]
			}
		}
	}
	f.pending = append(f.pending, record)
}

func (f *Feed) show() {
	defer close(f.shown)
	tick := time.NewTicker(idleCheck)
	defer tick.Stop()
	for {
		select {
		case _, open := <-f.wake:
			if !open {
				return
			}
		case <-tick.C:
			if idle, ok := f.renderer.(Idler); ok {
				f.mutex.Lock()
				now := f.now()
				status := f.state.Status(now)
				f.mutex.Unlock()
				idle.Idle(now, status)
			}
			continue
		}
		f.mutex.Lock()
		batch, leftOut := f.pending, f.leftOut
		f.pending, f.lines, f.leftOut = nil, 0, 0
		f.mutex.Unlock()
		if leftOut > 0 {
			batch = append(batch, Record{batch[len(batch)-1].Time, Message{Warning, fmt.Sprintf("%d lines of output left out here: they came too fast",
				leftOut)}})
		}
		if len(batch) > 0 {
			f.renderer.Show(batch)
		}
	}
}

// Status says what runs, how far it is, and since when, at once and in any mode.
func (f *Feed) Status() {
	f.mutex.Lock()
	text := f.state.Status(f.now())
	f.mutex.Unlock()
	f.Emit(Message{Status, text})
}

// Close shows what is held back and closes the renderer. It may be called again.
func (f *Feed) Close() {
	f.mutex.Lock()
	closed := f.closed
	f.closed = true
	f.mutex.Unlock()
	if closed {
		return
	}
	close(f.wake)
	<-f.shown
	f.renderer.Close()
}
