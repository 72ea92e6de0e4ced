package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/words"
)

// commandGroups is the order of the commands in the program's help. urfave/cli sorts its own groups by their names.
func commandGroups() []commandGroup {
	return []commandGroup{
		{"Start here", "run doctor"},
		{"Patch a checkout", "fetch apply status unapply"},
		{"Build and use it", "build overlay"},
		{"Verify", "verify report"},
		{"Upstream, and everything else", "pr dev help"},
	}
}

// devGroups are those of mpsforge dev: what few need, and what works without the word dev, too.
func devGroups() []commandGroup {
	return []commandGroup{
		{"A checkout", "recover shell"},
		{"Crashes, and what was run", "metal repro replay"},
		{"Change the series", "lint export port baseline"},
		{"mpsforge itself", "cache version completion docs"},
	}
}

type commandGroup struct{ title, commands string }

// listed are the commands of groups with their use.
func listed(groups []commandGroup, commands []*cli.Command) string {
	var text strings.Builder
	for _, group := range groups {
		fmt.Fprintf(&text, "\n   %s:\n", group.title)
		for name := range strings.FieldsSeq(group.commands) {
			for _, command := range commands {
				if command.Name == name {
					fmt.Fprintf(&text, "     %-11s %s\n", name, command.Usage)
				}
			}
		}
	}
	return text.String()
}

// appHelp is the template of the program's help: urfave/cli's own, with the commands in our groups.
func appHelp(commands []*cli.Command) string {
	return strings.Replace(cli.AppHelpTemplate, `{{template "visibleCommandCategoryTemplate" .}}`, listed(commandGroups(), commands), 1)
}

// devCommand lists the commands that the program's help leaves out; arrange takes the word off before one of them.
func devCommand() *cli.Command {
	return &cli.Command{
		Name: devWord, Usage: "lint, metal explain, export, caches: the other commands", ArgsUsage: "[COMMAND]", UsageText: "mpsforge dev [COMMAND]",
		HideHelpCommand: true,
		Description: `The commands that few need. Each works without the word dev, too: mpsforge dev lint is mpsforge lint.

  mpsforge dev
  mpsforge dev metal explain "commit an already committed command buffer"`,
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return noCommand(c.App.Commands, name)
			}
			_, err := fmt.Fprintf(c.App.Writer, "mpsforge dev COMMAND, or mpsforge COMMAND\n%s", listed(devGroups(), c.App.Commands))
			return err
		},
	}
}

const devWord = "dev"

// helpWidth is that of the narrowest terminal that is common.
const helpWidth = 80

// commandHelp is the template of a command's help: urfave/cli's own, which sorts flags and breaks no line, with the text and the
// flags as the command lists them, in groups, and those of all commands last.
func commandHelp(command *cli.Command) string {
	var options strings.Builder
	for _, group := range flagGroups(visibleFlags(command)) {
		options.WriteString("\n")
		if group.title != "" {
			fmt.Fprintf(&options, "   %s:\n", group.title)
		}
		helpFlags(&options, group.flags)
	}
	whole := cli.CommandHelpTemplate
	if len(command.Subcommands) > 0 {
		whole = cli.SubcommandHelpTemplate
	}
	head, _, _ := strings.Cut(whole, "{{if .VisibleFlagCategories}}")
	return strings.Replace(head, `{{template "descriptionTemplate" .}}`, helpText(command.Description), 1) + "\n\nOPTIONS:" + options.String()
}

// flagGroup is the part of the flags with one title in a command's help; the title of what comes first is empty.
type flagGroup struct {
	title string
	flags []cli.DocGenerationFlag
}

// flagGroups parts flags by their groups, those without one first and those of all commands last.
func flagGroups(flags []cli.DocGenerationFlag) []flagGroup {
	groups := []flagGroup{{}, {title: sharedGroup}}
	for _, flag := range flags {
		title := ""
		if named, ok := flag.(cli.CategorizableFlag); ok {
			title = named.GetCategory()
		}
		if slices.ContainsFunc(sharedFlags(), func(shared cli.Flag) bool { return shared.Names()[0] == flag.Names()[0] }) || flag.Names()[0] == "help" {
			title = sharedGroup
		}
		at := slices.IndexFunc(groups, func(g flagGroup) bool { return g.title == title })
		if at < 0 {
			at = len(groups) - 1
			groups = slices.Insert(groups, at, flagGroup{title: title})
		}
		groups[at].flags = append(groups[at].flags, flag)
	}
	return slices.DeleteFunc(groups, func(g flagGroup) bool { return len(g.flags) == 0 })
}

// helpText is a command's text in lines that fit. The notes of examples are in a column if they fit there, else below their examples.
func helpText(about string) string {
	var text strings.Builder
	for i, b := range blocks(about) {
		if i > 0 {
			text.WriteString("\n\n   ")
		}
		if b.paragraph != "" {
			text.WriteString(strings.Join(words.Wrap(b.paragraph, helpWidth-3), "\n   "))
		}
		width, fits := 0, true
		for _, e := range b.examples {
			if e.note != "" {
				width = max(width, len(e.command))
			}
		}
		for _, e := range b.examples {
			fits = fits && (e.note == "" || 5+width+2+len(e.note) <= helpWidth)
		}
		var lines []string
		for _, e := range b.examples {
			switch {
			case e.note == "":
				lines = append(lines, "  "+strings.ReplaceAll(e.command, "\n", "\n     "))
			case fits:
				lines = append(lines, fmt.Sprintf("  %-*s  %s", width, e.command, e.note))
			default:
				lines = append(lines, "  "+e.command)
				for _, line := range words.Wrap(e.note, helpWidth-9) {
					lines = append(lines, "      "+line)
				}
			}
		}
		text.WriteString(strings.Join(lines, "\n   "))
	}
	return text.String()
}

// flagColumn is the widest name of a flag that has its meaning beside it, not below.
const flagColumn = 20

// helpFlags lists flags with their meanings in a column.
func helpFlags(text *strings.Builder, flags []cli.DocGenerationFlag) {
	width := 0
	heads := make([]string, len(flags))
	for i, flag := range flags {
		names, value, _ := flagText(flag)
		heads[i] = strings.TrimSpace(strings.Join(names, ", ") + " " + value)
		if len(heads[i]) <= flagColumn {
			width = max(width, len(heads[i]))
		}
	}
	for i, flag := range flags {
		_, _, about := flagText(flag)
		for _, variable := range flag.GetEnvVars() {
			about += " [$" + variable + "]"
		}
		head := heads[i]
		if len(head) > width {
			fmt.Fprintf(text, "   %s\n", head)
			head = ""
		}
		for _, line := range words.Wrap(about, helpWidth-3-width-2) {
			fmt.Fprintf(text, "   %-*s  %s\n", width, head, line)
			head = ""
		}
	}
}

// sharedGroup is the title of the flags that all commands have.
const sharedGroup = "All commands"

func sharedFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
		&cli.StringFlag{Name: "progress", Value: progressAuto, Usage: "show progress on standard error as `FORM`: auto, tty, plain or json"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print warnings only, no progress"},
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
