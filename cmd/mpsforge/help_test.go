package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// Each command that is not hidden is in one group of the program's help.
func TestEveryCommandIsInOneGroup(t *testing.T) {
	var grouped []string
	for _, group := range commandGroups() {
		grouped = append(grouped, strings.Fields(group.commands)...)
	}
	var visible []string
	for _, command := range newApp(streams{out: io.Discard, err: io.Discard}).Commands {
		if !command.Hidden {
			visible = append(visible, command.Name)
		}
	}
	slices.Sort(grouped)
	slices.Sort(visible)
	if !slices.Equal(grouped, visible) {
		t.Errorf("in groups: %v\ncommands: %v", grouped, visible)
	}
}

// Flags are in the order in which a command lists them, the common ones first, and a switch shows no default.
func TestHelpBeginsWithTheCommonFlags(t *testing.T) {
	var out strings.Builder
	if code := execute(t.Context(), []string{"mpsforge", "verify", "--help"}, streams{out: &out, err: io.Discard}); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	last := 0
	for _, want := range []string{"OPTIONS:", "--stages", "--quick", "--checkout", "Python stages:", "--only", "Host builds (Linux):", "All commands:", "--json", "--help"} {
		at := strings.Index(out.String()[last:], want)
		if at < 0 {
			t.Fatalf("%s is not where it belongs:\n%s", want, &out)
		}
		last += at
	}
	for _, bad := range []string{"(default: false)", "(default: 0)", ") (default"} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("holds %q", bad)
		}
	}
}
