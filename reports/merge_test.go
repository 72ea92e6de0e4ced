package reports_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
	"mpsforge/internal/schemas/schematest"
	"mpsforge/reports"
)

// shards are the reports of three shards of a run: stage checkout in each, stage operators divided into 4, 5 and 1 jobs. The third
// shard judges what only one can.
func shards() (all []*reports.Report, names []string) {
	for i, jobs := range []int{4, 5, 1} {
		r := &reports.Report{Schema: reports.Schema, Tool: reports.Tool{Name: "mpsforge", Version: "v1", Commit: "c"}, Started: time.Date(2026, 1, 2, 3,
			4-i, 0, 0, time.UTC), Seconds: 2, Seed: 7,
			Identity: reports.Identity{Baseline: "v1.0.0", SeriesDigest: "d", Patches: []string{"one"}}, Limits: []string{"It shows nothing else."},
			Choices: map[string]string{"shard": fmt.Sprintf("%d/3", i+1), "operators": "add"}, Shard: &reports.Shard{Index: i + 1, Of: 3},
			Stages: []reports.Stage{{Name: "checkout", Question: "?", Verdict: reports.Passed,
				Checks: []reports.Check{{Name: "exact", Verdict: reports.Passed}}},
				{Name: "operators", Question: "?", Seconds: 1, Part: &reports.Part{Jobs: jobs, Of: 10, Digest: "jobs", Done: true},
					Counts: map[string]int64{"jobs": int64(jobs)},
					Facts:  []reports.Fact{{Name: "entries", Value: "10"}, {Name: "library", Value: fmt.Sprint("l", i)}},
					Tables: []reports.Table{{Title: "coverage", Key: 1, Columns: []string{"form", "jobs"},
						Rows: [][]string{{fmt.Sprint("form ", i), "1"}, {"all", fmt.Sprint(jobs)}}},
						{Title: "not alone", Key: 1, Columns: []string{"reason", "jobs", "which"}, Rows: [][]string{{"no kernel", "1", fmt.Sprint("op", i)}}},
						{Title: "flaky", Columns: []string{"test"}, Rows: [][]string{{fmt.Sprint("test ", i)}, {"of all"}}},
						{Title: "limit", Columns: []string{"test", fmt.Sprintf("%d threads", 4+i/2)}, Rows: [][]string{{"linear", fmt.Sprint(i)}}}}},
				{Name: "overlay", Question: "?", Verdict: reports.NotRun, Reason: "not asked for"}}}
		operators := &r.Stages[1]
		operators.Add(reports.Check{Name: "by threads", Verdict: reports.Passed, Detail: fmt.Sprintf("right: %d", jobs), Seconds: 1})
		whole := reports.Check{Name: "without hand-over", Subject: "ablation", Verdict: reports.Skipped, Shard: 3, Detail: "shard 3/3 judges it"}
		if i == 2 {
			whole = reports.Check{Name: whole.Name, Subject: whole.Subject, Verdict: reports.Passed, Detail: "noticed by 3"}
		}
		operators.Add(whole)
		r.Conclude([]string{"checkout", "operators"})
		all, names = append(all, r), append(names, fmt.Sprintf("%d.json", i+1))
	}
	return all, names
}

// A shard is never a pass, although its stages passed, and says what it is.
func TestShardIsNoPass(t *testing.T) {
	all, _ := shards()
	if r := all[0]; r.Verdict != reports.Skipped || len(r.Missing) > 0 || r.Summary != "incomplete, passed 2 of 3 stages; shard 1/3 alone, no whole run" {
		t.Errorf("%s, %v, %s", r.Verdict, r.Missing, r.Summary)
	}
	if err := schematest.Validate("report", []byte(rendered(t, all[0], "json"))); err != nil {
		t.Error(err)
	}
}

// All shards, in whatever order, make a report of the whole.
func TestMergeMakesAWholeReport(t *testing.T) {
	all, names := shards()
	slices.Reverse(all)
	slices.Reverse(names)
	merged, err := reports.Merge(all, names)
	require.NoError(t, err)
	operators := merged.Stage("operators")
	var checks []string
	for _, check := range operators.Checks {
		checks = append(checks, fmt.Sprint(check.Name, ", ", check.Verdict, ", ", check.Detail))
	}
	for what, pair := range map[string][2]string{
		"verdict": {string(merged.Verdict), "passed"}, "summary": {merged.Summary, "passed 2 of 3 stages"},
		"shard": {fmt.Sprint(merged.Shard, merged.Merged), "<nil> 3"}, "choices": {fmt.Sprint(merged.Choices), "map[operators:add]"},
		"started": {merged.Started.Format("15:04"), "03:02"}, "seconds": {fmt.Sprint(merged.Seconds, operators.Seconds), "6 3"},
		"counts": {fmt.Sprint(operators.Counts), "map[jobs:10]"}, "part": {fmt.Sprint(operators.Part), "<nil>"},
		"checks": {strings.Join(checks, "\n"),
			"by threads, passed, shard 1/3: right: 4; shard 2/3: right: 5; shard 3/3: right: 1\nwithout hand-over, passed, noticed by 3"},
		"facts":       {fmt.Sprint(operators.Facts), "[{entries 10} {library, shard 1/3 l0} {library, shard 2/3 l1} {library, shard 3/3 l2}]"},
		"tables":      {fmt.Sprint(operators.Tables[0].Rows), "[[form 2 1] [form 1 1] [form 0 1] [all 10]]"},
		"added texts": {fmt.Sprint(operators.Tables[1].Rows), "[[no kernel 3 op0, op1, op2]]"},
		"rows":        {fmt.Sprint(operators.Tables[2].Rows), "[[test 0] [of all] [test 1] [test 2]]"},
		"columns": {fmt.Sprint(len(operators.Tables), operators.Tables[3], operators.Tables[4].Title),
			"5 {limit  0 [test 4 threads] [[linear 0] [linear 1]]}limit, shard 3/3"},
		"others": {string(merged.Stage("overlay").Verdict), "not run"}, "in each": {fmt.Sprint(len(merged.Stage("checkout").Checks)), "1"},
	} {
		require.Equal(t, pair[0], pair[1], what)
	}
	if err := schematest.Validate("report", []byte(rendered(t, merged, "json"))); err != nil {
		t.Error(err)
	}
	if page := rendered(t, merged, "markdown"); !strings.Contains(page, "| merged from | 3 shards; ") {
		t.Error("the page does not say that it is of shards")
	}
	if merged, err = reports.Merge(all, names, "overlay"); err != nil || merged.Verdict != reports.Skipped || !slices.Equal(merged.Missing,
		[]string{"overlay"}) {
		t.Errorf("a required stage that no shard ran: %v, %s", err, merged.Verdict)
	}
}

// What is not all the shards of one run is refused, with the reason.
func TestMergeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(all []*reports.Report) []*reports.Report
		words  string
	}{
		"none":        {func([]*reports.Report) []*reports.Report { return nil }, "there are none"},
		"missing":     {func(all []*reports.Report) []*reports.Report { return all[1:2] }, "missing: shard 1/3, 3/3"},
		"twice":       {func(all []*reports.Report) []*reports.Report { return append(all, all[1]) }, "shard 2/3 is there twice: 2.json and 4.json"},
		"no shard":    {func(all []*reports.Report) []*reports.Report { all[1].Shard = nil; return all }, "2.json is not the report of a shard"},
		"index":       {func(all []*reports.Report) []*reports.Report { all[1].Shard.Index = 4; return all }, "which cannot be"},
		"of":          {func(all []*reports.Report) []*reports.Report { all[1].Shard.Of = 4; return all }, "differs from 1.json in the number of shards"},
		"series":      {func(all []*reports.Report) []*reports.Report { all[1].Identity.SeriesDigest = "e"; return all }, `in series: "e" and "d"`},
		"baseline":    {func(all []*reports.Report) []*reports.Report { all[1].Identity.Baseline = "v2"; return all }, "in baseline"},
		"base commit": {func(all []*reports.Report) []*reports.Report { all[1].Identity.BaseCommit = "b"; return all }, "in base commit"},
		"tree":        {func(all []*reports.Report) []*reports.Report { all[1].Identity.HeadTree = "h"; return all }, "in tree"},
		"seed":        {func(all []*reports.Report) []*reports.Report { all[1].Seed = 8; return all }, "in seed"},
		"form":        {func(all []*reports.Report) []*reports.Report { all[1].Quick = true; return all }, `in form: "short" and "long"`},
		"commit":      {func(all []*reports.Report) []*reports.Report { all[1].Tool.Commit = "e"; return all }, "in mpsforge"},
		"options":     {func(all []*reports.Report) []*reports.Report { all[1].Choices["operators"] = "mul"; return all }, "in options"},
		"system":      {func(all []*reports.Report) []*reports.Report { all[1].Machine.System = "darwin/arm64"; return all }, "in system"},
		"other jobs": {func(all []*reports.Report) []*reports.Report { all[1].Stages[1].Part.Digest = "others"; return all },
			"what they ran was not the same"},
		"lost jobs": {func(all []*reports.Report) []*reports.Report { all[1].Stages[1].Part.Jobs = 4; return all },
			"of the 10 jobs of stage operators the shards had 9"},
	} {
		t.Run(name, func(t *testing.T) {
			all, names := shards()
			if _, err := reports.Merge(c.change(all), append(names, "4.json")); !errors.Is(err, reports.ErrMerge) || !strings.Contains(err.Error(), c.words) {
				t.Error(err)
			}
		})
	}
}

// Whatever went wrong in one shard, or was not judged in it, the whole has not passed.
func TestMergeKeepsWhatIsNoPass(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(operators *reports.Stage)
		verdict reports.Verdict
		reason  string
	}{
		"a failed check": {func(s *reports.Stage) { s.Add(reports.Check{Name: "add", Verdict: reports.Failed, Detail: "wrong"}) }, reports.Failed,
			"shard 3/3: add: wrong"},
		"a failed part of a check": {func(s *reports.Stage) {
			s.Checks[0].Verdict, s.Verdict, s.Reason = reports.Failed, reports.Failed, "by threads: wrong"
		}, reports.Failed, "shard 3/3: by threads: wrong"},
		"a stage that broke off": {func(s *reports.Stage) { s.Verdict, s.Reason, s.Part, s.Checks = reports.Failed, "no library", nil, nil },
			reports.Failed, "shard 3/3: no library"},
		"a stage that could not run": {func(s *reports.Stage) {
			s.Verdict, s.Reason, s.Part, s.Checks = reports.Skipped, "no torch", nil, s.Checks[1:]
		}, reports.Skipped,
			"shard 3/3 did not judge its part: no torch"},
		"a part that broke off": {func(s *reports.Stage) { s.Verdict, s.Reason, s.Part.Done = reports.Skipped, "device cpu", false }, reports.Skipped,
			"shard 3/3 did not judge its part: device cpu"},
		"a part none of whose checks could run": {func(s *reports.Stage) {
			s.Verdict, s.Reason, s.Checks[0].Verdict = reports.Skipped, "none could", reports.Skipped
		}, reports.Passed, ""},
		"a check that nobody has judged": {func(s *reports.Stage) { s.Checks = s.Checks[:1] }, reports.Failed,
			"without hand-over: shard 3/3 was to judge it, and did not"},
		"an empty part": {func(s *reports.Stage) { s.Verdict, s.Reason, s.Part.Jobs = reports.Skipped, "none", 0 }, reports.Passed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all, names := shards()
			operators := &all[2].Stages[1]
			c.change(operators)
			if operators.Part != nil && operators.Part.Jobs == 0 {
				all[1].Stages[1].Part.Jobs++ // it has the job
			}
			merged := require.One(reports.Merge(all, names))(t)
			if merged.Verdict != c.verdict || merged.Stage("operators").Reason != c.reason {
				t.Errorf("%s; %s; %q", merged.Verdict, merged.Stage("operators").Verdict, merged.Stage("operators").Reason)
			}
		})
	}
	all, names := shards()
	all[1].Stages[1].Checks[0].Verdict = reports.Skipped
	merged, err := reports.Merge(all, names)
	if err != nil || merged.Stage("operators").Checks[0].Verdict != reports.Skipped {
		t.Errorf("a check that one shard skipped passed: %v", err)
	}
	all, names = shards()
	all[1].Stages[0].Verdict, all[1].Stages[0].Reason = reports.NotRun, "not asked for"
	if merged, err = reports.Merge(all, names); err != nil || merged.Verdict != reports.Skipped || !slices.Equal(merged.Missing, []string{"checkout"}) {
		t.Errorf("a stage that one shard did not run passed: %v, %s", err, merged.Verdict)
	}
}

// Merging changes none of the reports that it reads.
func TestMergeLeavesItsShardsAlone(t *testing.T) {
	all, names := shards()
	before := require.One(json.Marshal(all))(t)
	require.One(reports.Merge(all, names))(t)
	if after, err := json.Marshal(all); err != nil || string(after) != string(before) {
		t.Errorf("%v\n%s\n%s", err, before, after)
	}
}
