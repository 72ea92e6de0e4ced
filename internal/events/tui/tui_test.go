package tui

import (
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/words"
)

var update = flag.Bool("update", false, "write the golden frames anew")

// recorded gives a stream that a real run has written: apply.jsonl and fetch.jsonl whole, runtime.jsonl.gz the first part of
// "verify --quick --stages runtime,python" on PyTorch 2.6.0.
func recorded(t *testing.T, name string) []events.Record {
	t.Helper()
	file := require.One(os.Open(filepath.Join("testdata", name)))(t)
	defer file.Close()
	text := io.Reader(file)
	if strings.HasSuffix(name, ".gz") {
		text = require.One(gzip.NewReader(file))(t)
	}
	reader := events.NewReader(text)
	var records []events.Record
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return records
		}
		require.NoError(t, err)
		records = append(records, record)
	}
}

// none is the palette of a terminal without colours.
var none words.Palette

// palettes are the others, by name.
func palettes(t *testing.T) map[string]words.Palette {
	all := map[string]words.Palette{}
	for name, settings := range map[string][2]string{"16-colours": {"xterm", "dark"}, "256-colours": {"xterm-256color", "dark"},
		"light": {"xterm-256color", "light"}} {
		t.Setenv("NO_COLOR", "")
		t.Setenv("COLORTERM", "")
		t.Setenv("TERM", settings[0])
		t.Setenv("MPSFORGE_THEME", settings[1])
		all[name] = words.Colours()
	}
	return all
}

// screen is a model on a terminal of a size.
func screen(width, height int, colours words.Palette, records []events.Record) Model {
	return send(New(Options{Colours: colours}), tea.WindowSizeMsg{Width: width, Height: height}, batch(records))
}

func send(m Model, messages ...tea.Msg) Model {
	for _, message := range messages {
		next, _ := m.Update(message)
		m = next.(Model)
	}
	return m
}

// press types keys, by their names.
func press(m Model, keys ...string) Model {
	special := map[string]tea.KeyType{"up": tea.KeyUp, "down": tea.KeyDown, "enter": tea.KeyEnter, "esc": tea.KeyEsc, "pgup": tea.KeyPgUp, "end": tea.KeyEnd,
		"home": tea.KeyHome, "ctrl+c": tea.KeyCtrlC, "backspace": tea.KeyBackspace}
	for _, key := range keys {
		message := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(key)}
		if kind, found := special[key]; found {
			message = tea.KeyMsg{Type: kind}
		}
		m = send(m, message)
	}
	return m
}

// start is when the streams that tests write themselves begin.
var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// stream gives events a time: a second for each.
func stream(all ...events.Event) []events.Record {
	var records []events.Record
	for i, event := range all {
		records = append(records, events.Record{Time: start.Add(time.Duration(i) * time.Second), Event: event})
	}
	return records
}

// later is a stream's end, so long after its start.
func later(after time.Duration, all ...events.Event) []events.Record {
	records := stream(all...)
	for i := range records {
		records[i].Time = records[i].Time.Add(after)
	}
	return records
}

// failing is a verification that goes wrong: a step inside a step, lists and grids, each outcome, a program's output, foreign
// escape codes.
func failing() []events.Record {
	part := func(subject, name, column string) events.Part {
		return events.Part{Step: "verify runtime", Subject: subject, Name: name, Column: column}
	}
	end := func(p events.Part, outcome events.StepOutcome, expected bool, signature, detail string) events.Event {
		return events.PartFinished{Part: p, Outcome: outcome, Expected: expected, Signature: signature, Detail: detail, Elapsed: 2500 * time.Millisecond}
	}
	return stream(
		events.Stream{Version: events.Version, Tool: "test", Command: "verify", Args: []string{"--stages", "runtime,python"}},
		events.Pipeline{Steps: []string{"verify runtime", "verify python"}},
		events.StepStarted{Step: "verify runtime"},
		events.StepStarted{Step: "build stock, plain", Parent: "verify runtime"},
		events.StepLine{Step: "build stock, plain", Text: "\x1b[31mwarning:\x1b[0m a compiler's\twords"},
		events.StepFinished{Step: "build stock, plain", Outcome: events.OK, Elapsed: 2 * time.Second},
		events.PartsPlanned{Step: "verify runtime", Subject: "stock, plain", Names: []string{"linear", "items", "fork"},
			Columns: []string{"1 thread", "4 threads"}},
		events.PartsPlanned{Step: "verify runtime", Subject: "patched, plain", Names: []string{"linear", "items", "fork"},
			Columns: []string{"1 thread", "4 threads"}},
		events.PartStarted{Part: part("patched", "values: op-add", "")},
		end(part("patched", "values: op-add", ""), events.OK, false, "", "values compared with the CPU: 44"),
		end(part("stock, plain", "linear", "1 thread"), events.OK, false, "", ""),
		end(part("stock, plain", "linear", "4 threads"), events.Crashed, true, "5 second-encoder",
			"died by signal aborted: A command encoder is already encoding to this command buffer"),
		end(part("patched, plain", "linear", "1 thread"), events.OK, false, "", ""),
		end(part("patched, plain", "linear", "4 threads"), events.WrongValues, false, "",
			"wrong values: 3 of 440, the first: thread 2, round 7: expected 1.5, found 0"),
		end(part("stock, plain", "items", "1 thread"), events.Skipped, false, "", "no kernel"),
		end(part("patched, plain", "items", "4 threads"), events.Hung, false, "", "hung: not done after 3m0s"),
		events.Message{Level: events.Warning, Text: "mind this"},
		events.StepProgress{Step: "verify runtime", Done: 6, Total: 12, Unit: "processes", Note: "fork, patched"},
		events.PartStarted{Part: part("patched, plain", "fork", "1 thread")},
	)
}

// compare compares a frame with its golden file; escape codes are written as ␛ there.
func compare(t *testing.T, name, frame string) {
	t.Helper()
	path := filepath.Join("testdata", "frames", name+".txt")
	got := strings.ReplaceAll(frame, "\x1b", "␛") + "\n"
	if *update {
		require.File(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./internal/events/tui -update writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}

// Frames as they were when somebody looked at them and found them good.
func TestFrames(t *testing.T) {
	apply, fetch, runtime := recorded(t, "apply.jsonl"), recorded(t, "fetch.jsonl"), recorded(t, "runtime.jsonl.gz")
	for _, size := range [][2]int{{40, 20}, {60, 15}, {80, 24}, {200, 50}} {
		named := func(name string) string { return fmt.Sprintf("%s-%dx%d", name, size[0], size[1]) }
		plain := func(records []events.Record) Model { return screen(size[0], size[1], none, records) }
		compare(t, named("apply"), plain(apply[:len(apply)/2]).View())
		compare(t, named("fetch"), plain(fetch[:80]).View())
		compare(t, named("build"), plain(runtime[:120]).View())
		compare(t, named("runtime"), plain(runtime[:700]).View())
		compare(t, named("failing"), plain(failing()).View())
		compare(t, named("help"), press(plain(failing()), "?").View())
	}
	for name, colours := range palettes(t) {
		compare(t, "failing-"+name, screen(80, 24, colours, failing()).View())
	}
	m := screen(80, 24, none, failing())
	compare(t, "parts", press(m, "up", "enter").View())
	compare(t, "detail", press(m, "home", "enter", "home", "down", "enter").View())
	compare(t, "log", press(m, "l").View())
	compare(t, "failures-only", press(m, "f").View())
	compare(t, "filter", press(m, "/", "i", "t", "e", "m", "s").View())
	compare(t, "nothing-found", press(m, "/", "x", "y", "z", "enter").View())
	compare(t, "asking", press(m, "q").View())
	compare(t, "stopping", press(m, "q", "y").View())
	compare(t, "too-small", screen(39, 10, none, failing()).View())
	ended := append(failing(), later(time.Minute, events.StepFinished{Step: "verify runtime", Outcome: events.Failed, Detail: "linear: wrong values",
		Elapsed: time.Minute}, events.End{ExitCode: 4, Message: "verification failed"})...)
	compare(t, "ended", screen(80, 24, none, ended).View())
	compare(t, "summary", screen(80, 24, none, ended).Summary())
	compare(t, "summary-runtime", screen(80, 24, none, runtime).Summary())
}

// At any size, after any event, in any pane: as many lines as the terminal has, none wider than it, and nothing in them that
// a stream has smuggled in.
func TestFramesFit(t *testing.T) {
	for name, records := range map[string][]events.Record{"failing": failing(), "runtime": recorded(t, "runtime.jsonl.gz"),
		"fetch": recorded(t, "fetch.jsonl")} {
		for _, size := range [][2]int{{1, 1}, {20, 5}, {40, 15}, {60, 15}, {61, 16}, {80, 24}, {100, 17}, {119, 60}, {120, 15}, {200, 50}} {
			for at := 0; at <= len(records); at += max(1, len(records)/9) {
				m := screen(size[0], size[1], none, records[:at])
				for _, keys := range [][]string{nil, {"?"}, {"l"}, {"enter"}, {"enter", "enter"}, {"home", "enter", "end", "enter", "end"}, {"f"},
					{"/", "e"}, {"q"}, {"end", "down", "enter"}} {
					frame := press(m, keys...).View()
					lines := strings.Split(frame, "\n")
					if want := size[1]; len(lines) != want && (size[0] >= leastWidth && size[1] >= leastHeight || len(lines) != 1) {
						t.Fatalf("%s, %v, event %d, keys %v: %d lines\n%s", name, size, at, keys, len(lines), frame)
					}
					for _, line := range lines {
						if ansi.StringWidth(line) > size[0] || strings.ContainsAny(line, "\x1b\t\r") {
							t.Fatalf("%s, %v, event %d, keys %v: %q is %d wide", name, size, at, keys, line, ansi.StringWidth(line))
						}
					}
				}
			}
		}
	}
}

// What colours show is in the text, too: a frame has the same text with and without.
func TestColoursAddNoText(t *testing.T) {
	records := recorded(t, "runtime.jsonl.gz")[:700]
	plain := screen(120, 40, none, records).View()
	for _, colours := range palettes(t) {
		coloured := screen(120, 40, colours, records).View()
		var text []string
		for line := range strings.SplitSeq(ansi.Strip(coloured), "\n") {
			text = append(text, strings.TrimRight(line, " "))
		}
		if got := strings.Join(text, "\n"); coloured == plain || got != plain {
			t.Errorf("colours %v:\n%s\nplain:\n%s", colours, got, plain)
		}
	}
}

// q asks while work is under way; only y stops it, and the UI waits for the end.
func TestQuitAsks(t *testing.T) {
	quits, interrupts := 0, 0
	m := New(Options{Quit: func() { quits++ }, Interrupt: func() { interrupts++ }})
	m = send(m, tea.WindowSizeMsg{Width: 80, Height: 24}, batch(failing()))
	key := func(text string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text)} }
	run := func(m Model, message tea.Msg) (Model, tea.Msg) {
		next, command := m.Update(message)
		if command == nil {
			return next.(Model), nil
		}
		return next.(Model), command()
	}
	m, _ = run(m, key("q"))
	m, _ = run(m, key("n"))
	if m.asking || m.stopping || quits != 0 {
		t.Errorf("after q and n: %+v, %d", m.asking, quits)
	}
	m, _ = run(m, key("q"))
	m, told := run(m, key("y"))
	if !m.stopping || quits != 1 || told != nil {
		t.Errorf("after q and y: stopping %t, quit called %d times, %v", m.stopping, quits, told)
	}
	if _, told = run(m, closing{}); told != (tea.QuitMsg{}) {
		t.Errorf("at the stream's end: %v", told)
	}
	m, told = run(m, tea.KeyMsg{Type: tea.KeyCtrlC})
	if interrupts != 1 || told != nil {
		t.Errorf("after ctrl-c: interrupted %d times, %v", interrupts, told)
	}
	m = send(m, batch(stream(events.End{ExitCode: 130})))
	if _, told = run(m, key("q")); told != (tea.QuitMsg{}) {
		t.Errorf("q after the end: %v", told)
	}
}

// The report is opened as soon as it is there: during the work the key says that it is wanted, and says so no more.
func TestReportKey(t *testing.T) {
	var shown []string
	problem := error(nil)
	m := New(Options{Stay: true, Show: func(path string) error {
		shown = append(shown, path)
		return problem
	}})
	m = send(m, tea.WindowSizeMsg{Width: 100, Height: 24}, batch(failing()))
	require.Contains(t, press(m, "o").View(), "opens the report at the end", "o during the work")
	if press(m, "o", "o").opening {
		t.Error("a second o does not take it back")
	}
	end := batch(later(time.Minute, events.End{Report: "/reports/out.html"}))
	next, command := press(m, "o").Update(end)
	if command == nil {
		t.Fatal("nothing is opened at the end")
	}
	if frame := send(next.(Model), command()).View(); !slices.Equal(shown, []string{"/reports/out.html"}) ||
		!strings.Contains(frame, "opened /reports/out.html") {
		t.Errorf("opened %q:\n%s", shown, frame)
	}
	problem = errors.New("there is no xdg-open here; it is /reports/out.html")
	_, command = send(m, end).Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("o")})
	if frame := send(m, end, command()).View(); len(shown) != 2 || !strings.Contains(frame, problem.Error()) {
		t.Errorf("opened %q:\n%s", shown, frame)
	}
	for _, none := range []string{"", "/tmp/report.desktop"} {
		ended := send(m, batch(later(time.Minute, events.End{Report: none})))
		_, command = ended.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("o")})
		if frame := send(ended, command()).View(); len(shown) != 2 || !strings.Contains(frame, "this run has no report") {
			t.Errorf("opened %q:\n%s", shown, frame)
		}
	}
}

// Where not all subjects fit beside each other, stock and patched do, for each flavour.
func TestStockIsBesidePatched(t *testing.T) {
	var all []events.Event
	for _, subject := range []string{"stock, plain", "patched, plain", "stock, tsan", "patched, tsan"} {
		all = append(all, events.PartsPlanned{Step: "verify runtime", Subject: subject, Names: []string{"sequential-shared"},
			Columns: []string{"1 thread", "4 threads", "33 threads"}})
	}
	for width, want := range map[int]string{
		100: "             stock, plain  patched, plain  stock, tsan   patched, tsan\n threads ",
		70:  "\n plain               stock         patched\n  sequential-shared ",
		40:  "\n stock, plain\n  sequential-shared ",
	} {
		require.Contains(t, screen(width, 24, none, stream(all...)).View(), want, width, "wide")
	}
}

// A replay's UI stays at the end until q.
func TestReplayStays(t *testing.T) {
	m := New(Options{Stay: true})
	next, command := send(m, tea.WindowSizeMsg{Width: 80, Height: 24}, batch(failing())).Update(closing{})
	if command != nil {
		t.Error("the UI left at the end of a replay")
	}
	require.Contains(t, next.View(), "cut off", "a stream without end is not distinguished from one that goes on")
	if _, command = next.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q")}); command == nil {
		t.Error("q does not leave")
	}
}

// The UI looks at what runs, until the user chooses something, and again after esc.
func TestFollowing(t *testing.T) {
	records := recorded(t, "runtime.jsonl.gz")
	m := screen(80, 24, none, records[:120])
	if got := m.current().Name; !strings.HasPrefix(got, "build ") {
		t.Errorf("follows %q while a build runs", got)
	}
	m = press(m, "home")
	m = send(m, batch(records[120:700]))
	require.Equal(t, m.current().Name, "verify runtime", "left the chosen step for")
	m = press(m, "esc")
	if m.chosen != nil || m.current().Phase != events.Running {
		t.Errorf("esc does not go back to following: %+v", m.current())
	}
}

// Filters hide rows and log lines; backspace and esc correct and end them.
func TestFilter(t *testing.T) {
	m := screen(80, 24, none, failing())
	if got := len(press(m, "f").rows()); got != 2 {
		t.Errorf("%d rows are bad news, want linear and items", got)
	}
	typed := press(m, "/", "f", "o", "r", "x", "backspace", "enter")
	if rows := typed.rows(); len(rows) != 1 || rows[0].name != "fork" || typed.filter != "for" {
		t.Errorf("filter %q: %+v", typed.filter, rows)
	}
	if cleared := press(typed, "esc"); cleared.filter != "" || len(cleared.rows()) != 4 {
		t.Errorf("esc keeps the filter %q", cleared.filter)
	}
	if lines := press(m, "f").logLines(); len(lines) != 3 {
		t.Errorf("bad news in the log: %+v", lines)
	}
}

// A mistake in the UI ends the UI, not the work.
func TestPanicIsCaught(t *testing.T) {
	var failure error
	broken := guarded{Model: New(Options{}), failure: &failure}
	broken.state = nil
	if _, command := broken.Update(batch(failing())); failure == nil || command == nil {
		t.Errorf("failure %v", failure)
	}
}

// What stays on the terminal says how the command ended, such as how many stages of a verification ran.
func TestSummaryHasTheConclusion(t *testing.T) {
	records := later(0, events.Stream{Version: events.Version, Command: "verify"}, events.StepStarted{Step: "verify series"},
		events.StepFinished{Step: "verify series", Outcome: events.OK}, events.End{Message: "verification passed 1 of 8 stages; report: out.json"})
	require.Contains(t, screen(80, 24, none, records).Summary(), "\n  verification passed 1 of 8 stages; report: out.json\n")
}
