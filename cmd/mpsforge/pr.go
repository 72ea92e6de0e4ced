package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"mpsforge/ci"
	"mpsforge/fork"
	"mpsforge/internal/run"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate"
)

func prCommand(std streams) *cli.Command {
	command := newCommand(std, spec{
		name: "pr", usage: "prepare the upstream pull-request stack", ui: workUI,
		about: `Makes of each patch a commit on a commit of upstream's, with a branch mpsforge/NN-NAME for it, and the text of its pull
request: issue, checklist, test plan, evidence from a report, compatibility, and that AI assistance was used. Checks size and
style as upstream does. The stack is refused, with exit code 4, unless every stage passed on the series as it is, but for those that its record
excuses as not run (mpsforge baseline runs); a dry run only warns, and --first, which has a test of its own, is not held to that.
Nothing is pushed or opened: the commands for that are printed. HEAD and the work tree stay as they are.
What you write between the two comments under Summary is kept by later runs.

  mpsforge pr --issue 123456 --first                    one for itself: two threads live, 124 lines
  mpsforge pr --issue 123456                            drafts on the baseline's commit
  mpsforge pr --issue 123456 --onto origin/main --report out.json
  mpsforge pr --issue 123456 --mailbox mails            mail files instead of branches
  mpsforge pr --issue 123456 --dry-run                  what would it make?
  mpsforge pr --issue 123456 --onto origin/main --report out.json --ready \
    --author "A. Person <a@example.org>" --reviewed-by-human "B. Person <b@example.org>"
  mpsforge pr status --onto origin/main                 patch by patch: size, status, there already, conflicts`,
		flags: checkoutFlags(ontoFlag(),
			&cli.BoolFlag{Name: "first", Usage: "the first pull request, which needs no other, in place of the stack"},
			&cli.StringFlag{Name: "issue", Usage: "`NUMBER` or address of upstream's issue, for patches without a trailer Fixes:"},
			&cli.StringFlag{Name: "report", Usage: "`FILE.json` of mpsforge verify, to show what ran; not with --first"},
			&cli.StringFlag{Name: "out", Value: "mpsforge-pr", Usage: "`DIR` for the texts"},
			&cli.StringFlag{Name: "mailbox", Usage: "write mails into `DIR`, and make no branches"},
			&cli.StringFlag{Name: "author", Usage: "`\"NAME <ADDRESS>\"` of the commits' author"},
			&cli.StringFlag{Name: "reviewed-by-human", Usage: "`\"NAME <ADDRESS>\"` of the person who has read all of it and answers for it"},
			&cli.BoolFlag{Name: "ready", Usage: "for review, not as drafts; needs --author and --reviewed-by-human"},
			&cli.BoolFlag{Name: "replace", Usage: "move branches that are at other commits"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be made"}),
		action: pullRequests,
	})
	command.Subcommands = []*cli.Command{prStatus(std)}
	return command
}

func ontoFlag() cli.Flag {
	return &cli.StringFlag{Name: "onto", Usage: "upstream's `COMMIT` to build the stack on (default: the baseline's)"}
}

func pullRequests(ctx context.Context, c call) (result, error) {
	options := ci.Options{Onto: c.String("onto"), Issue: c.String("issue"), Author: c.String("author"), Reviewer: c.String("reviewed-by-human"),
		Ready: c.Bool("ready"), First: c.Bool("first"), Out: c.String("out"), Mailbox: c.String("mailbox"), Replace: c.Bool("replace"),
		DryRun: c.Bool("dry-run")}
	for _, dir := range []*string{&options.Out, &options.Mailbox} {
		if *dir == "" {
			continue
		}
		var err error
		if *dir, err = filepath.Abs(*dir); err != nil { // printed commands change folders
			return result{}, err
		}
	}
	if options.First && c.String("report") != "" {
		return result{}, usagef("--report: a report is of the whole series, and shows nothing of --first")
	}
	if path := c.String("report"); path != "" {
		err := checkInput("--report", path)
		if err != nil {
			return result{}, err
		}
		if options.Report, err = reports.ReadFile(path); err != nil {
			return result{}, err
		}
	}
	checkout, series, err := c.openCheckout(ctx)
	if err != nil {
		return result{}, err
	}
	defer checkout.Close()
	files, err := c.seriesFiles()
	if err != nil {
		return result{}, err
	}
	if options.Series, err = patches.Lint(files, series.Baseline.Name, validate.ScenarioNames()); err != nil {
		return result{}, err
	}
	if options.First { // the stages are run on the whole series; TestFirstPullRequestKeepsThreadsAlive runs what this one claims
		if series, err = patches.LoadFirst(files, series.Baseline.Name); err != nil {
			return result{}, fmt.Errorf("%w; leave --first out for the stack", err)
		}
	} else if options.Runs, err = patches.LintRuns(files, series.Baseline.Name, validate.StageNames()); err != nil {
		return result{}, err
	}
	prepared, err := ci.Prepare(ctx, checkout, series, options, c.sink)
	if prepared == nil {
		return result{}, err
	}
	message := fmt.Sprintf("pull requests: %d, branches set: %d, files written: %d", len(prepared.Requests), len(prepared.Branches), len(prepared.Files))
	if prepared.DryRun {
		message = fmt.Sprintf("pull requests: %d, branches to set: %d, files to write: %d", len(prepared.Requests), len(prepared.Branches), len(prepared.Files))
	}
	found := result{value: prepared, message: message, text: func(w io.Writer) { printRequests(w, prepared, err == nil, message) }}
	if err == nil && len(prepared.Conflicts) > 0 {
		conflicts := func(p fork.PortedPatch) bool { return p.Outcome == fork.PortConflicts }
		err = conflictWith(prepared.Patches[slices.IndexFunc(prepared.Patches, conflicts)].Name, prepared.Checkout, prepared.Onto, options.First)
	}
	return found, err
}

// conflictWith says how to go on after a patch that conflicts.
func conflictWith(patch, checkout, onto string, first bool) error {
	beside := checkout + "-upstream"
	command := func(words ...string) string { return "\n  " + run.Command{Name: words[0], Args: words[1:]}.String() }
	worktree := command("git", "-C", checkout, "worktree", "add", "--detach", beside, onto)
	if first {
		return silentError{exitConflict, fmt.Sprintf("%s conflicts with %s; carry it there by hand, with the patch below patches/BASELINE/first of "+
			"mpsforge's clone:", patch, onto) + worktree + command("git", "-C", beside, "am", "--3way", "PATCH")}
	}
	return silentError{exitConflict, fmt.Sprintf("%s conflicts with %s; port the series to that commit first, and make the stack from the result:",
		patch, onto) +
		command("mpsforge", "port", "--checkout", checkout, "--to", onto, "--out", "patches/upstream") +
		worktree +
		command("mpsforge", "pr", "--checkout", beside, "--patches", "patches", "--baseline", "upstream", "--issue", "NUMBER")}
}

func printRequests(w io.Writer, prepared *ci.Prepared, whole bool, message string) {
	for _, patch := range prepared.Patches {
		fmt.Fprintf(w, "%-28s %s\n", patch.Name, patch.Outcome)
	}
	printConflicts(w, short(prepared.Onto), prepared.Conflicts)
	if lint := prepared.Lint; lint != nil {
		fmt.Fprintf(w, "style: %s\n", lint.How)
		for _, finding := range lint.Findings {
			fmt.Fprintf(w, "  %s\n", finding)
		}
		for _, reason := range lint.NotRun {
			fmt.Fprintf(w, "  could not run: %s\n", reason)
		}
	}
	if !whole || len(prepared.Conflicts) > 0 {
		return
	}
	for _, request := range prepared.Requests {
		fmt.Fprintf(w, "%-40s %4d lines  %s\n", request.Branch+request.Mail, request.Lines, request.Text)
	}
	for _, name := range prepared.Stale {
		fmt.Fprintf(w, "%s is not of this stack; if you do not need it: git -C %s branch -D %s\n", name, prepared.Checkout, name)
	}
	fmt.Fprintln(w, message)
	if len(prepared.Commands) > 0 {
		fmt.Fprintln(w, "\nNothing was pushed or opened. To do so:")
	}
	for _, line := range prepared.Commands {
		fmt.Fprintln(w, "  "+line)
	}
}

func prStatus(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "pr", name: "status", usage: "each patch's size, upstream status, and conflicts",
		about: `For each patch: its outcome on the commit (unchanged, moved, merged, already upstream, conflict), its changed lines
against upstream's limit, and its Upstream-Status. Writes nothing. Exit code 3 if a patch conflicts, 1 if one is too large.

  mpsforge pr status
  mpsforge pr status --onto origin/main --json`,
		flags: checkoutFlags(ontoFlag()),
		action: func(ctx context.Context, c call) (result, error) {
			checkout, series, err := c.openCheckout(ctx)
			if err != nil {
				return result{}, err
			}
			defer checkout.Close()
			status, err := ci.GetStatus(ctx, checkout, series, c.String("onto"), c.sink)
			if err != nil {
				return result{}, err
			}
			message := fmt.Sprintf("patches: %d, on %s; upstream allows %d changed lines a pull request", len(status.Patches), short(status.Onto), status.Limit)
			found := result{value: status, message: message, text: func(w io.Writer) {
				for _, patch := range status.Patches {
					fmt.Fprintln(w, patch)
					printConflicts(w, short(status.Onto), patch.Conflicts)
				}
				fmt.Fprintln(w, message)
			}}
			for _, patch := range status.Patches {
				switch {
				case len(patch.Conflicts) > 0:
					return found, conflictWith(patch.Name, status.Checkout, status.Onto, false)
				case patch.TooLarge && err == nil:
					err = silentError{exitFailed, patch.Name + " is larger than upstream allows"}
				}
			}
			return found, err
		},
	})
}

func short(commit string) string { return commit[:min(len(commit), 12)] }
