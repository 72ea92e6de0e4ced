package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/events"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate"
)

func baselineMutants(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "baseline", name: "mutants", usage: "plant faults into the series; see what finds them", ui: workUI, logs: true,
		about: `A mutant is one line of a patch with a fault: a lock left out, a memory order weakened, a comparison or a condition turned, a wait or
another statement left out. --draw writes a list of them into mutants.json below --patches, evenly over the patches and the kinds of
faults; the same series and seed give the same list, and a larger number more. Commit it before any of them is judged.

--judge puts one after the other on the checkout, which must hold the whole series and nothing else, runs the quick stages until the
first failure (the scenarios; then conformance for the slot allocator, runtime, python and operators), takes it off again, and writes
what found it. It takes minutes for each, and some 250 MB of the cache. Stopped, it goes on later: what was judged stays.

A mutant that nothing finds is read by a person: --read keeps what they found out. lint warns of those that nobody has read, and of
those that were judged before the series changed. Without flags it shows what is recorded.

  mpsforge baseline mutants
  mpsforge baseline mutants --patches ./patches --draw 40 --seed 41
  mpsforge baseline mutants --patches ./patches --checkout pytorch --judge all
  mpsforge baseline mutants --patches ./patches --checkout pytorch --judge m03,m17       these again
  mpsforge baseline mutants --patches ./patches --read m17='no fault: the flag is only read by the thread that sets it'`,
		flags: append([]cli.Flag{
			&cli.IntFlag{Name: "draw", Usage: "draw `NUMBER` mutants and write the list; what is known of those drawn before stays, with its series"},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` to draw by, or for the random choices of the stages that judge (default: 41 to draw, 7 to judge)"},
			&cli.StringFlag{Name: "judge", Usage: "judge these `MUTANTS`, separated by commas, or all that were not judged yet"},
			&cli.StringFlag{Name: "read", Usage: "keep what is known of a mutant that nothing finds, `NAME=TEXT`"},
			&cli.StringFlag{Name: "baseline", Usage: "`NAME` of the baseline (default: what the checkout is, or " + patches.DefaultBaseline +
				"; to show: all)"}, checkoutFlag(), patchesFlag()}, hostFlags()...),
		action: func(ctx context.Context, c call) (result, error) {
			switch {
			case c.IsSet("draw"):
				return c.drawMutants()
			case c.IsSet("read"):
				return c.readMutants()
			case c.IsSet("judge"):
				return c.judgeMutants(ctx)
			}
			return c.showMutants()
		},
	})
}

// mutantsFile is the list of a baseline, and the folder that it is written to.
func (c call) mutantsFile(baseline string, must bool) (patches.Mutants, func(patches.Mutants) error, error) {
	if err := c.needsFolder("mutants", patches.MutantsFile); err != nil {
		return patches.Mutants{}, nil, err
	}
	files, err := c.seriesFiles()
	if err != nil {
		return patches.Mutants{}, nil, err
	}
	table, err := patches.ReadMutants(files, baseline)
	if errors.Is(err, fs.ErrNotExist) && !must {
		err = nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %s has no %s; mpsforge baseline mutants --draw 40 makes it", patches.ErrMutants, baseline, patches.MutantsFile)
	}
	return table, func(m patches.Mutants) error { return c.write(baseline, patches.MutantsFile, m) }, err
}

// drawMutants writes the list. What is known of a fault stays, by whichever seed it was drawn, with the series that it was judged on.
func (c call) drawMutants() (result, error) {
	if c.Int("draw") < 1 {
		return result{}, usagef("--draw %d: at least 1", c.Int("draw"))
	}
	series, err := c.series("")
	if err != nil {
		return result{}, err
	}
	before, write, err := c.mutantsFile(series.Baseline.Name, false)
	if err != nil {
		return result{}, err
	}
	seed := uint64(41)
	if c.IsSet("seed") {
		seed = c.Uint64("seed")
	}
	drawn := patches.DrawMutants(series, seed, c.Int("draw"))
	kept := 0
	for i := range drawn.Mutants {
		m := &drawn.Mutants[i]
		at := slices.IndexFunc(before.Mutants, m.Same)
		if at >= 0 {
			m.Judged, m.Reading = before.Mutants[at].Judged, before.Mutants[at].Reading
			kept++
		}
	}
	if err := write(drawn); err != nil {
		return result{}, err
	}
	message := fmt.Sprintf("mutants drawn: %d, of which known before: %d", len(drawn.Mutants), kept)
	return result{value: drawn, message: message, text: func(w io.Writer) {
		for _, m := range drawn.Mutants {
			fmt.Fprintf(w, "%s %s\n    %s:%d %s\n    - %s\n    + %s\n", m.Name, m.Patch, m.Path, m.Line, m.Kind, strings.TrimSpace(m.Old),
				strings.TrimSpace(m.New))
		}
		fmt.Fprintln(w, message)
	}}, nil
}

// readMutants keeps what a person found out.
func (c call) readMutants() (result, error) {
	series, err := c.series("")
	if err != nil {
		return result{}, err
	}
	table, write, err := c.mutantsFile(series.Baseline.Name, true)
	if err != nil {
		return result{}, err
	}
	text := c.String("read")
	name, reading, _ := strings.Cut(text, "=")
	m, err := table.Mutant(name)
	switch {
	case err != nil:
		return result{}, usagef("--read: %v", err)
	case strings.TrimSpace(reading) == "":
		return result{}, usagef("--read %s: it says nothing; write NAME=TEXT", text)
	case m.Judged == nil || m.Judged.Verdict != patches.MutantSurvived:
		return result{}, usagef("--read %s: only of a mutant that survived", name)
	}
	m.Reading = strings.TrimSpace(reading)
	return result{value: table, message: name + " is explained"}, write(table)
}

// judgeMutants judges those that the command line names, one after the other, and writes each judgement at once.
func (c call) judgeMutants(ctx context.Context) (result, error) {
	options, err := c.judgeOptions(ctx)
	if err != nil {
		return result{}, err
	}
	defer options.Checkout.Close()
	table, write, err := c.mutantsFile(options.Series.Baseline.Name, true)
	if err != nil {
		return result{}, err
	}
	if table.SeriesDigest != options.Series.Digest() {
		return result{}, fmt.Errorf("%w: they are of the series with digest %.12s, this one has %.12s; draw them again", patches.ErrMutants,
			table.SeriesDigest, options.Series.Digest())
	}
	names := list(c.String("judge"))
	if slices.Equal(names, []string{patches.AllPatches}) {
		names = table.Names(func(m patches.Mutant) bool { return m.Judged == nil })
	}
	for i, name := range names {
		m, err := table.Mutant(name)
		if err != nil {
			return result{}, usagef("--judge: %v", err)
		}
		c.sink.Emit(events.Message{Level: events.Info, Text: fmt.Sprintf("%s, %d of %d: %s in %s, %s:%d", name, i+1, len(names), m.Kind, m.Patch,
			m.Path, m.Line)})
		judged, err := validate.JudgeMutant(ctx, options, *m, c.sink)
		if err != nil {
			return result{}, err
		}
		m.Judged, m.Reading = &judged, ""
		if err := write(table); err != nil {
			return result{}, err
		}
		c.sink.Emit(events.Message{Level: events.Info, Text: name + ": " + judged.String()})
	}
	return c.showMutants()
}

// needsFolder refuses a command of baseline that is to write a file where no folder is named.
func (c call) needsFolder(command, file string) error {
	if c.String("patches") == "" {
		return usagef("to write %s baseline %s needs --patches, the folder to write to", file, command)
	}
	return nil
}

// judgeOptions are those of the stages that judge planted faults, with the checkout, which must hold the whole series and nothing else,
// and which the caller closes.
func (c call) judgeOptions(ctx context.Context) (options validate.Options, err error) {
	checkout, series, err := c.openCheckout(ctx)
	if err != nil {
		return options, err
	}
	defer func() {
		if err != nil {
			checkout.Close()
		}
	}()
	exact, err := checkout.CheckExact(ctx, series)
	if err != nil {
		return options, err
	}
	if len(exact.Deviations) > 0 {
		return options, fmt.Errorf("the checkout must hold the whole series and nothing else: %s", exact.Deviations[0])
	}
	cache, err := openCache()
	options = validate.Options{Checkout: checkout, Series: series, Seed: 7, Cache: cache,
		Tool: reports.Tool{Name: "mpsforge", Version: version(), Commit: commit()},
		Host: validate.HostOptions{Root: c.String("root"), Torch: c.String("torch"), Jobs: c.Int("jobs")}}
	if c.IsSet("seed") {
		options.Seed = c.Uint64("seed")
	}
	return options, err
}

// showMutants prints the lists, and what lint says of them.
func (c call) showMutants() (result, error) {
	shown, _, err := showRecords(c, patches.LintMutants, (*patches.MutantsResult).Summary, func(w io.Writer, found *patches.MutantsResult) {
		fmt.Fprintf(w, "%s: %s\n", found.Baseline, found.Summary())
		for _, m := range found.Mutants.Mutants {
			fmt.Fprintf(w, "%s %-22s %s:%d, %s: %s\n", m.Name, m.Patch, m.Path, m.Line, m.Kind, m.String())
		}
		printFindings(w, found.Findings, true)
	})
	return shown, err
}
