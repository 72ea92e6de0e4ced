package tui

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"mpsforge/internal/events"
	"mpsforge/internal/events/tui/unasked"
)

func init() { unasked.Done() }

const (
	tickInterval  = 125 * time.Millisecond // of clocks and spinners
	batchInterval = 40 * time.Millisecond  // between two looks at new events
)

// Terminal is where a UI runs.
type Terminal struct {
	Output *os.File
	Input  *os.File         // where keys come from; nil: no keys
	Now    func() time.Time // the stream's clock
	Leave  <-chan struct{}  // closed when the command is asked to end
	// Fallback takes over should the UI fail: a mistake in it must not end the work.
	Fallback events.Renderer
}

// UI is the running terminal UI, a renderer.
type UI struct {
	terminal Terminal
	program  *tea.Program
	ended    chan struct{} // closed when the program has given the terminal back
	last     Model
	failure  error
	told     bool
}

// Start takes the terminal over. Only call it for one.
func Start(terminal Terminal, o Options) *UI {
	u := &UI{terminal: terminal, ended: make(chan struct{})}
	options := []tea.ProgramOption{tea.WithOutput(terminal.Output), tea.WithAltScreen(), tea.WithoutSignalHandler()}
	if terminal.Input != nil {
		options = append(options, tea.WithInput(terminal.Input))
	} else {
		options = append(options, tea.WithInput(nil))
	}
	u.program = tea.NewProgram(guarded{Model: New(o), failure: &u.failure}, options...)
	release := guard(terminal.Output)
	go func() {
		defer close(u.ended)
		defer release()
		final, err := u.program.Run()
		if model, ok := final.(guarded); ok {
			u.last = model.Model
		}
		if u.failure == nil {
			u.failure = err
		}
	}()
	go func() {
		ticker := time.NewTicker(tickInterval)
		defer ticker.Stop()
		leave := terminal.Leave
		for {
			select {
			case <-u.ended:
				return
			case <-leave:
				leave = nil // once is enough
				u.program.Send(leaving{})
			case <-ticker.C:
				u.program.Send(tick(terminal.Now()))
			}
		}
	}()
	return u
}

// Show hands the events on.
func (u *UI) Show(records []events.Record) {
	select {
	case <-u.ended:
		u.fallBack(records)
	default:
		u.program.Send(batch(records))
		time.Sleep(batchInterval)
	}
}

func (u *UI) fallBack(records []events.Record) {
	if !u.told && u.failure != nil {
		u.told = true
		warning := events.Message{Level: events.Warning,
			Text: fmt.Sprintf("the terminal UI failed, and plain lines take its place; please report this: %v", u.failure)}
		u.terminal.Fallback.Show([]events.Record{{Time: records[0].Time, Event: warning}})
	}
	u.terminal.Fallback.Show(records)
}

// Close gives the terminal back and leaves the summary on it.
func (u *UI) Close() {
	u.program.Send(closing{})
	<-u.ended
	if u.failure == nil {
		fmt.Fprint(u.terminal.Output, u.last.Summary())
		if u.last.opening {
			fmt.Fprintln(u.terminal.Output, u.last.openReport()())
		}
	}
	u.terminal.Fallback.Close()
}

// guarded ends the program when the model panics, and keeps the reason.
type guarded struct {
	Model
	failure *error
}

func (g guarded) Update(message tea.Msg) (model tea.Model, command tea.Cmd) {
	defer func() {
		if found := recover(); found != nil {
			*g.failure = fmt.Errorf("%v\n%s", found, debug.Stack())
			model, command = g, tea.Quit
		}
	}()
	next, command := g.Model.Update(message)
	g.Model = next.(Model)
	return g, command
}

func (g guarded) View() (frame string) {
	defer func() {
		if found := recover(); found != nil {
			*g.failure = fmt.Errorf("%v\n%s", found, debug.Stack())
			frame = "the terminal UI failed; press a key"
		}
	}()
	return g.Model.View()
}
