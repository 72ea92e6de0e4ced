package main

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/suggest"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/crash"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/judge/repro"
	runtimestage "mpsforge/validate/stages/runtime"
)

// The scripts hold no word of mpsforge's: at each TAB they ask mpsforge __complete.
//
// urfave/cli has a completion of its own (v2.27.7). It is not used because it offers names of commands and flags only, no
// values and no descriptions; because its script for bash runs the words typed so far through eval, so that a TAB behind
// $(command) runs that command; and because it reads os.Args, so that a test needs a process for each TAB.
//
//go:embed completion
var completionScripts embed.FS

var completionShells = []string{"bash", "zsh", "fish"}

func completionCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "completion", usage: "print a completion script for bash, zsh or fish", argument: "SHELL",
		about: `SHELL is one of: ` + strings.Join(completionShells, ", ") +
			`. The script runs mpsforge at each TAB, so it stays correct when mpsforge is updated.

  source <(mpsforge completion bash)                              in ~/.bashrc
  source <(mpsforge completion zsh)                               in ~/.zshrc, after compinit
  mpsforge completion fish > ~/.config/fish/completions/mpsforge.fish`,
		action: func(_ context.Context, c call) (result, error) {
			shell := c.Args().First()
			if !slices.Contains(completionShells, shell) {
				return result{}, usagef("there is no completion for %q%s", shell, suggest.Names(shell, completionShells))
			}
			script, err := completionScripts.ReadFile("completion/completion." + shell)
			if err != nil {
				return result{}, fmt.Errorf("read the completion script: %w", err)
			}
			return result{value: string(script), text: func(w io.Writer) { fmt.Fprint(w, string(script)) }}, nil
		},
	})
}

// completeCommand answers the scripts: mpsforge __complete SHELL WORD... prints a line for each way to go on from the
// last word, with a tab before its description, and where paths fit, :files or :folders.
func completeCommand(std streams) *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, SkipFlagParsing: true, HideHelp: true, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) < 2 {
				return usagef("__complete needs a shell and words; it is for the scripts of mpsforge completion")
			}
			words, cut := words[1:], ""
			if c.Args().First() == "bash" {
				words, cut = joinBashWords(words)
			}
			found := complete(c.App.Commands, words)
			for _, o := range found.offers {
				fmt.Fprintf(std.out, "%s\t%s\n", strings.TrimPrefix(o.word, cut), o.about)
			}
			if found.paths != "" {
				fmt.Fprintf(std.out, ":%s\n", found.paths)
			}
			return nil
		},
	}
}

// joinBashWords puts --flag=value together again, which bash takes for three words. cut is what bash must not be given back
// before the last word.
func joinBashWords(words []string) (joined []string, cut string) {
	for i, word := range words {
		last := len(joined) - 1
		switch {
		case word == "=" && last >= 0 && strings.HasPrefix(joined[last], "--"):
			joined[last] += "="
			cut = joined[last]
		case i > 0 && words[i-1] == "=" && cut != "" && joined[last] == cut:
			joined[last] += word
		default:
			joined = append(joined, word)
			cut = ""
		}
	}
	return joined, cut
}

// offer is one way to go on.
type offer struct{ word, about string }

// completions are all ways to go on; paths is files, folders or empty.
type completions struct {
	offers []offer
	paths  string
}

// add offers the words that begin with the prefix.
func (f *completions) add(prefix, about string, words ...string) {
	for _, word := range words {
		if strings.HasPrefix(word, prefix) {
			f.offers = append(f.offers, offer{word, strings.ReplaceAll(about, "`", "")})
		}
	}
}

// complete finds the ways to go on from the last of the words, which may be empty.
func complete(commands []*cli.Command, words []string) completions {
	var at *cli.Command
	given := map[string]string{} // flags before the last word
	arguments := 0
	top := commands
	last := words[len(words)-1]
	var waiting cli.DocGenerationFlag // for its value
	onlyArguments := false            // after --
	for _, word := range words[:len(words)-1] {
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		next := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(word) })
		switch {
		case waiting != nil:
			given[waiting.Names()[0]], waiting = word, nil
		case onlyArguments:
			arguments++
		case word == "--":
			onlyArguments = true
		case strings.HasPrefix(word, "-") && word != "-":
			flag := flagNamed(at, name)
			switch {
			case flag == nil:
			case hasValue || !flag.TakesValue():
				given[flag.Names()[0]] = value
			default:
				waiting = flag
			}
		case next >= 0:
			at = commands[next]
			if commands = at.Subcommands; at.Name == "help" {
				commands = top
			}
		case len(commands) > 0 && (at == nil || at.ArgsUsage == ""):
			return completions{} // after a command that there is not
		default:
			arguments++
		}
	}
	var found completions
	name, value, hasValue := strings.Cut(last, "=")
	flag := flagNamed(at, strings.TrimLeft(name, "-"))
	switch {
	case waiting != nil:
		found.values(waiting, "", last, given)
	case strings.HasPrefix(last, "-") && !onlyArguments && hasValue:
		if flag != nil {
			found.values(flag, name+"=", value, given)
		}
	case strings.HasPrefix(last, "-") && !onlyArguments:
		found.flags(at, last, given)
	default:
		for _, command := range commands {
			if !command.Hidden && arguments == 0 {
				found.add(last, command.Usage, command.Name)
			}
		}
		switch {
		case at == nil:
		case at.ArgsUsage == "" && len(commands) == 0:
			found.flags(at, last, given)
		case at.ArgsUsage != "" && (arguments == 0 || strings.HasSuffix(at.ArgsUsage, "...")):
			found.argument(at, last)
		}
	}
	return found
}

// visibleFlags are the flags of a command, --help included.
func visibleFlags(command *cli.Command) []cli.DocGenerationFlag {
	var all []cli.DocGenerationFlag
	for _, flag := range append(command.VisibleFlags(), cli.HelpFlag) {
		documented, ok := flag.(cli.DocGenerationFlag)
		same := func(other cli.DocGenerationFlag) bool { return other.Names()[0] == flag.Names()[0] }
		if ok && !slices.ContainsFunc(all, same) { // urfave/cli adds --help to the command that runs
			all = append(all, documented)
		}
	}
	return all
}

func flagNamed(command *cli.Command, name string) cli.DocGenerationFlag {
	if command == nil {
		return nil
	}
	for _, flag := range visibleFlags(command) {
		if slices.Contains(flag.Names(), name) {
			return flag
		}
	}
	return nil
}

// dashed is a flag's name as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func isRepeatable(flag cli.Flag) bool {
	slice, ok := flag.(cli.DocGenerationSliceFlag)
	return ok && slice.IsSliceFlag()
}

// flags offers the flags that are not given yet.
func (f *completions) flags(command *cli.Command, prefix string, given map[string]string) {
	if command == nil {
		f.add(prefix, "show help", "--help")
		f.add(prefix, "the same as mpsforge version", "--version")
		return
	}
	for _, flag := range visibleFlags(command) {
		if _, is := given[flag.Names()[0]]; is && !isRepeatable(flag) {
			continue
		}
		for _, name := range flag.Names() {
			if len(name) > 1 || prefix == "-" {
				f.add(prefix, flag.GetUsage(), dashed(name))
			}
		}
	}
}

// placeholder is what a flag's help calls its value.
func placeholder(flag cli.DocGenerationFlag) string {
	_, rest, _ := strings.Cut(flag.GetUsage(), "`")
	name, _, _ := strings.Cut(rest, "`")
	return name
}

// valueSet is the set that the values of a flag are from.
type valueSet struct {
	names func(given map[string]string) []string
	list  bool // several, with commas
}

// fixed is a set that no other flag changes.
func fixed(names ...string) func(map[string]string) []string {
	return func(map[string]string) []string { return names }
}

// valueSets are the flags whose values come from a set, by the flags' names; a test holds it against the commands.
func valueSets() map[string]valueSet {
	stages := fixed(validate.StageNames()...)
	kinds := fixed(strings.Split(flavourNames(), ", ")...)
	return map[string]valueSet{
		"baseline":  {names: givenBaselines},
		"to":        {names: givenBaselines},
		"until":     {names: givenPatches},
		"part":      {names: givenParts},
		"patch":     {names: givenPatches},
		"ablate":    {names: func(given map[string]string) []string { return append(givenPatches(given), patches.AllPatches) }, list: true},
		"stages":    {names: stages, list: true},
		"require":   {names: stages, list: true},
		"excuse":    {names: stages, list: true},
		"flavour":   {names: kinds},
		"flavours":  {names: kinds, list: true},
		"scenarios": {names: func(map[string]string) []string { return runtimestage.ScenarioNames() }, list: true},
		"only":      {names: pythonTestNames},
		"name":      {names: programNames},
		"device":    {names: fixed("mps", "cpu")},
		"platform":  {names: fixed(overlayPlatforms...)},
		"launcher":  {names: fixed("ccache", "sccache", "none")},
		"format":    {names: fixed(append(reports.Formats(), "svg")...)},
		"progress":  {names: fixed(progressAuto, progressTTY, progressPlain, progressJSON)},
	}
}

// givenFiles is where the series come from. What cannot be read offers nothing: at a TAB there is no place for an error.
func givenFiles(given map[string]string) fs.FS {
	if dir := cmp.Or(given["patches"], os.Getenv("MPSFORGE_PATCHES")); dir != "" {
		return os.DirFS(dir)
	}
	return patches.Embedded()
}

// programNames are those of the files: they have no blanks.
func programNames(map[string]string) []string {
	var names []string
	programs, _ := corpus.Programs() // as above
	for _, program := range programs {
		names = append(names, program.FileName())
	}
	return names
}

func givenBaselines(given map[string]string) []string {
	names, _ := patches.Baselines(givenFiles(given)) // as above
	return names
}

// givenSeries is empty where there is none.
func givenSeries(given map[string]string) *patches.Series {
	series, err := patches.Load(givenFiles(given), cmp.Or(given["baseline"], patches.DefaultBaseline))
	if err != nil {
		return &patches.Series{} // as above
	}
	return series
}

func givenParts(given map[string]string) []string {
	var names []string
	for _, part := range givenSeries(given).Parts {
		names = append(names, part.Name)
	}
	return names
}

func givenPatches(given map[string]string) []string {
	return givenSeries(given).Names()
}

func pythonTestNames(map[string]string) []string {
	tests, err := pytests.List("")
	if err != nil {
		return nil // as above
	}
	var names []string
	for _, test := range tests {
		names = append(names, test.Name)
	}
	return names
}

// values offers the values of a flag; before is what is in the same word before the value.
func (f *completions) values(flag cli.DocGenerationFlag, before, prefix string, given map[string]string) {
	if set, known := valueSets()[flag.Names()[0]]; known {
		names := set.names(given)
		if i := strings.LastIndex(prefix, ","); set.list && i >= 0 {
			chosen := strings.Split(prefix[:i], ",")
			names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(chosen, name) })
			before, prefix = before+prefix[:i+1], prefix[i+1:]
		}
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				f.offers = append(f.offers, offer{before + name, ""})
			}
		}
	}
	switch placeholder(flag) {
	case "DIR":
		f.paths = "folders"
	case "FILE", "FILE.json", "PYTHON":
		f.paths = "files"
	case "SOURCE":
		f.add(prefix, "Debian's source package", before+"debian")
		f.paths = "files"
	}
}

// argument offers a command's positional argument.
func (f *completions) argument(command *cli.Command, prefix string) {
	switch strings.Trim(command.ArgsUsage, "[].") {
	case "FILE":
		f.paths = "files"
	case "SHELL":
		f.add(prefix, "", completionShells...)
	case "FORM":
		f.add(prefix, "", documentForms()...)
	case "SCENARIO":
		f.add(prefix, "", repro.Scenarios()...)
	case "SIGNATURE":
		for _, signature := range crash.Signatures() {
			f.add(prefix, signature.Meaning, signature.Slug)
		}
	}
}
