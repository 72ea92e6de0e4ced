package validate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/internal/words"
	"mpsforge/patches"
	"mpsforge/reports"
	runtimestage "mpsforge/validate/stages/runtime"
)

// ErrReport is returned, wrapped, for a report that cannot be recorded as the last run of a baseline's stages.
var ErrReport = errors.New("the report cannot be recorded")

// RecordRuns puts what reports say of their stages into the recorded runs of the series' baseline. They must be of this series, on
// this checkout as it is, and of whole stages. Excused stages are those that cannot run there.
func RecordRuns(runs *patches.Runs, series *patches.Series, exact *fork.Exactness, tree patches.Tree, excused []string, all []*reports.Report) error {
	if len(exact.Deviations) > 0 {
		return fmt.Errorf("%w: %s", fork.ErrDirty, exact.Deviations[0])
	}
	var added []patches.Run
	for _, report := range all {
		if err := checkReport(report, series, exact, nil); err != nil {
			return fmt.Errorf("%w: %w", ErrReport, err)
		}
		run := patches.Run{Date: report.Started, Tool: toolOf(report.Tool), System: report.Machine.System,
			SeriesDigest: report.Identity.SeriesDigest, Tree: exact.BaseTree, Form: formOf(report), Seed: report.Seed}
		for i := range report.Stages {
			if stage := &report.Stages[i]; stage.Reason != reports.NotAsked {
				run.Stages = append(run.Stages, recorded(stage, slices.Contains(excused, stage.Name)))
			}
		}
		added = append(added, run)
	}
	runs.Schema, runs.Tag = 1, series.Baseline.Tag
	runs.Add(map[string]patches.Tree{exact.BaseTree: tree}, added...)
	return nil
}

// toolOf names the mpsforge of a run, as records keep it.
func toolOf(tool reports.Tool) string { return strings.TrimSpace(tool.Version + " " + tool.Commit) }

func formOf(report *reports.Report) string {
	if report.Quick {
		return "quick"
	}
	return "long"
}

// RecordAblation puts what reports say of patches that were left out into the table of the series' baseline. They must be of this
// series, on this checkout as it is.
func RecordAblation(table *patches.Ablation, series *patches.Series, exact *fork.Exactness, all []*reports.Report) error {
	if len(exact.Deviations) > 0 {
		return fmt.Errorf("%w: %s", fork.ErrDirty, exact.Deviations[0])
	}
	for _, report := range all {
		if err := checkReport(report, series, exact, []string{"ablate", "flavours"}); err != nil {
			return fmt.Errorf("%w: %w", ErrReport, err)
		}
		var rows []patches.AblatedPatch
		for _, stage := range report.Stages {
			for _, check := range stage.Checks {
				if name, is := strings.CutPrefix(check.Name, "without "); is && check.Subject == "ablation" {
					claims := claimsOf(series, name)
					noticed := noticedBy(check)
					if lost := unnoticed(claims, noticed); check.Verdict == reports.Passed && len(lost) > 0 {
						return fmt.Errorf("%w: the trailers of %s have changed since: nothing in it notices %s; run mpsforge verify again", ErrReport, name,
							strings.Join(lost, ", "))
					}
					rows = append(rows, patches.AblatedPatch{Patch: name, Stage: stage.Name, Verdict: string(check.Verdict), Detail: check.Detail,
						Noticed: noticed, Claims: claims, Date: report.Started,
						Tool: toolOf(report.Tool), System: report.Machine.System, SeriesDigest: report.Identity.SeriesDigest, Tree: exact.BaseTree,
						Form: formOf(report), Seed: report.Seed})
				}
			}
		}
		if len(rows) == 0 {
			return fmt.Errorf("%w: it left no patch out; run mpsforge verify with --ablate", ErrReport)
		}
		table.Add(series, rows...)
	}
	return nil
}

// claimsOf are the values of the Scenario trailers of a patch.
func claimsOf(series *patches.Series, name string) []string {
	at := slices.IndexFunc(series.Patches, func(p *patches.Patch) bool { return p.Name == name })
	if at < 0 {
		return nil // a row of a patch that the series does not have; the table drops it
	}
	return series.Patches[at].Header.Values("Scenario")
}

// unnoticed are the scenarios of stage runtime that were named, but noticed nothing.
func unnoticed(claims []string, noticed []patches.Notice) []string {
	return slices.DeleteFunc(scenariosAmong(claims), func(name string) bool {
		return slices.ContainsFunc(noticed, func(n patches.Notice) bool { return n.Scenario == name })
	})
}

// scenariosAmong are those of a patch's claims that are scenarios of stage runtime, and not the tests of another one.
func scenariosAmong(claims []string) []string {
	known := runtimestage.ScenarioNames()
	return slices.DeleteFunc(slices.Clone(claims), func(name string) bool { return !slices.Contains(known, name) })
}

// noticedBy reads the cells of a patch that was left out: the path is the scenario and the flavour.
func noticedBy(check reports.Check) []patches.Notice {
	var all []patches.Notice
	for _, cell := range check.Cells {
		at := strings.LastIndex(cell.Path, ", ")
		if at < 0 {
			continue // of a stage without scenarios
		}
		all = append(all, patches.Notice{Scenario: cell.Path[:at], Flavour: cell.Path[at+2:], Threads: cell.Threads, Outcome: string(cell.Outcome),
			Signature: cell.Signature})
	}
	return all
}

// checkReport refuses a report of something else than the series on the checkout, and one made with choices that are not allowed.
func checkReport(report *reports.Report, series *patches.Series, exact *fork.Exactness, allowed []string) error {
	is, again := report.Identity, "; run mpsforge verify on it again"
	seen := report.Stage("checkout")
	wasExact := seen != nil && slices.ContainsFunc(seen.Checks, func(c reports.Check) bool { return c.Name == "exact" && c.Verdict == reports.Passed })
	switch {
	case report.Shard != nil:
		return fmt.Errorf("it is shard %s, a part of a run; mpsforge report merge makes a whole report of all shards", report.Shard)
	case is.Baseline != series.Baseline.Name:
		return fmt.Errorf("it is of baseline %s, the series is of %s", is.Baseline, series.Baseline.Name)
	case is.SeriesDigest != series.Digest():
		return fmt.Errorf("it is of the series with digest %.12s, this one has %.12s%s", is.SeriesDigest, series.Digest(), again)
	case seen == nil || seen.Verdict == reports.NotRun:
		return errors.New("the stage checkout did not run, so it does not say what the checkout held; name that stage, too, with --stages")
	case !wasExact:
		return errors.New("its stage checkout did not find the baseline with exactly this series" + again)
	case is.BaseCommit != exact.BaseCommit || is.HeadTree != exact.HeadTree:
		return fmt.Errorf("it is of another checkout: base %.12s and tree %.12s, here they are %.12s and %.12s", is.BaseCommit, is.HeadTree,
			exact.BaseCommit, exact.HeadTree)
	}
	for name, value := range report.Choices {
		if slices.Contains(allowed, name) {
			continue
		}
		return fmt.Errorf("it was made with --%s %s, so that stages did not run in their short or long form%s without that flag", name, value, again)
	}
	return nil
}

// recorded is what is kept of a stage.
func recorded(stage *reports.Stage, excused bool) patches.StageRun {
	run := patches.StageRun{Name: stage.Name, Verdict: string(stage.Verdict), Reason: words.FirstLine(stage.Reason), Checks: map[string]int{},
		Counts: stage.Counts}
	run.Excused = excused && stage.Verdict != reports.Passed && stage.Verdict != reports.Failed
	for _, check := range stage.Checks {
		run.Checks[string(check.Verdict)]++
		_, flavour, _ := strings.Cut(check.Subject, ", ")
		if (check.Verdict == reports.Passed || check.Verdict == reports.Failed) && slices.Contains(builds.Flavours(), builds.Flavour(flavour)) &&
			!slices.Contains(run.Flavours, flavour) {
			run.Flavours = append(run.Flavours, flavour)
		}
	}
	return run
}
