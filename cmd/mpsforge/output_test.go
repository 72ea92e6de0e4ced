package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/require"
)

var errFull = errors.New("no space left on device")

// full is a stream to a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// What cannot be written is never a success: of each command its help, and of some their results in both forms.
func TestFullDiskIsAnErrorInEveryCommand(t *testing.T) {
	lines := [][]string{{}, {"version"}, {"version", "--json"}, {"metal", "explain"}, {"metal", "explain", "--json"}, {"lint"}, {"report", "--schema"},
		{"completion", "bash"}, {"docs", "man"}, {"doctor", "--json"}, {"baseline", "runs"}}
	var add func(path []string, commands []*cli.Command)
	add = func(path []string, commands []*cli.Command) {
		for _, command := range commands {
			if command.Hidden {
				continue
			}
			below := append(append([]string{}, path...), command.Name)
			lines = append(lines, append(append([]string{}, below...), "--help"))
			add(below, command.Subcommands)
		}
	}
	add(nil, newApp(streams{out: io.Discard, err: io.Discard}).Commands)
	if len(lines) < 50 {
		t.Fatalf("only %d command lines", len(lines))
	}
	for _, line := range lines {
		var said strings.Builder
		code := execute(t.Context(), append([]string{"mpsforge"}, line...), streams{out: full{}, err: &said})
		if code == exitOK || !strings.Contains(said.String(), "mpsforge: write to standard output: no space left on device") {
			t.Errorf("mpsforge %s: exit code %d: %s", strings.Join(line, " "), code, &said)
		}
	}
}

// A variable that looks like one of mpsforge's is named; those of others, and those of its programs, are not.
func TestMistypedVariables(t *testing.T) {
	found := mistypedVariables(newApp(streams{out: io.Discard, err: io.Discard}).Commands, []string{"MPSFORGE_CHEKOUT=x", "MPSFORGE_CHECKOUT=x",
		"MPSFORGE_METAL_SED=1", "MPSFORGE_OVERLAY=0", "MPSFORGE_CASH=x", "MPSFORGE_SOMETHING_ELSE=x", "PATH=x"})
	require.Equal(t, strings.Join(found, "; "), `nothing reads the variable MPSFORGE_CHEKOUT (did you mean "MPSFORGE_CHECKOUT"?); `+
		`nothing reads the variable MPSFORGE_CASH (did you mean "MPSFORGE_CACHE"?)`)
}
