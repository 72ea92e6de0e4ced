package upstream

import (
	"fmt"
	"slices"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// A name on the list that no test has any more is found by exactly one shard, and no shard takes the tests of another for gone.
func TestEachShardJudgesItsNamesOnTheList(t *testing.T) {
	var real, gone []string
	for i := range 30 {
		real, gone = append(real, fmt.Sprintf("test_mps:TestMPS.test_%d", i)), append(gone, fmt.Sprintf("test_mps:TestMPS.test_gone_%d", i))
	}
	facts := patches.UpstreamFacts{Failures: map[string][]string{"cause": append(slices.Clone(real[:20]), gone[:20]...)},
		LeftOut: map[string][]string{"reason": append(slices.Clone(real[25:]), gone[20:]...)}}
	names := map[string]bool{}
	for _, id := range real {
		names[id] = true
	}
	for of := 1; of <= 9; of++ {
		var stale []string
		for i := range of {
			shard := stage.Shard{Index: i + 1, Of: of}
			r := &runner{env: &stage.Env{Options: stage.Options{Shard: shard}, Machine: &reports.Machine{}}, facts: facts, listed: list(facts), names: names}
			for _, id := range real[:25] {
				if shard.Has(id) {
					one := end{kind: failed, cause: "cause"}
					if r.listed.failures[id] == "" {
						one.kind = passed
					}
					r.all = append(r.all, &test{file: "test_mps", name: id[len("test_mps:"):], patched: []end{one}})
				}
			}
			v := r.verdicts()
			if len(v.unlisted)+len(v.fixed)+len(v.differ)+len(v.flaky) > 0 {
				t.Errorf("%s: %+v", shard, v)
			}
			if path, err := r.propose(v); path != "" || err != nil {
				t.Errorf("%s proposes a list of its part alone: %s, %v", shard, path, err)
			}
			stale = append(stale, v.stale...)
		}
		slices.Sort(stale)
		require.Equal(t, stale, slices.Sorted(slices.Values(gone)), of, "shards find")
	}
}
