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
	"testing"
	"time"

	"github.com/creack/pty"
)

// onTerminal starts the real binary with a pseudo-terminal for everything and collects what it shows.
func onTerminal(t *testing.T, args ...string) (command *exec.Cmd, terminal *os.File, shown func() string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "mpsforge")
	if output, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	command = exec.Command(binary, args...)
	command.Env = append(os.Environ(), "MPSFORGE_CACHE="+filepath.Join(t.TempDir(), "cache"))
	terminal, err := pty.Start(command)
	if err != nil {
		t.Fatal(err)
	}
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

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting: %s", what)
		}
	}
}

// TestCtrlCEndsAVerificationCleanly types Ctrl-C on a terminal while compiled checks run.
func TestCtrlCEndsAVerificationCleanly(t *testing.T) {
	command, terminal, shown := onTerminal(t, "verify", "--stages", "reference", "--checkout", filepath.Join(t.TempDir(), "nowhere"))
	waitFor(t, "progress of the reference stage", func() bool { return strings.Contains(shown(), "verify reference: ") })
	if _, err := io.WriteString(terminal, "\x03"); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("ended with %v, want exit code %d; it showed:\n%s", err, exitInterrupted, shown())
	}
	// the program may end before its last words are read from the terminal
	waitFor(t, "mpsforge: verify was interrupted", func() bool { return strings.Contains(shown(), "mpsforge: verify was interrupted") })
	waitFor(t, "children to be gone", func() bool { return inSession(t, command.Process.Pid) == 0 })
}

// inSession counts the processes of a terminal session; children leave the process group, but not the session.
func inSession(t *testing.T, session int) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
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
	if !strings.Contains(shown(), "lint v2.9.1 …\r\x1b[Klint v2.9.1: ok") {
		t.Errorf("the status line is not written over:\n%q", shown())
	}
	if strings.Contains(shown(), "\x1b[3") {
		t.Errorf("colours are shown:\n%q", shown())
	}
}
