package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/events"
)

// play emits one of each event.
func play(sink events.Sink) {
	sink.Emit(events.StepStarted{Step: "apply"})
	sink.Emit(events.StepProgress{Step: "apply", Done: 1, Total: 3, Unit: "patches", Note: "slots"})
	sink.Emit(events.Message{Level: events.Info, Text: "for information"})
	sink.Emit(events.Message{Level: events.Warning, Text: "mind this"})
	sink.Emit(events.StepFinished{Step: "apply", Outcome: events.OK, Detail: "3 patches", Elapsed: 1500 * time.Millisecond})
}

func render(t *testing.T, mode events.Mode, terminal, quiet bool) string {
	t.Helper()
	var out bytes.Buffer
	renderer, err := events.New(mode, &out, terminal, quiet)
	if err != nil {
		t.Fatal(err)
	}
	play(renderer)
	renderer.Close()
	return out.String()
}

// Without a terminal: whole lines, no escape codes, progress thinned out.
func TestPlainLines(t *testing.T) {
	want := "for information\nwarning: mind this\napply: ok, 3 patches (1.5 s)\n"
	for _, mode := range []events.Mode{events.Auto, events.Plain} {
		if got := render(t, mode, false, false); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
	if got := render(t, events.Plain, true, false); got != want {
		t.Errorf("plain on a terminal: %q", got)
	}
}

func TestQuietKeepsWarnings(t *testing.T) {
	if got, want := render(t, events.Auto, true, true), "warning: mind this\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// On a terminal one status line stands and is taken away before anything else is written.
func TestTerminalStatusLine(t *testing.T) {
	got := render(t, events.Terminal, true, false)
	if !strings.HasPrefix(got, "apply …\r\x1b[Kfor information\n") || strings.HasSuffix(got, "\x1b[K") {
		t.Errorf("%q", got)
	}
}

func TestTerminalWithoutATerminalIsAnError(t *testing.T) {
	for _, mode := range []events.Mode{events.Terminal, "fancy"} {
		if _, err := events.New(mode, &bytes.Buffer{}, false, false); !errors.Is(err, events.ErrMode) {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// Every event becomes one JSON object that names its kind.
func TestJSONLines(t *testing.T) {
	var kinds []string
	for line := range strings.Lines(render(t, events.JSON, false, true)) {
		var object struct {
			Kind  string
			Event map[string]any
		}
		if err := json.Unmarshal([]byte(line), &object); err != nil || len(object.Event) == 0 {
			t.Fatalf("%q: %v", line, err)
		}
		kinds = append(kinds, object.Kind)
	}
	if got, want := strings.Join(kinds, " "), "step-started step-progress message message step-finished"; got != want {
		t.Errorf("kinds %q, want %q", got, want)
	}
}

// A step that is left early ends as failed, and only once.
func TestStepEndsOnce(t *testing.T) {
	var out bytes.Buffer
	renderer, err := events.New(events.Plain, &out, false, false)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		finish := events.Step(renderer, "one")
		defer finish(events.Failed, "")
		finish(events.OK, "done")
	}()
	func() { defer events.Step(renderer, "two")(events.Failed, "") }()
	if got := out.String(); !strings.HasPrefix(got, "one: ok, done (") || !strings.Contains(got, "two: failed (") || strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}
