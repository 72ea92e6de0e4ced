package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/suggest"
)

// isFlag reports whether a word is a flag. A text of Apple's begins with the method's name, -[MTLCommandBuffer commit]; no
// flag does.
func isFlag(word string) bool {
	return strings.HasPrefix(word, "-") && word != "-" && !strings.HasPrefix(word, "-[")
}

// doesWork distinguishes commands from groups of commands and the program itself, which take no arguments.
func doesWork(command *cli.Command) bool { return command.UsageText != "" }

// arrange puts the flags of a command line between the command and its arguments, as urfave/cli reads none behind an
// argument. What it does not understand it leaves for the parser to refuse.
func arrange(app *cli.App, args []string) []string {
	at := &cli.Command{Flags: app.Flags, Subcommands: app.Commands}
	path, words := slices.Clone(args[:1]), args[1:]
	var flags, arguments []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			arguments, i = append(arguments, words[i+1:]...), len(words)
		case len(path) == 1 && (word == "--version" || word == "-v"):
			path, at = append(path, "version"), at.Command("version")
		case isFlag(word):
			flags = append(flags, word)
			name, _, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if !hasValue && takesValue(at, name) && i+1 < len(words) {
				i++
				flags = append(flags, words[i])
			}
		// mpsforge dev lint is mpsforge lint
		case len(path) == 1 && word == devWord && i+1 < len(words) && words[i+1] != devWord && at.Command(words[i+1]) != nil:
		case len(arguments) == 0 && at.Command(word) != nil:
			path, at = append(path, word), at.Command(word)
			if at.SkipFlagParsing {
				return args
			}
		case !doesWork(at): // no command is called so
			return append(append(path, word), words[i+1:]...)
		default:
			arguments = append(arguments, word)
		}
	}
	arguments = streamArguments(at, arguments)
	if len(arguments) > 0 && strings.HasPrefix(arguments[0], "-") {
		flags = append(flags, "--")
	}
	return slices.Concat(path, flags, arguments)
}

// takesValue reports whether the flag takes the next word. A flag before the command that it belongs to is one of a command
// below.
func takesValue(command *cli.Command, name string) bool {
	for _, flag := range command.Flags {
		if slices.Contains(flag.Names(), name) {
			documented, ok := flag.(cli.DocGenerationFlag)
			return ok && documented.TakesValue()
		}
	}
	return slices.ContainsFunc(command.Subcommands, func(below *cli.Command) bool { return takesValue(below, name) })
}

// wantsJSONProgress looks for --progress json in the words themselves: a usage error can come before the flags are known.
// The last one counts.
func wantsJSONProgress(args []string) bool {
	wanted := false
	for i, arg := range args {
		name, value, hasValue := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return wanted
		case name != "--progress" && name != "-progress":
		case hasValue:
			wanted = value == progressJSON
		case i+1 < len(args):
			wanted = args[i+1] == progressJSON
		}
	}
	return wanted
}

// commandNames are the names that the user may type.
func commandNames(commands []*cli.Command) []string {
	var names []string
	for _, command := range commands {
		if !command.Hidden {
			names = append(names, command.Name)
		}
	}
	return names
}

// noCommand refuses words that name none of the commands at the last of them, and finds one below another that they name.
func noCommand(commands []*cli.Command, words ...string) error {
	name := words[len(words)-1]
	meant := suggest.Meant(name, commandNames(commands))
	for _, command := range commands {
		if meant == "" && slices.Contains(commandNames(command.Subcommands), name) {
			meant = fmt.Sprintf(" (did you mean mpsforge %s %s?)", command.Name, name)
		}
	}
	return usagef("there is no command %q%s; mpsforge --help lists them", strings.Join(words, " "), meant)
}

// showGroup is the action of a command that has others below it and does nothing itself.
func showGroup(c *cli.Context) error {
	if name := c.Args().First(); name != "" {
		return usagef("%s has no command %q%s", c.Command.Name, name, suggest.Names(name, commandNames(c.Command.Subcommands)))
	}
	return cli.ShowSubcommandHelp(c)
}

// helpCommand replaces that of urfave/cli, which takes a name that there is not for no wrong use.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Aliases: []string{"h"}, Usage: "list the commands, or show the use of one", ArgsUsage: "[COMMAND]",
		UsageText: "mpsforge help [COMMAND]", HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			words, commands := []string{c.App.Name}, c.App.Commands
			for _, name := range c.Args().Slice() {
				at := slices.IndexFunc(commands, func(command *cli.Command) bool { return command.HasName(name) })
				if at < 0 {
					return noCommand(commands, append(words[1:], name)...)
				}
				words, commands = append(words, name), commands[at].Subcommands
			}
			if len(words) == 1 {
				return cli.ShowAppHelp(c)
			}
			return c.App.RunContext(c.Context, append(words, "--help"))
		},
	}
}

// wrongValue is what urfave/cli says of a value that does not parse.
var wrongValue = regexp.MustCompile(`^invalid (?:boolean )?value ("[^"]*") for (?:flag )?-+([a-z-]+): (?:parse error|value out of range)$`)

// taken says which values a flag takes, for the end of a message about one that it does not.
func taken(flag cli.DocGenerationFlag) string {
	switch flag.(type) {
	case *cli.BoolFlag:
		return `; it takes true or false`
	case *cli.IntFlag:
		return `; it takes a whole number`
	case *cli.Uint64Flag:
		return `; it takes a whole number from 0 on`
	case *cli.DurationFlag:
		return `; it takes a time such as 90s or 2m`
	}
	return ""
}

// onUsageError words what the parser of flags found.
func onUsageError(c *cli.Context, err error, _ bool) error {
	if flag, found := strings.CutPrefix(err.Error(), "flag needs an argument: -"); found {
		return usagef("%s needs a value", dashed(strings.TrimLeft(flag, "-")))
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		if found := wrongValue.FindStringSubmatch(err.Error()); found != nil {
			return usagef("%s does not take %s%s", dashed(found[2]), found[1], taken(flagNamed(c.Command, found[2])))
		}
		return usageError{err.Error()}
	}
	var known []string
	for _, flag := range visibleFlags(c.Command) {
		known = append(known, flag.Names()...)
	}
	near := suggest.Nearest(name, known)
	if near != "" {
		near = fmt.Sprintf(" (did you mean %q?)", dashed(near))
	}
	return usagef("%s has no flag %s%s", strings.TrimPrefix(c.Command.HelpName, c.App.Name+" "), dashed(name), near)
}
