package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/suggest"
)

// checkedWriter remembers the first error of a writer: what is printed in pieces is not asked for one after each.
type checkedWriter struct {
	io.Writer
	err error
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

// streamArguments puts the paths of the process's own streams in the place of "-", where the command takes a FILE.
func streamArguments(c *cli.Command, args []string) []string {
	if !strings.Contains(c.ArgsUsage, "FILE") && c.ArgsUsage != "BEFORE AFTER" {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "-" {
			args[i] = standardInput
		}
	}
	return args
}

// standardInput is where Linux and macOS have it among the files.
const standardInput = "/dev/stdin"

// ownVariables are those that mpsforge reads beside those of its flags.
var ownVariables = []string{"MPSFORGE_CACHE", "MPSFORGE_THEME"}

// otherVariables begin those that its programs and wheels read.
var otherVariables = []string{"MPSFORGE_METAL_", "MPSFORGE_OVERLAY"}

// mistypedVariables are warnings about variables of the environment that look like one that mpsforge reads, and are not.
func mistypedVariables(commands []*cli.Command, environment []string) (warnings []string) {
	isOther := func(name string) bool {
		return !strings.HasPrefix(name, "MPSFORGE_") || slices.ContainsFunc(otherVariables, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
	var names []string
	for _, setting := range environment {
		if name, _, _ := strings.Cut(setting, "="); !isOther(name) && !slices.Contains(ownVariables, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	known := slices.Clone(ownVariables)
	var add func(commands []*cli.Command)
	add = func(commands []*cli.Command) {
		for _, command := range commands {
			for _, flag := range visibleFlags(command) {
				known = append(known, flag.GetEnvVars()...)
			}
			add(command.Subcommands)
		}
	}
	add(commands)
	for _, name := range names {
		if meant := suggest.Meant(name, known); meant != "" && !slices.Contains(known, name) {
			warnings = append(warnings, fmt.Sprintf("nothing reads the variable %s%s", name, meant))
		}
	}
	return warnings
}
