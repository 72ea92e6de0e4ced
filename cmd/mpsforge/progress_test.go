package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
)

// shown is a renderer that notes what it was shown.
type shown struct {
	name   string
	log    *[]string
	events int
}

func (s *shown) Show(records []events.Record) {
	s.events += len(records)
	*s.log = append(*s.log, s.name)
}
func (s *shown) Close() { *s.log = append(*s.log, s.name+" closed") }

func newLate() (late *lateUI, ui *shown, log *[]string) {
	log = &[]string{}
	ui = &shown{name: "ui", log: log}
	late = &lateUI{plain: &shown{name: "plain", log: log}, timer: time.NewTimer(time.Hour)}
	late.start = func() events.Renderer { return ui }
	return late, ui, log
}

func record(event events.Event) []events.Record {
	return []events.Record{{Time: time.Now(), Event: event}}
}

// What is done in a moment is reported in lines; no UI flashes up.
func TestQuickCommandHasNoUI(t *testing.T) {
	late, _, log := newLate()
	late.Show(record(events.Stream{}))
	late.Show(record(events.StepStarted{Step: "apply"}))
	late.Close()
	require.Equal(t, strings.Join(*log, ", "), "plain, plain closed")
}

// The UI starts when a step is running and the delay is over, whichever comes last, and gets all that was before.
func TestUIStartsLate(t *testing.T) {
	late, ui, log := newLate()
	late.Show(record(events.Stream{}))
	late.due()
	require.Equal(t, *log, nil, "before any step")
	late.Show(record(events.StepStarted{Step: "apply"}))
	late.Show(record(events.End{}))
	late.Close()
	if got := strings.Join(*log, ", "); got != "ui, ui, ui closed" || ui.events != 3 {
		t.Errorf("%s; events shown: %d", got, ui.events)
	}
}

// Without a terminal there is no mode that makes a UI.
func TestNoUIWithoutATerminal(t *testing.T) {
	for _, mode := range []string{progressAuto, progressPlain, progressJSON, progressTTY, "fancy"} {
		for _, use := range []useOfUI{noUI, workUI, replayUI} {
			renderer, err := openRenderer(streams{err: &bytes.Buffer{}, outIsTerminal: true}, face{mode: mode, use: use, now: time.Now})
			if _, isLate := renderer.(*lateUI); isLate || (err != nil) != (mode == progressTTY || mode == "fancy") {
				t.Errorf("%s, use %d: %T, %v", mode, use, renderer, err)
			}
		}
	}
}

// A panic ends the stream and the command as any other failure does.
func TestPanicEndsTheStream(t *testing.T) {
	var out, errs bytes.Buffer
	std := streams{out: &out, err: &errs, args: []string{"mpsforge", "broken", "--progress", "json"}}
	app := &cli.App{Name: "mpsforge",
		Commands: []*cli.Command{newCommand(std, spec{name: "broken", action: func(context.Context, call) (result, error) { panic("oh") }})}}
	require.Equal(t, exitCode(app.Run(std.args)), exitFailed, "exit code")
	lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], `"kind":"end"`) || !strings.Contains(lines[1], "panic: oh; this is a bug in mpsforge") {
		t.Errorf("%s", &errs)
	}
}
