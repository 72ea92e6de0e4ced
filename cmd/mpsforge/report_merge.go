package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/run"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate"
)

func reportMerge(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "report", name: "merge", usage: "make one report of all the shards of a run", argument: "SHARD...",
		about: `Reads the reports of mpsforge verify --shard 1/N to N/N and writes one, as a run that was not divided would have written it:
checks, counts and tables of all shards, and a verdict. It refuses, with exit code 1, a report that is not of a shard, a shard that is
there twice or missing, one of something else than the others (series, baseline, seed, form, options, number of shards, mpsforge), and
shards of a series or an mpsforge that has changed since. Exit code 4 where a shard has failed, 5 where a stage did not run in all of
them.

  mpsforge report merge --output all.json shard-*.json
  mpsforge report merge --output all.json --require operators,upstream shard-*.json`,
		flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "write the report to `FILE.json`, and beside it as Markdown, as an HTML page and in JUnit's XML"},
			&cli.StringFlag{Name: "require", Usage: "exit with code 5 unless the stages in `LIST` ran in all shards"}, patchesFlag()},
		action: func(_ context.Context, c call) (result, error) { return c.mergeReports() },
	})
}

func (c call) mergeReports() (result, error) {
	output, required := c.String("output"), list(c.String("require"))
	if output == "" {
		return result{}, usagef("report merge needs --output, the file to write to")
	}
	if err := validate.CheckNames(required); err != nil {
		return result{}, err
	}
	var shards []*reports.Report
	names := c.Args().Slice()
	for _, path := range names {
		if err := checkInput("report merge", path); err != nil {
			return result{}, err
		}
		if sameFile(output, path) {
			return result{}, usagef("--output %s: that is one of the shards; name another FILE", output)
		}
		report, err := reports.ReadFile(path)
		if err != nil {
			return result{}, err
		}
		shards = append(shards, report)
	}
	merged, err := reports.Merge(shards, names, required...)
	if err != nil {
		return result{}, err
	}
	if err := c.checkFresh(merged); err != nil {
		return result{}, err
	}
	if err := reports.TryFiles(output); err != nil {
		return result{}, fmt.Errorf("--output %s: %w", output, err)
	}
	merged.Command = withoutPasswords(run.Command{Name: "mpsforge", Args: c.std.args[1:]}.String())
	if err := merged.WriteFiles(output); err != nil {
		return result{}, err
	}
	found := result{value: merged, message: fmt.Sprintf("%s; shards: %d; report: %s", merged.Verification(), merged.Merged, output), text: func(w io.Writer) {
		_ = merged.WriteSummary(w, c.std.colours(), c.std.width()) // execute says what did not arrive
		fmt.Fprintf(w, "\nall of it: %s\n", fullReport(output))
	}}
	switch merged.Verdict {
	case reports.Failed:
		return found, silentError{exitVerify, fmt.Sprintf("%s; see %s", merged.Verification(), reports.PathOf(output, "html"))}
	case reports.Passed:
		return found, nil
	}
	return found, silentError{exitEnvironment, fmt.Sprintf("%s\nstages that did not run in all shards: %s", merged.Verification(), merged.WhyMissing())}
}

// checkFresh refuses shards of a series that has changed since, or of another mpsforge.
func (c call) checkFresh(merged *reports.Report) error {
	files, err := c.seriesFiles()
	if err != nil {
		return err
	}
	is, tool := merged.Identity, merged.Tool
	series, err := patches.Load(files, is.Baseline)
	if err != nil {
		return err
	}
	const again = "run all shards again"
	switch {
	case is.SeriesDigest != series.Digest():
		return fmt.Errorf("%w: they are stale: the series of %s has digest %.12s now, and had %.12s; %s", reports.ErrMerge, is.Baseline,
			series.Digest(), is.SeriesDigest, again)
	case tool.Version != version() || tool.Commit != commit():
		return fmt.Errorf("%w: they are stale: this is mpsforge %s %s, they are by %s %s; merge with that one, or %s", reports.ErrMerge, version(),
			commit(), tool.Version, tool.Commit, again)
	}
	return nil
}
