package events_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
)

// start is when the streams of these tests begin.
var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// at makes records of events, each with its seconds since the start.
func at(pairs ...any) []events.Record {
	var records []events.Record
	for i := 0; i < len(pairs); i += 2 {
		seconds := pairs[i].(float64)
		records = append(records, events.Record{Time: start.Add(time.Duration(seconds * float64(time.Second))), Event: pairs[i+1].(events.Event)})
	}
	return records
}

// one of each kind, as a small apply would send them.
func small() []events.Record {
	slots, streams := events.Part{Step: "apply", Name: "slots"}, events.Part{Step: "apply", Subject: "stock", Name: "streams", Column: "4 threads"}
	return at(
		0.0, events.Stream{Version: events.Version, Tool: "test", Command: "apply", Args: []string{"--quiet"}},
		0.0, events.Pipeline{Steps: []string{"apply", "check"}},
		0.1, events.StepStarted{Step: "apply"},
		0.1, events.PartsPlanned{Step: "apply", Names: []string{"slots"}},
		0.1, events.StepProgress{Step: "apply", Done: 1, Total: 3, Unit: "patches", Note: "slots"},
		0.2, events.PartStarted{Part: slots},
		0.3, events.PartFinished{Part: slots, Outcome: events.OK, Elapsed: time.Second},
		0.4, events.PartFinished{Part: streams, Outcome: events.Crashed, Expected: true, Signature: "4 uncommitted-encoder"},
		0.5, events.PartFinished{Part: streams, Outcome: events.WrongValues, Detail: "3 of 7"},
		0.6, events.StepLine{Step: "apply", Text: "a program's words"},
		0.7, events.Message{Level: events.Info, Text: "for information"},
		0.8, events.Message{Level: events.Warning, Text: "mind this"},
		1.5, events.StepFinished{Step: "apply", Outcome: events.OK, Detail: "3 patches", Elapsed: 1500 * time.Millisecond},
		1.6, events.End{ExitCode: 1, Message: "no"},
	)
}

func show(renderer events.Renderer, out *bytes.Buffer, records []events.Record) string {
	renderer.Show(records)
	renderer.Close()
	return out.String()
}

// Whole lines with the time since the start, no escape codes. What goes on well and often is thinned out.
func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	want := ` 0:00.5 apply: streams, stock, 4 threads: wrong values: 3 of 7
 0:00.7 for information
 0:00.8 warning: mind this
 0:01.5 apply: ok, 3 patches (1.5 s)
`
	require.Equal(t, show(events.NewPlain(&out, false), &out, small()), want)
}

// A step that takes long reports how far it is every two seconds, not at every event.
func TestPlainProgressIsThinnedOut(t *testing.T) {
	var out bytes.Buffer
	var pairs []any
	pairs = append(pairs, 0.0, events.StepStarted{Step: "compile"})
	for i := range 700 {
		pairs = append(pairs, float64(i)/100, events.StepProgress{Step: "compile", Done: int64(i), Total: 1000, Unit: "commands", Running: 2,
			Left: 90 * time.Second})
	}
	want := ` 0:02.0 compile: 200/1000 commands, 2 running, 1:30 left
 0:04.0 compile: 400/1000 commands, 2 running, 1:30 left
 0:06.0 compile: 600/1000 commands, 2 running, 1:30 left
`
	require.Equal(t, show(events.NewPlain(&out, false), &out, at(pairs...)), want)
}

// A step with a total has the time left, at the speed so far, where it does not reckon it itself.
func TestPlainProgressHasTheTimeLeft(t *testing.T) {
	var out bytes.Buffer
	records := at(0.0, events.StepStarted{Step: "verify python"}, 30.0, events.StepProgress{Step: "verify python", Done: 10, Total: 40, Unit: "processes"},
		60.0, events.StepProgress{Step: "never started", Done: 1, Total: 2})
	want := " 0:30.0 verify python: 10/40 processes, 1:30 left\n 1:00.0 never started: 1/2\n"
	require.Equal(t, show(events.NewPlain(&out, false), &out, records), want)
}

func TestQuietKeepsWarnings(t *testing.T) {
	var out bytes.Buffer
	require.Equal(t, show(events.NewPlain(&out, true), &out, small()), "warning: mind this\n")
}

// On a terminal a live line is shown, and removed before anything else is written.
func TestLiveLine(t *testing.T) {
	var out bytes.Buffer
	got := show(events.NewLive(&out), &out, small())
	if !strings.HasPrefix(got, "apply …\r\x1b[K") || !strings.Contains(got, "\r\x1b[Kapply: streams, stock, 4 threads: wrong values: 3 of 7\n") ||
		strings.HasSuffix(got, "\x1b[K") {
		t.Errorf("%q", got)
	}
}

// What others have named or written cannot command the terminal.
func TestForeignTextIsMadeHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                        "plain",
		"\x1b[31mred\x1b[0m":           "red",
		"\x1b]0;title\aafter":          "after",
		"\x1b]8;;http://x\x1b\\link":   "link",
		"a\tb\nc\rd\x08":               "a b cd",
		"end\x1b":                      "end",
		"cut\x1b[12":                   "cut",
		"bad \xff byte":                "bad � byte",
		"\u202eturned":                 "turned",
		"ünïcödé … ✓ 汉":                "ünïcödé … ✓ 汉",
		"c1 \u009b31m is control, too": "c1 31m is control, too",
	} {
		require.Equal(t, events.Clean(text), want, text)
	}
}
