// Command mpsforge makes PyTorch's MPS backend safe under threads, and proves it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"mpsforge/ci"
	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/git"
	"mpsforge/fork/hostbuild/msl"
	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate"
	"mpsforge/validate/judge/crash"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/judge/repro"
)

// Exit codes, as docs/using.md lists them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConflict    = 3
	exitVerify      = 4
	exitEnvironment = 5
	exitInterrupted = 130
)

// secondSignal is when one more signal ends the process at once, by its default; programs that start others send some of them twice.
const secondSignal = time.Second

func main() { os.Exit(Main()) }

// Main runs the program on the process's arguments and streams and gives its exit code.
func Main() int {
	collectRarely()
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it: the work is to go on
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(secondSignal, stop) })
	std := streams{out: os.Stdout, err: os.Stderr, outIsTerminal: term.IsTerminal(int(os.Stdout.Fd()))}
	if std.outIsTerminal {
		if columns, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			std.outWidth = max(columns, helpWidth/2)
		}
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		std.errTerminal = os.Stderr
	}
	return execute(ctx, os.Args, std)
}

// streams is where a command writes: data to out, messages and progress to err.
type streams struct {
	out, err      io.Writer
	outIsTerminal bool
	outWidth      int      // of out in characters, if it is a terminal
	errTerminal   *os.File // err, if it is a terminal
	args          []string // the command line
}

// width is that of a line of out.
func (s streams) width() int { return cmp.Or(s.outWidth, reports.PipeWidth) }

// colours are those of out.
func (s streams) colours() words.Palette {
	if !s.outIsTerminal {
		return words.Palette{}
	}
	return words.Colours()
}

// usageError is a wrong use of the command line.
type usageError struct{ text string }

func (u usageError) Error() string { return u.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// silentError ends a command with an exit code whose reason has been printed as its result.
type silentError struct {
	code    int
	message string
}

func (s silentError) Error() string { return s.message }

// exitCode is the only place that turns errors into exit codes.
func exitCode(err error) int {
	var usage usageError
	var silent silentError
	var conflict *patches.ConflictError
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &silent):
		return silent.code
	case is(context.Canceled):
		return exitInterrupted
	case is(errNoCheckout):
		return exitEnvironment
	case errors.As(err, &usage), is(git.ErrNotRepository, fork.ErrUnknownPatch, fork.ErrNoPort, fork.ErrNoSource, patches.ErrUnknownBaseline,
		patches.ErrNoFirst, patches.ErrNoPart, validate.ErrUnknownStage, crash.ErrUnknownSignature, msl.ErrRequest, pytests.ErrTestPattern,
		repro.ErrNone, ci.ErrOptions, reports.ErrUnwritable):
		return exitUsage
	case errors.As(err, &conflict), is(fork.ErrMoreApplied, fork.ErrWrongBaseline, fork.ErrNotEmpty, fork.ErrDirty, fork.ErrInterrupted, fork.ErrForeign,
		fork.ErrSeriesChanged, fork.ErrMerge, fork.ErrDropped,
		fork.ErrPortStopped, fork.ErrNotResolved, fork.ErrBranch, repro.ErrOther):
		return exitConflict
	case is(ci.ErrNotRun):
		return exitVerify
	case is(fork.ErrEnvironment, builds.ErrEnvironment, fork.ErrUnavailable, fork.ErrNoTarget, git.ErrNoGit, git.ErrOwner, ci.ErrNoActions, pytests.ErrNoTorch):
		return exitEnvironment
	}
	return exitFailed
}

// resultSchema is the version of jsonResult. It rises whenever a field of a result changes its meaning or goes away.
const resultSchema = 1

// jsonResult is the last object on standard output with --json.
type jsonResult struct {
	Schema   int    `json:"schema"`
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
	Message  string `json:"message"`
	Result   any    `json:"result"`
}

// execute runs one command line. What did not reach standard output is a failure, unless there is another one.
func execute(ctx context.Context, args []string, std streams) int {
	out := &checkedWriter{Writer: std.out}
	std.out = out
	code := executeOn(ctx, args, std)
	if out.err != nil {
		printError(std.err, "", fmt.Errorf("write to standard output: %w", out.err))
		code = max(code, exitFailed)
	}
	return code
}

func executeOn(ctx context.Context, args []string, std streams) int {
	typed := args // wrong use is looked for in these, as arrange may lose words then
	args = arrange(newApp(std), args)
	std.args = args
	err := newApp(std).RunContext(ctx, args)
	code := exitCode(err)
	if err == nil {
		return exitOK
	}
	// A usage error can come before the flags are known, so --json is looked for in the words themselves.
	if failure := (*commandError)(nil); errors.As(err, &failure) {
		return code // printed by the command's own frame
	}
	name, message := commandName(newApp(std).Commands, args[1:]), withoutPasswords(err.Error())
	if wantsJSON(typed) {
		printJSON(std.out, jsonResult{Schema: resultSchema, Command: name, ExitCode: code, Message: message})
	}
	if wantsJSONProgress(typed) {
		feed := events.NewFeed(events.NewJSON(std.err), time.Now)
		feed.Emit(opening(std, name))
		feed.Emit(events.End{ExitCode: code, Message: message})
		feed.Close()
	} else {
		printError(std.err, name, err)
	}
	return code
}

func wantsJSON(args []string) bool {
	return slices.ContainsFunc(args[1:], func(arg string) bool { return arg == "--json" || arg == "-json" || arg == "--json=true" })
}

// commandName is the command that the words begin with, after those that it is below; empty if there is none.
func commandName(commands []*cli.Command, words []string) string {
	for _, command := range commands {
		if len(words) > 0 && command.HasName(words[0]) {
			return strings.TrimSpace(words[0] + " " + commandName(command.Subcommands, words[1:]))
		}
	}
	return ""
}

func printJSON(w io.Writer, value any) {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // execute says what did not arrive
}

// printError says why a command failed; of wrong use also where its help is.
func printError(w io.Writer, command string, err error) {
	var usage usageError
	text := harmless(withoutPasswords(err.Error()))
	fmt.Fprintf(w, "mpsforge: %s\n", text)
	if errors.As(err, &usage) && !strings.Contains(text, "mpsforge ") { // else it names what to do itself
		fmt.Fprintf(w, "hint: %s --help shows examples\n", strings.TrimSpace("mpsforge "+command))
	}
}

// newApp puts the commands together.
func newApp(std streams) *cli.App {
	app := &cli.App{
		Name:      "mpsforge",
		Usage:     "make PyTorch's MPS backend safe under threads, and prove it",
		UsageText: "mpsforge COMMAND [flags]",
		Description: `Try it:
  mpsforge doctor    what this machine can do, and how to fix each gap
  mpsforge run       everything: get PyTorch, patch, build (Mac), verify, report
  mpsforge metal explain "commit an already committed command buffer"

Exit codes: 0 ok or nothing to do, 1 failed, 2 wrong use, 3 conflict,
4 verification failed, 5 something needed is missing here, 130 interrupted.`,
		Writer:          std.out,
		ErrWriter:       std.err,
		HideVersion:     true, // the flag below is ours
		HideHelpCommand: true, // and so is the command
		Flags: []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "the same as mpsforge version",
			DisableDefaultText: true}, cli.HelpFlag},
		// urfave/cli calls os.Exit for errors that carry a code unless this is set; Main does that, after its defers.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   onUsageError,
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return noCommand(c.App.Commands, name)
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			runCommand(std), doctorCommand(std), fetchCommand(std), applyCommand(std), statusCommand(std), unapplyCommand(std), recoverCommand(std),
			buildCommand(std), overlayCommand(std), shellCommand(std),
			verifyCommand(std), reportCommand(std), metalCommand(std), reproCommand(std), lintCommand(std), exportCommand(std), portCommand(std),
			baselineCommand(std), prCommand(std),
			cacheCommand(std), versionCommand(std), completionCommand(std), completeCommand(std), docsCommand(std), replayCommand(std), devCommand(),
			helpCommand(),
		},
	}
	app.CustomAppHelpTemplate = appHelp(app.Commands)
	hardenCommands(app.Commands)
	return app
}

// hardenCommands sets what urfave/cli wants on each command anew.
func hardenCommands(commands []*cli.Command) {
	for _, command := range commands {
		command.OnUsageError = onUsageError
		command.CustomHelpTemplate = commandHelp(command)
		hardenCommands(command.Subcommands)
	}
}
