package main

import (
	"strings"
	"testing"
)

// On a terminal a report is text, in colour unless NO_COLOR is set; a form that is named is kept.
func TestReportOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	const file = "../../reports/testdata/python.json"
	for name, c := range map[string]struct {
		noColor    string
		args       []string
		want, lack string
	}{
		"in colour":     {"", []string{"report", file}, "\x1b[32mmpsforge: ✓ passed", "###"},
		"NO_COLOR":      {"1", []string{"report", file}, "mpsforge: ✓ passed", "\x1b"},
		"asked for":     {"", []string{"report", "--format", "text", file}, "\x1b[32mmpsforge: ✓ passed", "###"},
		"another form":  {"", []string{"report", "--format", "markdown", file}, "### mpsforge: ✓ passed", "\x1b"},
		"a dumb screen": {"", []string{"report", file}, "mpsforge: ✓ passed", "\x1b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", c.noColor)
			if name == "a dumb screen" {
				t.Setenv("TERM", "dumb")
			}
			command, _, shown := onTerminal(t, c.args...)
			if err := command.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, shown())
			}
			waitFor(t, "the report's end", func() bool { return strings.Contains(shown(), "Nothing in this report was run on a Mac.") })
			if !strings.Contains(shown(), c.want) || strings.Contains(shown(), c.lack) {
				t.Errorf("lacks %q or has %q:\n%.600q", c.want, c.lack, shown())
			}
		})
	}
}
