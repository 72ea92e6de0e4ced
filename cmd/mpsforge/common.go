package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/internal/suggest"
	"mpsforge/patches"
	"mpsforge/validate"
)

// result is what a command found: a value for --json, and the same as text for people.
type result struct {
	value   any
	message string // one sentence for --json; may be empty
	text    func(io.Writer)
	report  string // path of the HTML page, if there is one
	next    string // the command line that is mostly run then; may be empty
}

// call is one run of a command: its flags and where its events go.
type call struct {
	*cli.Context
	sink  events.Sink
	std   streams
	feed  *events.Feed // the sink, for replay
	clock *streamClock // of replay
	// fromFile are the flags that settingsFile has set, by name.
	fromFile map[string]string
	// chosen are the flags that lastFailed has set, by name.
	chosen map[string]string
}

// commandError marks an error that the frame has printed.
type commandError struct{ err error }

func (c *commandError) Error() string { return c.err.Error() }
func (c *commandError) Unwrap() error { return c.err }

// spec describes a command; the frame around it is the same for all.
type spec struct {
	name, usage string
	parent      string // of a subcommand, else empty
	// about is the help's text, with examples.
	about string
	// argument names the positional argument: NAME is one, ONE TWO are two, NAME... one or more, [NAME] one or none, [NAME...] any number; empty for none.
	argument string
	flags    []cli.Flag
	ui       useOfUI
	logs     bool // keeps a log: its work takes long
	action   func(context.Context, call) (result, error)
}

// newCommand builds the frame: shared flags, argument checks, a renderer for the events, and output in both forms.
func newCommand(std streams, s spec) *cli.Command {
	full := strings.TrimSpace(s.parent + " " + s.name)
	if s.logs {
		s.flags = append(s.flags, &cli.BoolFlag{Name: "bell", Usage: "ring the terminal's bell at the end"})
	}
	return &cli.Command{
		Name: s.name, Usage: s.usage, Description: s.about, ArgsUsage: s.argument, HideHelpCommand: true,
		UsageText: strings.TrimSpace("mpsforge " + full + " [flags] " + s.argument),
		Flags:     append(s.flags, sharedFlags()...),
		Action: func(c *cli.Context) error {
			if err := checkArguments(c, s); err != nil {
				return err
			}
			return perform(c, std, s)
		},
	}
}

// opening is the first event of a command's stream.
func opening(std streams, command string) events.Stream {
	shown := []string{}
	for _, arg := range std.args[min(len(std.args), 1+len(strings.Fields(command))):] {
		shown = append(shown, withoutPasswords(arg))
	}
	return events.Stream{Version: events.Version, Tool: version(), Command: command, Args: shown}
}

// perform runs a command's action between the first and the last event of its stream.
func perform(c *cli.Context, std streams, s spec) error {
	full := strings.TrimSpace(s.parent + " " + s.name)
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	f := face{mode: c.String("progress"), quiet: c.Bool("quiet"), use: s.ui, now: time.Now, leave: ctx.Done(), interrupt: func() { cancel(nil) }}
	f.quit = f.interrupt
	clock := &streamClock{}
	if s.ui == replayUI {
		f.now, f.quit = clock.now, func() { cancel(errQuit) }
	}
	renderer, err := openRenderer(std, f)
	if err != nil {
		return err
	}
	log := &logged{Renderer: renderer, command: full}
	if s.logs {
		renderer = log
	}
	feed := events.NewFeed(renderer, f.now)
	defer feed.Close() // gives the terminal back when the action panics
	defer showStatus(feed)()
	if s.ui != replayUI {
		feed.Emit(opening(std, full))
	}
	found, err := s.actUntil(ctx, call{Context: c, sink: events.Until(ctx, feed), std: std, feed: feed, clock: clock})
	if err != nil && ctx.Err() != nil { // a program that the same Ctrl-C ended fails in its own words
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	if err != nil {
		found.message = withoutPasswords(err.Error())
		if exitCode(err) == exitInterrupted {
			found.message = full + " was interrupted"
			if stopped := (*validate.StoppedError)(nil); errors.As(err, &stopped) {
				found.message += ": " + stopped.Error()
			}
		}
	}
	// A replay shows the end of the stream that it plays; its own failure is an event only where all must be.
	inEvents := f.mode == progressJSON
	if s.ui == replayUI && err != nil && inEvents && clock.last.IsZero() {
		feed.Emit(opening(std, full))
	}
	if s.ui != replayUI || err != nil && inEvents {
		feed.Emit(events.End{ExitCode: exitCode(err), Message: found.message, Report: found.report})
	}
	feed.Close()
	if path := log.path(); path != "" && !f.quiet && !inEvents {
		fmt.Fprintf(std.err, "log: %s (mpsforge replay shows it)\n", path)
	}
	if c.Bool("bell") && std.errTerminal != nil {
		fmt.Fprint(std.err, "\a")
	}
	if c.Bool("json") {
		printJSON(std.out, jsonResult{Schema: resultSchema, Command: full, ExitCode: exitCode(err), Message: found.message, Result: found.value})
	} else if found.text != nil {
		found.text(harmlessWriter{std.out})
		if found.next != "" && !c.Bool("quiet") && std.errTerminal != nil {
			fmt.Fprintf(std.err, "next: %s\n", found.next)
		}
	}
	switch {
	case err == nil:
		return nil
	case inEvents: // the last event says it
	case exitCode(err) == exitInterrupted:
		fmt.Fprintf(std.err, "mpsforge: %s\n", found.message)
	default:
		printError(std.err, full, err)
	}
	return &commandError{err}
}

// actUntil runs the action, and does not wait for one that reads a pipe or a terminal when the context has ended: such a read ends with its writer.
func (s spec) actUntil(ctx context.Context, c call) (result, error) {
	if !slices.ContainsFunc(c.Args().Slice(), mayWait) {
		return s.act(ctx, c)
	}
	type outcome struct {
		found result
		err   error
	}
	ended := make(chan outcome, 2) // whichever of the two is first
	go func() {
		found, err := s.act(ctx, c)
		ended <- outcome{found, err}
	}()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, func() { ended <- outcome{err: ctx.Err()} }) })()
	first := <-ended
	return first.found, first.err
}

// mayWait reports whether a read of the file may wait for somebody.
func mayWait(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// act runs the action. A panic becomes an error, so that it ends the stream and the command as any other failure does.
func (s spec) act(ctx context.Context, c call) (found result, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v; this is a bug in mpsforge\n%s", reason, debug.Stack())
		}
	}()
	for _, warning := range mistypedVariables(c.App.Commands, os.Environ()) {
		c.sink.Emit(events.Message{Level: events.Warning, Text: warning})
	}
	if c.fromFile, err = applySettings(c.Context, c.sink); err != nil {
		return result{}, err
	}
	return s.action(ctx, c)
}

func withoutPasswords(text string) string { return run.WithoutPasswords(text) }

// inputFlags name what must be there before a command begins.
var inputFlags = []string{"patches", "torch", "root", "show-stamp", "from", "wheel", "with"}

// checkInput refuses a file or folder that the command line names and that is not there.
func checkInput(what, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return usagef("%s: there is no file or folder %s", what, path)
	}
	return nil // what else may be wrong with it shows when it is read
}

// source names where the value of a flag comes from: the command line, or the environment.
func source(c *cli.Context, flag string) string {
	for _, variable := range flagNamed(c.Command, flag).GetEnvVars() {
		if given, _ := os.LookupEnv(variable); given == c.String(flag) {
			return variable + " (--" + flag + ")"
		}
	}
	return "--" + flag
}

// checkArguments refuses what urfave/cli would pass over silently, and input that is not there.
func checkArguments(c *cli.Context, s spec) error {
	name := strings.TrimSpace(s.parent + " " + s.name)
	least, most := 0, 0
	switch {
	case s.argument == "":
	case strings.HasSuffix(s.argument, "...]"):
		most = math.MaxInt
	case strings.HasPrefix(s.argument, "["):
		most = 1
	case strings.HasSuffix(s.argument, "..."):
		least, most = 1, math.MaxInt
	default:
		least = len(strings.Fields(s.argument))
		most = least
	}
	isFile := slices.Contains([]string{"FILE", "[FILE]", "BEFORE AFTER"}, s.argument)
	meant := suggest.Meant(c.Args().First(), commandNames(c.Command.Subcommands))
	for i, arg := range c.Args().Slice() {
		if i >= most {
			return usagef("%s takes no argument %q%s", name, arg, meant)
		}
		if isFile {
			if err := checkInput(name, arg); err != nil {
				return usagef("%v%s", err, meant)
			}
		}
	}
	if least > c.NArg() {
		return usagef("%s needs %s", name, s.argument)
	}
	if err := checkValues(c); err != nil {
		return err
	}
	for _, flag := range inputFlags {
		if path := c.String(flag); path != "" && !(flag == "from" && path == "debian") {
			if err := checkInput(source(c, flag), path); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkValues refuses less than no compilers, and a flag of the command line whose value is empty, as "$NAME" is of a variable that is
// not set: without the flag a command does all that there is.
func checkValues(c *cli.Context) error {
	if c.Int("jobs") < 0 {
		return usagef("--jobs %d is not a number of compilers", c.Int("jobs"))
	}
	for _, flag := range visibleFlags(c.Command) {
		name := flag.Names()[0]
		if !c.IsSet(name) || name == "schedule" || source(c, name) != "--"+name { // the default schedule has an empty name
			continue
		}
		var values []string
		switch flag.(type) {
		case *cli.StringFlag:
			values = []string{c.String(name)}
		case *cli.StringSliceFlag:
			values = c.StringSlice(name)
		}
		for _, value := range values {
			if strings.Trim(value, ", \t") == "" {
				return usagef("--%s has no value", name)
			}
		}
	}
	return nil
}

// Flags that several commands share.
func checkoutFlag() cli.Flag {
	return &cli.StringFlag{Name: "checkout", Value: "pytorch", EnvVars: []string{"MPSFORGE_CHECKOUT"}, Usage: "`DIR` with the PyTorch checkout"}
}

func baselineFlag() cli.Flag {
	return &cli.StringFlag{Name: "baseline",
		Usage: "PyTorch release of the checkout, `NAME`: v2.9.1 or v2.6.0; each has its own patches (default: what the checkout is, else v2.9.1)"}
}

func patchesFlag() cli.Flag {
	return &cli.StringFlag{Name: "patches", EnvVars: []string{"MPSFORGE_PATCHES"}, Usage: "`DIR` with patch series to use instead of the built-in ones"}
}

// checkoutFlags are those of every command that works on a checkout.
func checkoutFlags(more ...cli.Flag) []cli.Flag {
	return append(more, checkoutFlag(), baselineFlag(), patchesFlag())
}

// onCheckout is a command line for the same checkout.
func (c call) onCheckout(command string) string {
	if c.IsSet("checkout") {
		return fork.CommandOn(c.String("checkout"), strings.Fields(command)...)
	}
	return "mpsforge " + command
}

// seriesFiles is where the series are read from.
func (c call) seriesFiles() (fs.FS, error) {
	dir := c.String("patches")
	if dir == "" {
		return patches.Embedded(), nil
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("--patches: %w", err)
	} else if !info.IsDir() {
		return nil, usagef("--patches %s is not a folder", dir)
	}
	return os.DirFS(dir), nil
}

// baselines are the requested baseline, or all, and the files that they are in.
func (c call) baselines() (fs.FS, []string, error) {
	files, err := c.seriesFiles()
	if err != nil {
		return nil, nil, err
	}
	if name := c.String("baseline"); name != "" {
		return files, []string{name}, nil
	}
	names, err := patches.Baselines(files)
	return files, names, err
}

// baselineName is the requested baseline, else the recorded one, else the default.
func (c call) baselineName(recorded string) string {
	return cmp.Or(c.String("baseline"), recorded, patches.DefaultBaseline)
}

// series loads the series of the requested, recorded or default baseline.
func (c call) series(recorded string) (*patches.Series, error) {
	files, err := c.seriesFiles()
	if err != nil {
		return nil, err
	}
	return patches.Load(files, c.baselineName(recorded))
}

// openCheckout opens the checkout and the series that belongs to it.
func (c call) openCheckout(ctx context.Context) (*fork.Checkout, *patches.Series, error) {
	files, err := c.seriesFiles()
	if err != nil {
		return nil, nil, err
	}
	return c.openWith(ctx, files, c.String("baseline"), true)
}

// openWith opens the checkout and, from the given files, the series of the requested baseline, or, if none is requested, of
// the one that the checkout records or is. withIndex says that the index entries of the touched paths will be asked for.
func (c call) openWith(ctx context.Context, files fs.FS, requested string, withIndex bool) (*fork.Checkout, *patches.Series, error) {
	likely, err := patches.LoadBaseline(files, cmp.Or(requested, patches.DefaultBaseline))
	if err != nil {
		return nil, nil, err
	}
	// The series is parsed while git looks at the checkout.
	type loaded struct {
		series *patches.Series
		err    error
	}
	loading := make(chan loaded, 1)
	go func() {
		series, err := patches.Load(files, likely.Name)
		loading <- loaded{series, err}
	}()
	var hint []string
	if withIndex {
		hint = slices.Collect(maps.Keys(likely.Touched))
	}
	checkout, err := fork.Open(ctx, c.String("checkout"), hint)
	if isMissing(err) {
		return nil, nil, c.noCheckout(err)
	}
	if err != nil {
		return nil, nil, err
	}
	found := <-loading
	name := requested
	if name == "" {
		if name, err = checkout.Recognise(ctx, files); err != nil {
			return nil, nil, errors.Join(err, checkout.Close())
		}
		name = cmp.Or(name, patches.DefaultBaseline)
	}
	if name != likely.Name {
		found.series, found.err = patches.Load(files, name)
	}
	if found.err == nil && requested != "" {
		found.err = checkout.Contradicts(ctx, found.series)
	}
	if found.err != nil {
		return nil, nil, errors.Join(found.err, checkout.Close())
	}
	return checkout, found.series, nil
}

// cacheDir is where downloads and compiled subjects are kept.
func cacheDir() (string, error) {
	if dir := os.Getenv("MPSFORGE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w; set MPSFORGE_CACHE", err)
	}
	return filepath.Join(dir, "mpsforge"), nil
}

// errNoCheckout says that there is no checkout where one is looked for when none is named.
var errNoCheckout = errors.New("there is no checkout")

// noCheckout is what isMissing has found, for the user: a wrong --checkout is wrong use; without one, something is missing.
func (c call) noCheckout(err error) error {
	dir := c.String("checkout")
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && c.IsSet("checkout"):
		return usagef("%v at %s\nname another with --checkout, or get one with: mpsforge fetch --checkout %s", errNoCheckout, dir, dir)
	case missing:
		return fmt.Errorf("%w at %s\nmpsforge fetch gets one; or name yours with --checkout", errNoCheckout, dir)
	case c.IsSet("checkout"):
		return usagef("%v\nname another with --checkout, or make one of a folder with PyTorch's sources: mpsforge fetch --from %s --checkout NEW", err, dir)
	}
	return fmt.Errorf("%w at %s: %w\nname yours with --checkout, or get one elsewhere: mpsforge fetch --checkout DIR", errNoCheckout, dir, err)
}

// isMissing reports whether err says that there is no checkout.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, git.ErrNotRepository)
}
