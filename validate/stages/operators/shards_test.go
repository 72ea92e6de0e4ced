package operators

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/validate/stage"
)

// The jobs of all shards are those of a whole run, each once, for 1 to 9 shards, in the long form and the short one; also what runs
// beside another, which depends on what runs alone in other shards.
func TestShardsHaveTheJobsOfAWholeRun(t *testing.T) {
	p := plan{seed: 11}
	var entries []entry
	for i := range 120 {
		entries = append(entries, someEntries[i%len(someEntries)])
		entries[i].Name += fmt.Sprint(" ", i)
	}
	runsAlone := func(jobs []job) (ends []outcome) { // two thirds of them
		for i, j := range jobs {
			end := right
			if len(j.Operator)%3 == 0 {
				end = notAlone
			}
			ends = append(ends, outcome{jobs[i], result{Status: end}})
		}
		return ends
	}
	all := func(shard stage.Shard) (jobs []string, partners map[string]string, probed int) {
		mine := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return !shard.Has(e.Name) })
		basics := p.basics(mine)
		ends := runsAlone(basics)
		partners, err := p.partners(entries, running(mine, ends), ends, func(jobs []job) ([]outcome, error) {
			probed += len(jobs)
			return runsAlone(jobs), nil
		})
		require.NoError(t, err)
		for _, j := range slices.Concat(basics, p.others(mine, partners), p.sample(mine), p.sanitized(mine)) {
			jobs = append(jobs, keyOf(j))
		}
		return jobs, partners, probed
	}
	want, partnersWanted, probed := all(stage.Shard{})
	if probed > 0 {
		t.Errorf("a whole run knows what runs alone, and probed %d", probed)
	}
	slices.Sort(want)
	for of := 1; of <= 9; of++ {
		var have []string
		partners := map[string]string{}
		for i := range of {
			jobs, its, _ := all(stage.Shard{Index: i + 1, Of: of})
			have = append(have, jobs...)
			maps.Copy(partners, its)
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%d shards have %d jobs, a whole run has %d, or others", of, len(have), len(want))
		}
		if !maps.Equal(partners, partnersWanted) {
			t.Errorf("%d shards: %v, a whole run: %v", of, partners, partnersWanted)
		}
	}
}
