package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mpsforge/internal/require"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// onTerminal is onTerminalIn an empty folder, so without a checkout.
func onTerminal(t *testing.T, args ...string) (command *exec.Cmd, terminal *os.File, shown func() string) {
	t.Helper()
	return onTerminalIn(t, t.TempDir(), args...)
}

// onTerminalIn starts the program, as TestMain has put it on the path, in a folder with a pseudo-terminal for everything and
// collects what it shows.
func onTerminalIn(t *testing.T, dir string, args ...string) (command *exec.Cmd, terminal *os.File, shown func() string) {
	t.Helper()
	command = exec.Command("mpsforge", args...)
	command.Dir = dir
	// As on a user's terminal; a CI's own variable would change what termenv does.
	command.Env = append(os.Environ(), "MPSFORGE_CACHE="+filepath.Join(t.TempDir(), "cache"), "TERM=xterm-256color", "CI=")
	terminal = require.One(pty.StartWithSize(command, &pty.Winsize{Rows: 30, Cols: 100}))(t)
	t.Cleanup(func() { terminal.Close() })
	var mutex sync.Mutex
	var screen bytes.Buffer
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := terminal.Read(buffer)
			mutex.Lock()
			screen.Write(buffer[:n])
			mutex.Unlock()
			if err != nil { // the program ended: Linux gives EIO then
				return
			}
		}
	}()
	return command, terminal, func() string {
		mutex.Lock()
		defer mutex.Unlock()
		return screen.String()
	}
}

// patience bounds waits for what must come: only a fault takes that long, however busy the machine.
const patience = 10 * time.Minute

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting: %s", what)
		}
	}
}

// TestCtrlCEndsAVerificationCleanly types Ctrl-C on a terminal while compiled checks run under the terminal UI.
func TestCtrlCEndsAVerificationCleanly(t *testing.T) {
	command, terminal, shown := onTerminal(t, "verify", "--stages", "reference")
	waitFor(t, "progress of the reference stage", func() bool {
		return strings.Contains(shown(), "verify reference") && strings.Contains(shown(), "checks")
	})
	require.One(io.WriteString(terminal, "\x03"))(t)
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("ended with %v, want exit code %d; it showed:\n%s", err, exitInterrupted, shown())
	}
	// the program may end before its last words are read from the terminal
	waitFor(t, "what was interrupted", func() bool {
		return strings.Contains(shown(), "mpsforge: verify was interrupted: stopped in stage ")
	})
	waitFor(t, "children to be gone", func() bool { return inSession(t, command.Process.Pid) == 0 })
	checkTerminalGivenBack(t, shown())
}

// checkTerminalGivenBack looks for what the UI must have turned off again, and for questions to the terminal, whose answers
// would be typed into the user's shell.
func checkTerminalGivenBack(t *testing.T, text string) {
	t.Helper()
	for _, mode := range []string{"?1049", "?25", "?2004"} { // the other screen, no cursor, pasted text in brackets
		on, off := "h", "l"
		if mode == "?25" {
			on, off = off, on
		}
		if last := strings.LastIndex(text, "\x1b["+mode+off); last < strings.LastIndex(text, "\x1b["+mode+on) || last < 0 {
			t.Errorf("mode %s of the terminal is left on:\n%q", mode, text)
		}
	}
	for _, question := range []string{"\x1b]1", "\x1b[6n", "\x1b[c", "\x1b[>", "\x1b[?u", "\x1bP+q"} {
		if strings.Contains(text, question) {
			t.Errorf("the terminal is asked %q:\n%q", question, text)
		}
	}
}

// freshSettings are those of a terminal that nobody has touched.
func freshSettings(t *testing.T) *unix.Termios {
	t.Helper()
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	return require.One(unix.IoctlGetTermios(int(slave.Fd()), termiosRequest))(t)
}

// TestUIGivesTheTerminalBack plays a recorded run on a terminal, tries keys and a new size, and leaves it as it was, with a
// summary on it.
func TestUIGivesTheTerminalBack(t *testing.T) {
	stream, err := filepath.Abs("../../internal/events/tui/testdata/apply.jsonl")
	require.NoError(t, err)
	command, terminal, shown := onTerminal(t, "replay", "--speed", "max", stream)
	before := freshSettings(t)
	waitFor(t, "the end of the stream", func() bool { return strings.Contains(shown(), "done") })
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 20, Cols: 70}))
	for _, key := range []string{"\r", "\x1b[B", "\x1b[A", "?", "x", "l", "l", "f", "f"} {
		time.Sleep(50 * time.Millisecond) // letters that come together are one key, which does nothing
		require.One(io.WriteString(terminal, key))(t)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	// On a busy machine a q may come together with what was typed before: it is typed until it is heard.
	waitFor(t, "the end", func() bool {
		select {
		case err = <-ended:
			return true
		default:
			_, _ = io.WriteString(terminal, "q") // fails when the program has just ended
			time.Sleep(200 * time.Millisecond)
			return false
		}
	})
	if err != nil {
		t.Fatalf("%v\n%q", err, shown())
	}
	waitFor(t, "the summary", func() bool { return strings.HasSuffix(shown(), "\r\n") })
	checkTerminalGivenBack(t, shown())
	after, err := unix.IoctlGetTermios(int(terminal.Fd()), termiosRequest)
	if err != nil || *after != *before {
		t.Errorf("the terminal's settings were %+v and are %+v, %v", before, after, err)
	}
	screens := strings.Split(shown(), "\x1b[?1049l")
	if summary := screens[len(screens)-1]; !strings.Contains(summary, "mpsforge apply") || !strings.Contains(summary, "patches: 13") {
		t.Errorf("what stays on the terminal: %q", summary)
	}
}

// The report of a run that is over is opened by a key, with the system's program for that.
func TestReportOpensFromTheUI(t *testing.T) {
	dir := t.TempDir()
	stream := filepath.Join(dir, "stream.jsonl")
	const events = `{"kind":"stream","time":"2026-11-21T12:00:00Z","event":{"version":2,"tool":"v1","command":"verify","args":[]}}
{"kind":"end","time":"2026-11-21T12:00:01Z","event":{"exit_code":0,"report":"/reports/out.html"}}
`
	require.NoError(t, os.WriteFile(stream, []byte(events), 0o644))
	for _, program := range []string{"xdg-open", "open"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\necho \"$1\" > '"+dir+"/opened'\n"), 0o755))
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	command, terminal, shown := onTerminal(t, "replay", "--speed", "max", stream)
	waitFor(t, "the end of the stream", func() bool { return strings.Contains(shown(), "done") })
	require.One(io.WriteString(terminal, "o"))(t)
	waitFor(t, "the report", func() bool { return strings.Contains(shown(), "opened /reports/out.html") })
	require.One(io.WriteString(terminal, "q"))(t)
	if err := command.Wait(); err != nil {
		t.Errorf("%v\n%s", err, shown())
	}
	waitFor(t, "the program that shows it", func() bool {
		opened, _ := os.ReadFile(filepath.Join(dir, "opened")) // it may begin late
		return string(opened) == "/reports/out.html\n"
	})
}

// TestKilledUIGivesTheTerminalBack kills the program while it draws.
func TestKilledUIGivesTheTerminalBack(t *testing.T) {
	stream := require.One(filepath.Abs("../../internal/events/tui/testdata/apply.jsonl"))(t)
	command, terminal, shown := onTerminal(t, "replay", "--speed", "0.001", stream)
	before := freshSettings(t)
	waitFor(t, "the UI", func() bool { return strings.Contains(shown(), "running") })
	waitFor(t, "raw mode", func() bool {
		now, err := unix.IoctlGetTermios(int(terminal.Fd()), termiosRequest)
		return err == nil && *now != *before
	})
	require.NoError(t, command.Process.Kill())
	if err := command.Wait(); err == nil {
		t.Error("it survived")
	}
	waitFor(t, "the terminal's settings", func() bool {
		now, err := unix.IoctlGetTermios(int(terminal.Fd()), termiosRequest)
		return err == nil && *now == *before && strings.Contains(shown(), "\x1b[?1049l")
	})
	checkTerminalGivenBack(t, shown())
}

// TestShortCommandsAskNothing runs a command that knows no UI, on a terminal that would answer.
func TestShortCommandsAskNothing(t *testing.T) {
	command, _, shown := onTerminal(t, "version")
	require.NoError(t, command.Wait())
	waitFor(t, "the version", func() bool { return strings.Contains(shown(), "go1") })
	if strings.Contains(shown(), "\x1b") {
		t.Errorf("%q", shown())
	}
}

// TestSignalTellsTheStatus sends SIGUSR1 to a command in each mode.
func TestSignalTellsTheStatus(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: the stage reference is started three times; go test -run '^TestSignalTellsTheStatus$' ./cmd/mpsforge")
	}
	for _, mode := range []string{"plain", "json", "tty"} {
		command, terminal, shown := onTerminal(t, "verify", "--stages", "reference", "--progress", mode)
		waitFor(t, "the reference stage", func() bool { return strings.Contains(shown(), "verify reference") })
		// The stage is named before it begins, and the status names what runs when the signal comes.
		waitFor(t, mode+": the status", func() bool {
			if err := command.Process.Signal(syscall.SIGUSR1); err != nil {
				t.Fatalf("%v; it showed:\n%s", err, shown())
			}
			time.Sleep(200 * time.Millisecond)
			return strings.Contains(shown(), "verify reference for ") && strings.Contains(shown(), "verify began")
		})
		require.One(io.WriteString(terminal, "\x03"))(t)
		var exit *exec.ExitError
		if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
			t.Errorf("%s: ended with %v", mode, err)
		}
	}
}

// inSession counts the processes of a terminal session; children leave the process group, but not the session.
func inSession(t *testing.T, session int) int {
	t.Helper()
	stats := require.One(filepath.Glob("/proc/[0-9]*/stat"))(t)
	if len(stats) == 0 {
		t.Log("SKIP count of children: there is no /proc here")
	}
	count := 0
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it ended in the meantime
		}
		// "pid (name) state ppid pgrp session ..."; the name may hold anything but ends with the last parenthesis.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 3 && fields[3] == strconv.Itoa(session) && fields[0] != "Z" {
			count++
		}
	}
	return count
}

// TestStatusLineIsTakenAway looks at what a terminal shows in the end: no half line, no colour.
func TestStatusLineIsTakenAway(t *testing.T) {
	command, _, shown := onTerminal(t, "lint", "--progress", "tty")
	if err := command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, shown())
	}
	waitFor(t, "the last line", func() bool { return strings.Contains(shown(), "errors: 0") })
	require.Contains(t, shown(), "lint v2.9.1 …\r\x1b[Klint v2.9.1: ok", "the status line is not written over")
	if strings.Contains(shown(), "\x1b[3") {
		t.Errorf("colours are shown:\n%q", shown())
	}
}

// On a terminal a command ends with the one that is mostly run then; elsewhere nobody asked.
func TestNextCommandIsNamedOnATerminal(t *testing.T) {
	command, _, shown := onTerminal(t, "cache")
	if err := command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, shown())
	}
	waitFor(t, "the last line", func() bool { return strings.Contains(shown(), "next: mpsforge cache clean --dry-run") })
}

// The bell rings at the end of long work where a flag or the file of settings asks for it.
func TestBellRingsWhereAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		flags    []string
		want     int
	}{"by default": {"", nil, 0}, "by a flag": {"", []string{"--bell"}, 1}, "by the settings": {"bell = true\n", nil, 1},
		"by the settings, and not by a flag": {"bell = true\n", []string{"--bell=false"}, 0}} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, settingsFile), []byte(c.settings), 0o644))
		command, _, shown := onTerminalIn(t, dir, append([]string{"verify", "--stages", "series", "--progress", "plain"}, c.flags...)...)
		if err := command.Wait(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, shown())
		}
		waitFor(t, "the last line", func() bool { return strings.Contains(shown(), "all of it: ") })
		require.Equal(t, strings.Count(shown(), "\a"), c.want, name, "bells")
	}
}
