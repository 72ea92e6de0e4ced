package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"

	"github.com/creack/pty"
)

// On a terminal a report is text, in colour unless NO_COLOR is set; a form that is named is kept.
func TestReportOnATerminal(t *testing.T) {
	const file = "../../reports/testdata/python.json"
	for name, c := range map[string]struct {
		noColor, term string
		args          []string
		want, lack    string
	}{
		"in colour": {"", "xterm", []string{file}, "\x1b[32mmpsforge: ✓ Stock crashed in 15 of 15 Python tests; patched passed 15 of these", "###"},
		"NO_COLOR":  {"1", "xterm", []string{file}, "mpsforge: ✓ Stock crashed in 15 of 15 Python tests; patched passed 15 of these", "\x1b"},
		"asked for": {"", "xterm", []string{"--format", "text", file},
			"\x1b[32mmpsforge: ✓ Stock crashed in 15 of 15 Python tests; patched passed 15 of these", "###"},
		"another form": {"", "xterm", []string{"--format", "markdown", file},
			"### mpsforge: ✓ Stock crashed in 15 of 15 Python tests; patched passed 15 of these", "\x1b"},
		"a dumb screen": {"", "dumb", []string{file}, "mpsforge: ✓ Stock crashed in 15 of 15 Python tests; patched passed 15 of these", "\x1b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", c.noColor)
			t.Setenv("TERM", c.term)
			shown := onPty(t, append([]string{"mpsforge", "report"}, c.args...))
			if !strings.Contains(shown, c.want) || strings.Contains(shown, c.lack) {
				t.Errorf("lacks %q or has %q:\n%.600q", c.want, c.lack, shown)
			}
		})
	}
}

// onPty runs a command line within this process, with a terminal as its standard output, and gives what that shows.
func onPty(t *testing.T, args []string) string {
	t.Helper()
	screen, terminal, err := pty.Open()
	require.NoError(t, err)
	defer screen.Close()
	const end = "the end of this test"
	shown := make(chan string)
	go func() {
		var text strings.Builder
		buffer := make([]byte, 4096)
		for !strings.Contains(text.String(), end) {
			n, err := screen.Read(buffer)
			text.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		shown <- text.String()
	}()
	code := execute(t.Context(), args, streams{out: terminal, outIsTerminal: true, err: io.Discard})
	require.One(io.WriteString(terminal, end))(t)
	if code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	select {
	case text := <-shown:
		return text
	case <-time.After(patience):
		t.Fatal("the terminal shows nothing")
		return ""
	}
}
