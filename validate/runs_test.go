package validate

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork"
	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
)

// What is recorded of a stage is what its checks say: their verdicts, and the flavours that were really checked. A stage that the run
// left out keeps its earlier run; one that could not run, or was not reached, has no pass.
func TestRecordedStages(t *testing.T) {
	series := &patches.Series{Baseline: patches.Baseline{Name: "v1.0.0", Tag: "v1.0.0"}}
	exact := &fork.Exactness{BaseCommit: "base", BaseTree: "tree", HeadTree: "head"}
	check := func(name, subject string, verdict reports.Verdict) reports.Check {
		return reports.Check{Name: name, Subject: subject, Verdict: verdict}
	}
	report := &reports.Report{Quick: true, Seed: 7, Identity: reports.Identity{Baseline: "v1.0.0", SeriesDigest: series.Digest(), BaseCommit: "base",
		HeadTree: "head"},
		Stages: []reports.Stage{
			{Name: "series", Verdict: reports.NotRun, Reason: reports.NotAsked},
			{Name: "checkout", Verdict: reports.Passed, Checks: []reports.Check{check("exact", "checkout", reports.Passed)}},
			{Name: "runtime", Verdict: reports.Failed, Reason: "linear: crashed\nand more", Counts: map[string]int64{"programs": 3}, Checks: []reports.Check{
				check("linear", "stock, plain", reports.Passed), check("linear", "patched, plain", reports.Failed),
				check("mlp", "patched, tsan", reports.Passed), check("mlp", "patched, asan", reports.Skipped)}},
			{Name: "device", Verdict: reports.Skipped, Reason: "no Metal"},
			{Name: "upstream", Verdict: reports.Skipped, Reason: "no tests"},
			{Name: "overlay", Verdict: reports.NotRun, Reason: "runtime failed"},
		}}
	before := patches.Run{Tree: "tree", Stages: []patches.StageRun{{Name: "series", Verdict: "passed", Checks: map[string]int{"passed": 1}}}}
	runs := patches.Runs{Runs: []patches.Run{before}, Trees: map[string]patches.Tree{"tree": {}}}
	require.NoError(t, RecordRuns(&runs, series, exact, patches.Tree{Commit: "base"}, []string{"device", "runtime"}, []*reports.Report{report}))
	if len(runs.Runs) != 2 || runs.Runs[0].Stages[0].Name != "series" || runs.Runs[1].Form != "quick" || runs.Runs[1].Seed != 7 ||
		runs.Trees["tree"].Commit != "base" {
		t.Fatalf("%+v", runs)
	}
	for i, want := range []patches.StageRun{
		{Name: "checkout", Verdict: "passed", Checks: map[string]int{"passed": 1}},
		{Name: "runtime", Verdict: "failed", Reason: "linear: crashed", Flavours: []string{"plain", "tsan"}, Checks: map[string]int{"passed": 2,
			"failed": 1, "skipped": 1}},
		{Name: "device", Verdict: "skipped", Reason: "no Metal", Excused: true},
		{Name: "upstream", Verdict: "skipped", Reason: "no tests"},
		{Name: "overlay", Verdict: "not run", Reason: "runtime failed"},
	} {
		got := runs.Runs[1].Stages[i]
		if got.Name != want.Name || got.Verdict != want.Verdict || got.Reason != want.Reason || got.Excused != want.Excused ||
			!slices.Equal(got.Flavours, want.Flavours) || !maps.Equal(got.Checks, want.Checks) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	report.Shard = &reports.Shard{Index: 1, Of: 2}
	require.Is(t, RecordRuns(&runs, series, exact, patches.Tree{}, nil, []*reports.Report{report}), ErrReport, "a shard")
	report.Shard = nil
	report.Choices = map[string]string{"only": "linear"}
	require.Is(t, RecordRuns(&runs, series, exact, patches.Tree{}, nil, []*reports.Report{report}), ErrReport, "a report of some tests alone")
}

// Of a run with patches left out each row is kept: the stage's verdict, and the scenarios that noticed, by flavour, threads and
// signature. Reports of something else, of parts of a stage, or without such rows are refused.
func TestRecordedAblation(t *testing.T) {
	series := &patches.Series{Baseline: patches.Baseline{Name: "v1.0.0", Tag: "v1.0.0"}, Patches: []*patches.Patch{{Name: "locks"}, {Name: "slots"}}}
	exact := &fork.Exactness{BaseCommit: "base", BaseTree: "tree", HeadTree: "head"}
	report := &reports.Report{Seed: 7, Identity: reports.Identity{Baseline: "v1.0.0", SeriesDigest: series.Digest(), BaseCommit: "base",
		HeadTree: "head"}, Choices: map[string]string{"ablate": "all"},
		Stages: []reports.Stage{
			{Name: "checkout", Verdict: reports.Passed, Checks: []reports.Check{{Name: "exact", Verdict: reports.Passed}}},
			{Name: "runtime", Checks: []reports.Check{{Name: "items", Subject: "patched, plain", Verdict: reports.Passed},
				{Name: "without slots", Subject: "ablation", Verdict: reports.Skipped, Detail: "its proof is: slot conformance"},
				{Name: "without locks", Subject: "ablation", Verdict: reports.Passed, Detail: "fail without it: items, program \"a, b\"", Cells: []reports.Cell{
					{Path: "items, tsan", Threads: 4, Outcome: reports.OutcomeCrashed, Signature: "5 second-encoder"}, {Path: `program "a, b", plain`,
						Threads: 1, Outcome: reports.OutcomeHung}}}}}}}
	var table patches.Ablation
	require.NoError(t, RecordAblation(&table, series, exact, []*reports.Report{report}))
	want := []patches.Notice{{Scenario: "items", Flavour: "tsan", Threads: 4, Outcome: "crashed", Signature: "5 second-encoder"},
		{Scenario: `program "a, b"`, Flavour: "plain", Threads: 1, Outcome: "hung"}}
	if len(table.Patches) != 2 || table.Patches[0].Patch != "locks" || !slices.Equal(table.Patches[0].Noticed, want) ||
		table.Patches[0].Form != "long" || table.Patches[0].Seed != 7 ||
		table.Patches[0].SeriesDigest != series.Digest() || table.Patches[1].Verdict != "skipped" || table.Patches[1].Stage != "runtime" {
		t.Errorf("%+v", table)
	}
	claimed := *series
	claimed.Patches = slices.Clone(series.Patches)
	claimed.Patches[0] = &patches.Patch{Name: "locks", Header: patches.Header{Trailers: []patches.Trailer{{Key: "Scenario", Value: "linear"}}}}
	if err := RecordAblation(&table, &claimed, exact, []*reports.Report{report}); !errors.Is(err, ErrReport) ||
		!strings.Contains(err.Error(), "the trailers of locks have changed since: nothing in it notices linear") {
		t.Errorf("a trailer that came after the run: %v", err)
	}
	for name, spoil := range map[string]func(r *reports.Report){
		"another series":  func(r *reports.Report) { r.Identity.SeriesDigest = "old" },
		"some scenarios":  func(r *reports.Report) { r.Choices = map[string]string{"ablate": "all", "scenarios": "items"} },
		"no patch is out": func(r *reports.Report) { r.Stages = r.Stages[:1] },
	} {
		other := *report
		spoil(&other)
		require.Is(t, RecordAblation(&table, series, exact, []*reports.Report{&other}), ErrReport, name)
	}
	if err := RecordAblation(&table, series, &fork.Exactness{Deviations: []string{"a.mm differs"}}, []*reports.Report{report}); !errors.Is(err, fork.ErrDirty) {
		t.Errorf("a changed checkout: %v", err)
	}
}
