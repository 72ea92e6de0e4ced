package events_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
)

// slow is a renderer that blocks until it is let go, as a stopped terminal does.
type slow struct {
	release chan struct{}
	mutex   sync.Mutex
	got     []events.Record
	closed  bool
}

func (s *slow) Show(records []events.Record) {
	<-s.release
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.got = append(s.got, records...)
}

func (s *slow) Close() { s.closed = true }

// The work goes on while the terminal blocks. Then it gets all that counts; progress and output only in part, and
// it is shown how much was left out.
func TestSlowTerminalDoesNotSlowTheWork(t *testing.T) {
	terminal := &slow{release: make(chan struct{})}
	feed := events.NewFeed(terminal, time.Now)
	const n = 20000
	// Were the work to wait for the terminal, which is released only then, this test would not end.
	for i := range n {
		feed.Emit(events.StepProgress{Step: "compile", Done: int64(i)})
		feed.Emit(events.StepLine{Step: "compile", Text: "output"})
		if i%100 == 0 {
			feed.Emit(events.PartFinished{Part: events.Part{Step: "compile", Name: fmt.Sprint(i)}, Outcome: events.Failed})
		}
	}
	close(terminal.release)
	feed.Close()
	feed.Close() // a second time does nothing
	feed.Emit(events.End{})
	parts, lines, told, leftOut := 0, 0, 0, 0
	var last int64
	for _, record := range terminal.got {
		switch e := record.Event.(type) {
		case events.PartFinished:
			parts++
		case events.StepLine:
			lines++
		case events.StepProgress:
			last = e.Done
		case events.Message:
			if _, err := fmt.Sscanf(e.Text, "%d lines of output left out here: they came too fast", &leftOut); err != nil {
				t.Errorf("%q: %v", e.Text, err)
			}
			told += leftOut // once for each time that the terminal is shown something
		}
	}
	if parts != n/100 || lines+told != n || told == 0 || last != n-1 || !terminal.closed {
		t.Errorf("parts %d, lines %d and %d left out, last progress %d, closed %t, of %d events", parts, lines, told, last, terminal.closed, len(terminal.got))
	}
	if len(terminal.got) > 3*n/2 {
		t.Errorf("%d events were kept", len(terminal.got))
	}
}

// A step that is left early ends as failed, and only once; the step of work inside it names it as its parent.
func TestStepEndsOnceAndKnowsItsParent(t *testing.T) {
	var out bytes.Buffer
	feed := events.NewFeed(events.NewJSON(&out), func() time.Time { return start })
	func() {
		finish := events.Step(feed, "one")
		defer finish(events.Failed, "")
		inside := events.Under(events.Under(feed, "one"), "two")
		inside.Emit(events.Pipeline{Steps: []string{"three"}})
		events.Step(inside, "three")(events.OK, "done")
	}()
	feed.Close()
	var shape []string
	for line := range strings.Lines(out.String()) {
		kind := strings.Split(line, `"`)[3]
		if strings.Contains(line, `"parent":"two"`) {
			kind += " in two"
		}
		shape = append(shape, kind)
	}
	require.Equal(t, strings.Join(shape, ", "), "step-started, pipeline in two, step-started in two, step-finished, step-finished")
}

// The status names what runs, how far it is, and since when.
func TestStatus(t *testing.T) {
	state := events.NewState()
	for _, record := range at(
		0.0, events.Stream{Version: events.Version, Command: "verify"},
		1.0, events.StepStarted{Step: "verify runtime"},
		2.0, events.StepStarted{Step: "build", Parent: "verify runtime"},
		3.0, events.StepProgress{Step: "build", Done: 3, Total: 9, Note: "a.mm"},
	) {
		state.Apply(record)
	}
	require.Equal(t, state.Status(start.Add(75*time.Second)), "build for 1:13: 3/9 a.mm, 2:26 left; verify began 1:15 ago")
}

// Where a step shows nothing for long, a plain line says what is running at least every 30 seconds; quiet mode has none.
func TestLongWorkShowsThatItGoesOn(t *testing.T) {
	for name, quiet := range map[string]bool{"plain": false, "quiet": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				feed := events.NewFeed(events.NewPlain(&out, quiet), time.Now)
				feed.Emit(events.Stream{Version: events.Version, Command: "verify"})
				feed.Emit(events.StepStarted{Step: "build"})
				time.Sleep(65 * time.Second)
				feed.Close()
				want := " 0:25.0 running: build for 0:25; verify began 0:25 ago\n 0:50.0 running: build for 0:50; verify began 0:50 ago\n"
				if quiet {
					want = ""
				}
				require.Equal(t, out.String(), want)
			})
		})
	}
}

func TestWhatFailsAfterAnInterruptIsInterrupted(t *testing.T) {
	var out bytes.Buffer
	feed := events.NewFeed(events.NewPlain(&out, false), time.Now)
	ctx, stop := context.WithCancel(t.Context())
	sink := events.Until(ctx, feed)
	sink.Emit(events.StepFinished{Step: "first", Outcome: events.Failed, Detail: "its own fault"})
	stop()
	sink.Emit(events.StepFinished{Step: "second", Outcome: events.OK})
	sink.Emit(events.StepFinished{Step: "third", Outcome: events.Failed, Detail: "signal: interrupt"})
	feed.Close()
	for _, want := range []string{"first: failed, its own fault (", "second: ok (", "third: interrupted ("} {
		require.Contains(t, out.String(), want)
	}
}
