package validate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

// Every job is in exactly one of 1 to 9 shards, which are about equally large: the Python tests, PyTorch's own tests as the lists of known
// failures have them, and the entries of the operator database that they name.
func TestEveryJobIsInOneShard(t *testing.T) {
	lists := map[string][]string{}
	for _, test := range pytests.Tests() {
		lists["python"] = append(lists["python"], test.Name)
	}
	series := require.One(patches.Load(patches.Embedded(), "v2.6.0"))(t)
	upstream := require.One(series.UpstreamFacts())(t)
	for _, section := range []map[string][]string{upstream.Failures, upstream.UnexpectedSuccesses, upstream.Flaky, upstream.LeftOut} {
		for _, names := range section {
			lists["upstream"] = append(lists["upstream"], names...)
		}
	}
	operators := require.One(series.KnownOperators())(t)
	for name := range operators.NotAlone {
		lists["operators"] = append(lists["operators"], name)
	}
	for list, names := range lists {
		if len(names) < 10 {
			t.Errorf("%s: only %d names", list, len(names))
		}
		for of := 1; of <= 9; of++ {
			sizes := make([]int, of)
			for _, name := range names {
				in := 0
				for i := range of {
					if (stage.Shard{Index: i + 1, Of: of}).Has(name) {
						in++
						sizes[i]++
					}
				}
				if in != 1 {
					t.Fatalf("%s: %s is in %d of %d shards", list, name, in, of)
				}
			}
			if mean := len(names) / of; len(names) > 500 && (slices.Min(sizes) < mean*2/3 || slices.Max(sizes) > mean*3/2) {
				t.Errorf("%s: %d shards of %d", list, of, sizes)
			}
		}
	}
}

// A shard is of named stages that can be divided, of a seed, and never of a required stage.
func TestShardOptions(t *testing.T) {
	shard := stage.Shard{Index: 1, Of: 2}
	for name, c := range map[string]struct {
		options Options
		words   string // of the refusal; empty: it is taken
	}{
		"no shard":          {Options{}, ""},
		"right":             {Options{Shard: shard, Seed: 7, Stages: []string{"series", "checkout", "runtime", "python", "operators", "upstream"}}, ""},
		"no stages":         {Options{Shard: shard, Seed: 7}, "names none"},
		"nothing to divide": {Options{Shard: shard, Seed: 7, Stages: []string{"checkout"}}, "names none"},
		"a whole stage":     {Options{Shard: shard, Seed: 7, Stages: []string{"operators", "mac", "overlay"}}, "mac, overlay cannot be divided"},
		"no seed":           {Options{Shard: shard, Stages: []string{"operators"}}, "same seed"},
		"a required stage":  {Options{Shard: shard, Seed: 7, Stages: []string{"operators"}, Require: []string{"operators"}}, "report merge"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckShard(c.options)
			if c.words == "" && err != nil || c.words != "" && (!errors.Is(err, stage.ErrDivided) || !strings.Contains(err.Error(), c.words)) {
				t.Error(err)
			}
		})
	}
}
