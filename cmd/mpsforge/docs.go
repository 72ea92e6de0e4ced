package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/schemas"
	"mpsforge/internal/suggest"
	"mpsforge/validate"
)

// documentForms are what mpsforge docs can print.
func documentForms() []string {
	forms := []string{"man", "markdown"}
	for _, name := range schemas.Names() {
		forms = append(forms, schemaForm+name)
	}
	return forms
}

// schemaForm begins the forms that are schemas.
const schemaForm = "schema-"

func docsCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "docs", usage: "print the man page, the commands in Markdown, or a schema", argument: "FORM",
		about: `FORM is man or markdown, which are made from the commands themselves, or the JSON Schema of something that mpsforge writes for
other programs: ` + strings.Join(documentForms()[2:], ", ") + `. They refer to each other by
file names, such as report.json.

  mpsforge docs man > mpsforge.1 && man ./mpsforge.1
  mpsforge docs markdown > COMMANDS.md
  mpsforge docs schema-envelope > envelope.json          of what --json prints`,
		action: func(_ context.Context, c call) (result, error) {
			if name, ok := strings.CutPrefix(c.Args().First(), schemaForm); ok && slices.Contains(schemas.Names(), name) {
				return schemaOf(name)
			}
			write := map[string]func(*strings.Builder, *document){"man": writeMan, "markdown": writeMarkdown}[c.Args().First()]
			if write == nil {
				return result{}, usagef("there is no form %q%s", c.Args().First(), suggest.Names(c.Args().First(), documentForms()))
			}
			var text strings.Builder
			write(&text, newDocument(c.App))
			return result{value: text.String(), text: func(w io.Writer) { fmt.Fprint(w, text.String()) }}, nil
		},
	})
}

// schemaOf prints a schema.
func schemaOf(name string) (result, error) {
	schema, err := schemas.Text(name)
	return result{value: schema, message: "the JSON Schema " + name, text: func(w io.Writer) { fmt.Fprint(w, string(schema)) }}, err
}

// document is what the man page and the Markdown form show.
//
// urfave/cli can write both (v2.27.7, ToMan through cpuguy83/go-md2man). It is not used because it leaves out what flags call
// their values, writes examples as running text, has no place for exit codes and variables, and repeats the flags that all
// commands share; and because the library behind it makes every start slower.
type document struct {
	name, usage string
	about       []block
	exit        string // the paragraph on exit codes
	shared      []cli.DocGenerationFlag
	commands    []documented
	environment []validate.Variable
}

// documented is one command.
type documented struct {
	name, usage, synopsis string
	about                 []block
	flags                 []cli.DocGenerationFlag // but for the shared ones
}

// block is a paragraph, or examples, of a command's text.
type block struct {
	paragraph string
	examples  []example
}

// example is a command line and what it does, which may be empty; line is both as the text has them.
type example struct{ line, command, note string }

// exitCodes begins the paragraph on exit codes in the program's own text.
const exitCodes = "Exit codes: "

func newDocument(app *cli.App) *document {
	d := &document{name: app.Name, usage: app.Usage, environment: validate.Variables()}
	for _, b := range blocks(app.Description) {
		if strings.HasPrefix(b.paragraph, exitCodes) {
			d.exit = b.paragraph
		} else {
			d.about = append(d.about, b)
		}
	}
	var all []*cli.Command
	var names []string
	var add func(parent string, commands []*cli.Command)
	add = func(parent string, commands []*cli.Command) {
		for _, command := range commands {
			if command.Hidden || command.Name == "help" {
				continue
			}
			all, names = append(all, command), append(names, strings.TrimSpace(parent+" "+command.Name))
			add(command.Name, command.Subcommands)
		}
	}
	add("", app.Commands)
	// The flags of every command that does something are listed once.
	d.shared = visibleFlags(all[0])
	for _, command := range all {
		if len(command.Subcommands) == 0 {
			d.shared = slices.DeleteFunc(d.shared, func(flag cli.DocGenerationFlag) bool { return flagNamed(command, flag.Names()[0]) == nil })
		}
	}
	for i, command := range all {
		flags := slices.DeleteFunc(visibleFlags(command), func(flag cli.DocGenerationFlag) bool {
			return slices.ContainsFunc(d.shared, func(other cli.DocGenerationFlag) bool { return other.Names()[0] == flag.Names()[0] })
		})
		synopsis := command.UsageText
		if synopsis == "" {
			synopsis = app.Name + " " + names[i] + " COMMAND"
		}
		d.commands = append(d.commands, documented{name: names[i], usage: command.Usage, synopsis: synopsis, about: blocks(command.Description), flags: flags})
	}
	return d
}

// blocks parts a command's text: lines that begin with two spaces are examples, with the note behind two spaces or more.
func blocks(text string) []block {
	var all []block
	for _, part := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		var paragraph []string
		var examples []example
		for line := range strings.SplitSeq(part, "\n") {
			if !strings.HasPrefix(line, "  ") {
				paragraph = append(paragraph, line)
				continue
			}
			e := example{line: strings.TrimPrefix(line, "  ")}
			e.command, e.note, _ = strings.Cut(e.line, "  ")
			e.note = strings.TrimSpace(e.note)
			last := len(examples) - 1
			if last >= 0 && strings.HasSuffix(examples[last].command, `\`) { // the command goes on
				examples[last].line += "\n" + e.line
				examples[last].command += "\n" + e.line
				continue
			}
			if e.command == "" && last >= 0 { // the note goes on
				examples[last].line += "\n" + e.line
				examples[last].note += " " + e.note
				continue
			}
			examples = append(examples, e)
		}
		if len(paragraph) > 0 {
			all = append(all, block{paragraph: strings.Join(paragraph, "\n")})
		}
		if len(examples) > 0 {
			all = append(all, block{examples: examples})
		}
	}
	return all
}

// flagText is a flag as help shows it: its names with the value, and its usage with the default and variables.
func flagText(flag cli.DocGenerationFlag) (names []string, value, about string) {
	for _, name := range flag.Names() {
		names = append(names, dashed(name))
	}
	about = strings.ReplaceAll(flag.GetUsage(), "`", "")
	if flag.TakesValue() {
		if value = placeholder(flag); value == "" {
			value = "VALUE"
		}
		// What help adds itself says nothing where the usage gives the default in words, and for 0, "" and the like.
		if text := strings.Trim(flag.GetDefaultText(), `"`); text != "" && text != "0" && text != "0s" && !strings.Contains(about, "(default") {
			about += " (default: " + text + ")"
		}
	}
	if isRepeatable(flag) && !strings.Contains(about, "again") && !strings.Contains(about, "repeated") {
		about += "; may be repeated"
	}
	return names, value, about
}

func writeMarkdown(b *strings.Builder, d *document) {
	fmt.Fprintf(b, "# Commands of %s\n\n%s. Made by `make reference` from the commands themselves; `%s docs man` prints the same as a man page.\n",
		d.name, sentence(d.usage), d.name)
	markdownBlocks(b, d.about)
	fmt.Fprintf(b, "\n%s\n\n", d.exit)
	for _, command := range d.commands {
		fmt.Fprintf(b, "- [`%s`](#%s): %s\n", command.name, strings.ReplaceAll(command.name, " ", "-"), command.usage)
	}
	b.WriteString("\nEvery command takes these flags. Flags go before or after arguments; what comes after `--` is an argument:\n")
	markdownFlags(b, d.shared)
	for _, command := range d.commands {
		fmt.Fprintf(b, "\n## %s\n\n`%s`: %s.\n", command.name, command.synopsis, command.usage)
		markdownBlocks(b, command.about)
		for _, group := range flagGroups(command.flags) {
			if group.title != "" {
				fmt.Fprintf(b, "\n%s:\n", group.title)
			}
			markdownFlags(b, group.flags)
		}
	}
	b.WriteString("\n## Environment\n\n| variable | meaning |\n| --- | --- |\n")
	for _, variable := range d.environment {
		fmt.Fprintf(b, "| `%s` | %s |\n", variable.Name, markdownCell(variable.Meaning))
	}
}

func markdownBlocks(b *strings.Builder, all []block) {
	for _, part := range all {
		if part.paragraph != "" {
			fmt.Fprintf(b, "\n%s\n", markdownText(part.paragraph))
			continue
		}
		b.WriteString("\n```\n")
		for _, e := range part.examples {
			b.WriteString(e.line + "\n")
		}
		b.WriteString("```\n")
	}
}

func markdownFlags(b *strings.Builder, flags []cli.DocGenerationFlag) {
	if len(flags) == 0 {
		return
	}
	b.WriteString("\n| flag | meaning |\n| --- | --- |\n")
	for _, flag := range flags {
		names, value, about := flagText(flag)
		for _, variable := range flag.GetEnvVars() {
			about += "; also `" + variable + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.TrimSpace(strings.Join(names, "`, `")+" "+value), markdownCell(about))
	}
}

// markdownText keeps * and < as they are; a command's text is not written as Markdown.
func markdownText(text string) string {
	return strings.NewReplacer("*", `\*`, "<", "&lt;", "_", `\_`).Replace(text)
}

func markdownCell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "<", "&lt;"), "|", `\|`)
}

// sentence is a usage line with a capital letter.
func sentence(usage string) string { return strings.ToUpper(usage[:1]) + usage[1:] }

// writeMan writes the page in the man macros that groff, mandoc and the macOS man all know.
func writeMan(b *strings.Builder, d *document) {
	// Neither date nor version: the page is as the commands are.
	fmt.Fprintf(b, ".TH %s 1 \"\" %s \"User Commands\"\n", strings.ToUpper(d.name), d.name)
	b.WriteString(".ad l\n.nh\n") // words as they are typed, no wide gaps
	fmt.Fprintf(b, ".SH NAME\n%s \\- %s\n", d.name, roff(d.usage))
	fmt.Fprintf(b, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n.RI [ flags ]\n.RI [ ARGUMENT ]\n.PP\n.B %s\n.I COMMAND\n.B \\-\\-help\n", d.name, d.name)
	fmt.Fprintf(b, ".SH DESCRIPTION\n%s.\n", roff(sentence(d.usage)))
	manBlocks(b, d.about)
	b.WriteString(".SH OPTIONS\nEvery command takes these flags. Flags go before or after arguments; what comes after \\-\\- is an argument:\n")
	manFlags(b, d.shared)
	b.WriteString(".SH COMMANDS\n")
	for _, command := range d.commands {
		fmt.Fprintf(b, ".SS %s\n%s.\n.PP\n.B %s\n", roff(command.name), roff(sentence(command.usage)), roff(command.synopsis))
		manBlocks(b, command.about)
		for _, group := range flagGroups(command.flags) {
			if group.title != "" {
				fmt.Fprintf(b, ".PP\n%s:\n", roff(group.title))
			}
			manFlags(b, group.flags)
		}
	}
	fmt.Fprintf(b, ".SH EXIT STATUS\n%s\n", roff(sentence(strings.TrimPrefix(d.exit, exitCodes))))
	b.WriteString(".SH ENVIRONMENT\n")
	for _, variable := range d.environment {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(variable.Name), roff(sentence(variable.Meaning)))
	}
	b.WriteString(".SH SEE ALSO\n.BR git (1)\n")
}

func manBlocks(b *strings.Builder, all []block) {
	for _, part := range all {
		if part.paragraph != "" {
			fmt.Fprintf(b, ".PP\n%s\n", roff(part.paragraph))
			continue
		}
		for _, e := range part.examples {
			if e.note == "" {
				fmt.Fprintf(b, ".PP\n.RS 2\n.B %s\n.RE\n", roff(e.command))
			} else {
				fmt.Fprintf(b, ".PP\n.RS 2\n.B %s\n.br\n.RS 4\n%s\n.RE\n.RE\n", roff(e.command), roff(e.note))
			}
		}
	}
}

func manFlags(b *strings.Builder, flags []cli.DocGenerationFlag) {
	for _, flag := range flags {
		names, value, about := flagText(flag)
		for i, name := range names {
			names[i] = `\fB` + roff(name) + `\fR`
		}
		heading := strings.Join(names, ", ")
		if value != "" {
			heading += ` \fI` + roff(value) + `\fR`
		}
		if variables := flag.GetEnvVars(); len(variables) > 0 {
			about += "; also " + strings.Join(variables, ", ")
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", heading, roff(about))
	}
}

// roff writes text so that troff takes no character of it for its own: a backslash, a dash that must stay the one that is
// typed, quotes that would be curled, and a control character at the beginning of a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
