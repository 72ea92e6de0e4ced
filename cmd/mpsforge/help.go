package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// urfave/cli prints a default for every flag, and knows no other way to change that than this variable of its own.
func init() {
	whole := cli.FlagStringer
	cli.FlagStringer = func(flag cli.Flag) string { return emptyDefault.ReplaceAllString(whole(flag), "") }
}

// emptyDefault is a default that says nothing: of a switch that is off, and of a number that is chosen by other means.
var emptyDefault = regexp.MustCompile(` \(default: (false|0)\)`)

// commandGroups is the order of the commands in the program's help. urfave/cli sorts its own groups by their names.
func commandGroups() []commandGroup {
	return []commandGroup{
		{"Begin here", "run doctor"},
		{"Patch a checkout", "fetch apply status unapply recover"},
		{"Build and use it", "overlay build shell"},
		{"Verify, and read what was found", "verify report metal repro"},
		{"Change the series", "lint export port baseline pr"},
		{"The program itself", "cache version completion docs replay help"},
	}
}

type commandGroup struct{ title, commands string }

// appHelp is the template of the program's help: urfave/cli's own, with the commands in our groups.
func appHelp(commands []*cli.Command) string {
	var text strings.Builder
	for _, group := range commandGroups() {
		fmt.Fprintf(&text, "\n   %s:\n", group.title)
		for name := range strings.FieldsSeq(group.commands) {
			for _, command := range commands {
				if command.Name == name {
					fmt.Fprintf(&text, "     %-11s %s\n", name, command.Usage)
				}
			}
		}
	}
	return strings.Replace(cli.AppHelpTemplate, `{{template "visibleCommandCategoryTemplate" .}}`, text.String(), 1)
}

// commandHelp is the template of a command's help: urfave/cli's own, which sorts flags, with the flags as the command lists them,
// in groups, and those of all commands last.
func commandHelp(command *cli.Command) string {
	groups, flags := []string{"", sharedGroup}, map[string][]string{}
	for _, flag := range append(slices.Clone(command.Flags), cli.HelpFlag) {
		group := ""
		if named, ok := flag.(cli.CategorizableFlag); ok {
			group = named.GetCategory()
		}
		if slices.ContainsFunc(sharedFlags(), func(shared cli.Flag) bool { return shared.Names()[0] == flag.Names()[0] }) || flag == cli.HelpFlag {
			group = sharedGroup
		}
		if !slices.Contains(groups, group) {
			groups = slices.Insert(groups, len(groups)-1, group)
		}
		flags[group] = append(flags[group], flag.String())
	}
	var text strings.Builder
	for _, group := range groups {
		if len(flags[group]) > 0 {
			if group != "" {
				fmt.Fprintf(&text, "\n   %s:\n", group)
			} else {
				text.WriteString("\n")
			}
			fmt.Fprintf(&text, "   %s\n", strings.Join(flags[group], "\n   "))
		}
	}
	whole := cli.CommandHelpTemplate
	if len(command.Subcommands) > 0 {
		whole = cli.SubcommandHelpTemplate
	}
	head, _, _ := strings.Cut(whole, "{{if .VisibleFlagCategories}}")
	return head + "\n\nOPTIONS:" + text.String()
}

// sharedGroup is the title of the flags that all commands have.
const sharedGroup = "All commands"

func sharedFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "json", Usage: "print the result as one JSON object"},
		&cli.StringFlag{Name: "progress", Value: progressAuto, Usage: "how to show progress on standard error, `FORM`: auto, tty, plain or json"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress and no messages but warnings"},
	}
}

// inGroup puts flags under a title of their own in a command's help.
func inGroup(title string, flags []cli.Flag) []cli.Flag {
	for _, flag := range flags {
		switch flag := flag.(type) {
		case *cli.StringFlag:
			flag.Category = title
		case *cli.BoolFlag:
			flag.Category = title
		case *cli.IntFlag:
			flag.Category = title
		}
	}
	return flags
}
