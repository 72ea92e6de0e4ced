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
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// result is what a command found: a value for --json, and the same as text for people.
type result struct {
	value   any
	message string // one sentence for --json; may be empty
	text    func(io.Writer)
}

// call is one run of a command: its flags and where its events go.
type call struct {
	*cli.Context
	sink  events.Sink
	std   streams
	feed  *events.Feed // the sink, for replay
	clock *streamClock // of replay
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
	// argument names the positional argument: NAME is one, ONE TWO are two, NAME... one or more, [NAME] one or none; empty for none.
	argument string
	flags    []cli.Flag
	ui       useOfUI
	action   func(context.Context, call) (result, error)
}

// newCommand builds the frame: shared flags, argument checks, a renderer for the events, and output in both forms.
func newCommand(std streams, s spec) *cli.Command {
	full := strings.TrimSpace(s.parent + " " + s.name)
	return &cli.Command{
		Name: s.name, Usage: s.usage, Description: s.about, ArgsUsage: s.argument, HideHelpCommand: true,
		UsageText: strings.TrimSpace("mpsforge " + full + " [flags] " + s.argument),
		Flags: append(s.flags,
			&cli.BoolFlag{Name: "json", Usage: "print the result as one JSON object"},
			&cli.StringFlag{Name: "progress", Value: progressAuto, Usage: "how to show progress on standard error: auto, tty, plain or json"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress and no messages but warnings"}),
		Action: func(c *cli.Context) error {
			if err := checkArguments(c, s); err != nil {
				return err
			}
			return perform(c, std, s)
		},
	}
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
	feed := events.NewFeed(renderer, f.now)
	defer feed.Close() // gives the terminal back when the action panics
	defer tellStatus(feed)()
	if s.ui != replayUI {
		shown := []string{}
		for _, arg := range std.args[min(len(std.args), 1+len(strings.Fields(full))):] {
			shown = append(shown, withoutPasswords(arg))
		}
		feed.Emit(events.Stream{Version: events.Version, Tool: version(), Command: full, Args: shown})
	}
	found, err := s.action(ctx, call{Context: c, sink: feed, std: std, feed: feed, clock: clock})
	if s.ui != replayUI {
		end := events.End{ExitCode: exitCode(err), Message: found.message}
		if err != nil {
			end.Message = withoutPasswords(err.Error())
		}
		feed.Emit(end)
	}
	feed.Close()
	return finish(c, std, full, found, err)
}

func withoutPasswords(text string) string { return run.WithoutPasswords(text) }

// finish prints what a command found and how it ended.
func finish(c *cli.Context, std streams, name string, found result, err error) error {
	code := exitCode(err)
	if c.Bool("json") {
		message := found.message
		if err != nil {
			message = withoutPasswords(err.Error())
		}
		printJSON(std.out, outcome{Command: name, ExitCode: code, Message: message, Result: found.value})
	} else if found.text != nil {
		found.text(std.out)
	}
	if err == nil {
		return nil
	}
	if code == exitInterrupted {
		fmt.Fprintf(std.err, "mpsforge: %s was interrupted\n", name)
	} else {
		printError(std.err, err)
	}
	return &commandError{err}
}

// checkArguments refuses what urfave/cli would pass over silently: flags behind an argument, and arguments where none
// belong.
func checkArguments(c *cli.Context, s spec) error {
	name := strings.TrimSpace(s.parent + " " + s.name)
	least, most := 0, 0
	switch {
	case s.argument == "":
	case strings.HasPrefix(s.argument, "["):
		most = 1
	case strings.HasSuffix(s.argument, "..."):
		least, most = 1, math.MaxInt
	default:
		least = len(strings.Fields(s.argument))
		most = least
	}
	for i, arg := range c.Args().Slice() {
		// A text of Apple's begins with the method's name: -[MTLCommandBuffer commit]. No flag does.
		if strings.HasPrefix(arg, "-") && arg != "-" && !strings.HasPrefix(arg, "-[") {
			return usagef("flag %s stands behind an argument; flags come first: mpsforge %s %s %s", arg, name, arg, strings.ToUpper(s.argument))
		}
		if i >= most {
			return usagef("%s takes no argument %q", name, arg)
		}
	}
	if least > c.NArg() {
		return usagef("%s needs %s", name, s.argument)
	}
	return nil
}

// Flags that several commands share.
func checkoutFlag() cli.Flag {
	return &cli.StringFlag{Name: "checkout", Value: "pytorch", EnvVars: []string{"MPSFORGE_CHECKOUT"}, Usage: "the PyTorch checkout, `DIR`"}
}

func baselineFlag() cli.Flag {
	return &cli.StringFlag{Name: "baseline", Usage: "`NAME` of the baseline: v2.9.1 or v2.6.0 (default: what the checkout is, else v2.9.1)"}
}

func patchesFlag() cli.Flag {
	return &cli.StringFlag{Name: "patches", EnvVars: []string{"MPSFORGE_PATCHES"}, Usage: "`DIR` with series to use instead of those built in"}
}

// checkoutFlags are those of every command that works on a checkout.
func checkoutFlags(more ...cli.Flag) []cli.Flag {
	return append(more, checkoutFlag(), baselineFlag(), patchesFlag())
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

// baselineName is the wished baseline, else the recorded one, else the default.
func (c call) baselineName(recorded string) string {
	return cmp.Or(c.String("baseline"), recorded, patches.DefaultBaseline)
}

// series loads the series of the wished, recorded or default baseline.
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

// openWith opens the checkout and, from the given files, the series of the wished baseline, or, if none is wished, of
// the one that the checkout records or is. withIndex tells that the index entries of the touched paths will be asked for.
func (c call) openWith(ctx context.Context, files fs.FS, wished string, withIndex bool) (*fork.Checkout, *patches.Series, error) {
	likely, err := patches.LoadBaseline(files, cmp.Or(wished, patches.DefaultBaseline))
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
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w\nget one with: mpsforge fetch --checkout %s; or name another with --checkout", err, c.String("checkout"))
	}
	if err != nil {
		return nil, nil, err
	}
	found := <-loading
	name := wished
	if name == "" {
		if name, err = checkout.Recognise(ctx, files); err != nil {
			return nil, nil, errors.Join(err, checkout.Close())
		}
		name = cmp.Or(name, patches.DefaultBaseline)
	}
	if name != likely.Name {
		found.series, found.err = patches.Load(files, name)
	}
	if found.err == nil && wished != "" {
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

// isMissing tells whether err says that there is no checkout.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, git.ErrNotRepository)
}
