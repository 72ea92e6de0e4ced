package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// report is that of the stage, run as a shard, or as a whole.
func (s *standIn) report(shard stage.Shard) *reports.Report {
	s.r.env.Shard = shard
	err := s.r.run(s.t.Context())
	if _, empty := stage.SkipReason(err); err != nil && !empty {
		s.t.Fatal(err)
	}
	r := &reports.Report{Seed: s.r.env.Seed}
	if !shard.Whole() {
		r.Shard = &reports.Shard{Index: shard.Index, Of: shard.Of}
		s.r.stage.Part.Done = true // as the pipeline says it
	}
	r.Stages = append(r.Stages, *s.r.stage)
	return r
}

// stages gives reports of one run after another, over stand-ins that were prepared in the same way.
func stages(t *testing.T, prepare func(*standIn)) func(stage.Shard) *reports.Report {
	return func(shard stage.Shard) *reports.Report {
		s := newStandIn(t, patches.AllPatches)
		s.r.env.Host.Flavours = []builds.Flavour{builds.Plain, builds.Thread}
		prepare(s)
		return s.report(shard)
	}
}

// sameChecks are all checks of reports, each as often as it is there.
func sameChecks(all ...*reports.Report) (checks []string) {
	for _, report := range all {
		for _, c := range report.Stages[0].Checks {
			c.Detail, _, _ = strings.Cut(c.Detail, "; again: ") // where files of a test are
			checks = append(checks, fmt.Sprintf("%s, %s: %s, %s", c.Name, c.Subject, c.Verdict, c.Detail))
		}
	}
	slices.Sort(checks)
	return checks
}

// The shards of the stage, 1 to 8 of them, run over stand-ins for host builds, have together the checks of a whole run, each once, with
// the same verdicts and counts.
func TestShardsHaveTheChecksOfAWholeRun(t *testing.T) {
	run := stages(t, func(s *standIn) {
		// queues is noticed by one scenario; what fails without locks fails with it, too, and shards must know that of each other.
		s.fails["without queues: two"], s.fails["without locks: one"], s.fails["patched: one"] = crashes, wrongValue, wrongValue
	})
	whole := run(stage.Shard{})
	want := sameChecks(whole)
	if len(want) != 2+3+1+3*3+4 {
		t.Fatalf("%d checks: %q", len(want), want)
	}
	for of := 1; of <= 8; of++ {
		var parts []*reports.Report
		var names []string
		for i := range of {
			parts, names = append(parts, run(stage.Shard{Index: i + 1, Of: of})), append(names, fmt.Sprint(i+1))
		}
		merged := require.One(reports.Merge(parts, names))(t)
		for what, all := range map[string][]*reports.Report{"shards": parts, "shards, merged": {merged}} {
			require.Equal(t, sameChecks(all...), want, of, what)
		}
		require.Equal(t, fmt.Sprint(merged.Stages[0].Facts), fmt.Sprint(whole.Stages[0].Facts), of, "shards: facts")
		require.Equal(t, merged.Verdict, reports.Failed, of, "shards")
	}
}

// Each check of the reference pool is made by one shard.
func TestShardsHaveTheChecksOfThePool(t *testing.T) {
	for of := range 3 {
		made := map[string]int{}
		var want []string
		for i := range of + 1 {
			s := newStandIn(t)
			s.r.env.Shard = stage.Shard{Index: i + 1, Of: of + 1}
			s.r.env.Identity.Patches = append(s.r.env.Identity.Patches, poolPatches...)
			built := require.One(s.build(t.Context(), s.snapshot(nil), builds.Plain))(t)
			require.NoError(t, s.r.pool(t.Context(), built))
			for _, check := range s.r.stage.Checks {
				made[check.Name]++
			}
			want = require.One(s.r.poolJobs())(t)
		}
		for _, name := range want {
			require.Equal(t, made[name], 1, of+1, "shards make", name, "times")
		}
		require.Equal(t, len(made), len(want), of+1, "shards make checks")
	}
}

// Every job of the real table is in it once, under a name of its own, and no name changes with the form: else it would change shards.
func TestJobsHaveNamesOfTheirOwn(t *testing.T) {
	s := newStandIn(t, patches.AllPatches)
	s.r.table = scenarios()
	s.r.env.Identity.Patches = append(s.r.env.Identity.Patches, poolPatches...)
	short := require.One(s.r.jobs([]string{"op-fill"}, nil))(t)
	pool := require.One(s.r.poolJobs())(t)
	if want := 1 + len(scenarios()) + len(pool) + len(s.r.env.Series.Patches); len(short) != want || len(pool) < 90 {
		t.Errorf("%d jobs, %d of the pool, want %d", len(short), len(pool), want)
	}
	s.r.env.Quick = false
	long := require.One(s.r.jobs([]string{"op-fill"}, nil))(t)
	for name := range long {
		if short[name] == 0 {
			t.Errorf("the long form alone has %s", name)
		}
	}
}

// Shards of runtime that are missing, there twice, of another run or of other scenarios make no report.
func TestMergeRefusesOtherShardsOfRuntime(t *testing.T) {
	run := stages(t, func(*standIn) {})
	one, two := run(stage.Shard{Index: 1, Of: 2}), run(stage.Shard{Index: 2, Of: 2})
	if one.Stages[0].Part.Jobs == 0 || one.Stages[0].Part.Jobs == one.Stages[0].Part.Of {
		t.Fatalf("%+v", one.Stages[0].Part)
	}
	seed := *two
	seed.Seed++
	stale := stages(t, func(s *standIn) { s.r.table[2].Name = "four" })(stage.Shard{Index: 2, Of: 2})
	for words, all := range map[string][]*reports.Report{"missing: shard 2/2": {one}, "there twice": {one, two, two}, "in seed": {one, &seed},
		"what they ran was not the same": {one, stale}} {
		if _, err := reports.Merge(all, []string{"1.json", "2.json", "3.json"}); !errors.Is(err, reports.ErrMerge) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}
