package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// Each command that is not hidden is in one group of the program's help, or of mpsforge dev.
func TestEveryCommandIsInOneGroup(t *testing.T) {
	var grouped []string
	for _, group := range slices.Concat(commandGroups(), devGroups()) {
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

// The program's help has a dozen commands; the word dev before one of the others changes nothing.
func TestHelpIsShort(t *testing.T) {
	run := func(args ...string) (string, int) {
		var out strings.Builder
		code := execute(t.Context(), append([]string{"mpsforge"}, args...), streams{out: &out, err: &out})
		return out.String(), code
	}
	help, _ := run("--help")
	if n := strings.Count(help, "\n     "); n > 20 || strings.Contains(help, "baseline  ") || !strings.Contains(help, "\n     dev ") {
		t.Errorf("%d lines of commands:\n%s", n, help)
	}
	if list, code := run("dev"); code != exitOK || !strings.Contains(list, "\n     baseline ") {
		t.Errorf("dev: %d: %s", code, list)
	}
	for _, line := range [][]string{{"metal", "explain", "4"}, {"lint", "--help"}, {"baseline", "runs", "--nothing"}, {"version", "--json"}} {
		plain, code := run(line...)
		if dev, devCode := run(append([]string{"dev"}, line...)...); dev != plain || devCode != code {
			t.Errorf("dev %v: %d: %s", line, devCode, dev)
		}
	}
	if said, code := run("dev", "nothing"); code != exitUsage || !strings.Contains(said, `there is no command "nothing"`) {
		t.Errorf("dev nothing: %d: %s", code, said)
	}
}

// Flags are in the order in which a command lists them, the common ones first, and a switch shows no default.
func TestHelpBeginsWithTheCommonFlags(t *testing.T) {
	var out strings.Builder
	if code := execute(t.Context(), []string{"mpsforge", "verify", "--help"}, streams{out: &out, err: io.Discard}); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	last := 0
	for _, want := range []string{"OPTIONS:", "--stages", "--quick", "--checkout", "Stage runtime:", "--scenarios", "Stages python, bench, overlay:", "--only",
		"Host builds (Linux):", "All commands:",
		"--json", "--help"} {
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

// A line of a command's help fits on a narrow terminal, but for an example, which is typed as it is.
func TestHelpFitsEightyColumns(t *testing.T) {
	var check func(names []string, commands []*cli.Command)
	check = func(names []string, commands []*cli.Command) {
		for _, command := range commands {
			if command.Hidden {
				continue
			}
			line := append(slices.Clone(names), command.Name)
			var out strings.Builder
			if code := execute(t.Context(), append(line, "--help"), streams{out: &out, err: io.Discard}); code != exitOK {
				t.Fatalf("%v: exit code %d", line, code)
			}
			for text := range strings.SplitSeq(out.String(), "\n") {
				if utf8.RuneCountInString(text) > helpWidth && !strings.HasPrefix(text, "     ") {
					t.Errorf("%v: %q", line, text)
				}
			}
			check(line, command.Subcommands)
		}
	}
	app := newApp(streams{out: io.Discard, err: io.Discard})
	check([]string{"mpsforge"}, app.Commands)
}
