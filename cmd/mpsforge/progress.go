package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"mpsforge/internal/events"
	"mpsforge/internal/events/tui"
	"mpsforge/internal/suggest"
	"mpsforge/internal/words"
)

// The faces of the event stream, as --progress names them. Auto is the terminal UI where standard output and standard error
// are terminals, and plain lines elsewhere.
const (
	progressAuto  = "auto"
	progressTTY   = "tty"
	progressPlain = "plain"
	progressJSON  = "json"
)

// uiDelay is how long a command works before the terminal UI takes the terminal: what is done by then is reported in lines.
const uiDelay = 300 * time.Millisecond

// useOfUI says how a command uses the terminal UI.
type useOfUI int

const (
	noUI     useOfUI = iota // it is done in a moment
	workUI                  // it may take long
	replayUI                // it shows a stream of another command
)

// face is what openRenderer needs to know of a command.
type face struct {
	mode  string
	quiet bool
	use   useOfUI
	now   func() time.Time
	leave <-chan struct{} // closed when the command is asked to end
	// interrupt is what Ctrl-C does, quit what q does.
	interrupt, quit func()
}

// openRenderer makes the face that --progress asks for. A terminal UI is never made without a terminal.
func openRenderer(std streams, f face) (events.Renderer, error) {
	switch f.mode {
	case progressJSON:
		return events.NewJSON(std.err), nil
	case progressTTY:
		if std.errTerminal == nil {
			return nil, usagef("--progress tty needs standard error to be a terminal; use auto, plain or json")
		}
	case progressAuto:
		// Taking the terminal from behind another program would stop this one.
		if !std.outIsTerminal || std.errTerminal == nil || !inForeground(std.errTerminal) || os.Getenv("TERM") == "dumb" {
			f.mode = progressPlain
		}
	case progressPlain:
	default:
		return nil, usagef("--progress %s: use auto, tty, plain or json%s", f.mode,
			suggest.Meant(f.mode, []string{progressAuto, progressTTY, progressPlain, progressJSON}))
	}
	if f.quiet || f.mode == progressPlain {
		return events.NewPlain(std.err, f.quiet), nil
	}
	if f.use == noUI {
		return events.NewLive(std.err), nil
	}
	late := &lateUI{plain: events.NewPlain(std.err, false)}
	late.start = func() events.Renderer {
		terminal := tui.Terminal{Output: std.errTerminal, Now: f.now, Leave: f.leave, Fallback: late.plain}
		if term.IsTerminal(int(os.Stdin.Fd())) {
			terminal.Input = os.Stdin
		}
		return tui.Start(terminal, tui.Options{Colours: words.Colours(), Interrupt: f.interrupt, Quit: f.quit, Show: open, Stay: f.use == replayUI &&
			terminal.Input != nil})
	}
	if f.use == replayUI {
		return late.start(), nil
	}
	late.timer = time.AfterFunc(uiDelay, late.due)
	return late, nil
}

// inForeground reports whether the terminal is this process group's to use.
func inForeground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// lateUI holds events back until a step has begun and uiDelay is over, and starts the UI then. If all is over before, they
// are reported in plain lines.
type lateUI struct {
	plain events.Renderer
	start func() events.Renderer
	timer *time.Timer

	mutex   sync.Mutex // guards the rest
	held    []events.Record
	began   bool // a step
	isDue   bool
	running events.Renderer
}

func (l *lateUI) Show(records []events.Record) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.running == nil {
		l.held = append(l.held, records...)
		for _, record := range records {
			if _, begins := record.Event.(events.StepStarted); begins {
				l.began = true
			}
		}
		l.startDue()
		return
	}
	l.running.Show(records)
}

func (l *lateUI) due() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.isDue = true
	l.startDue()
}

func (l *lateUI) startDue() {
	if l.isDue && l.began && l.running == nil {
		l.running = l.start()
		l.running.Show(l.held)
		l.held = nil
	}
}

func (l *lateUI) Close() {
	l.timer.Stop()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.running == nil {
		l.running = l.plain
		l.running.Show(l.held)
	}
	l.running.Close()
}

// showStatus makes SIGUSR1, and SIGINFO (Ctrl-T) where there is one, print the status, until the returned function is called.
func showStatus(feed *events.Feed) (stop func()) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, statusSignals...)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			select {
			case <-asked:
				feed.Status()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		signal.Stop(asked)
		cancel()
	}
}
