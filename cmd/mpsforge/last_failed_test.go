package main

import (
	"testing"

	"mpsforge/internal/require"
	"mpsforge/reports"
)

// What failed is chosen as narrowly as the flags can, and never more narrowly than what failed.
func TestFlagsForWhatFailed(t *testing.T) {
	type flags = map[string]string
	stage := func(name string, failed ...string) reports.Stage {
		s := reports.Stage{Name: name, Verdict: reports.Failed, Checks: []reports.Check{{Name: "linear", Verdict: reports.Passed}}}
		for _, check := range failed {
			s.Checks = append(s.Checks, reports.Check{Name: check, Verdict: reports.Failed})
		}
		return s
	}
	passed := reports.Stage{Name: "series", Verdict: reports.Passed}
	shard := map[string]*reports.Shard{"a shard": {Index: 2, Of: 8}, "a shard's whole stage": {Index: 2, Of: 8}}
	for name, c := range map[string]struct {
		stages []reports.Stage
		want   map[string]string
	}{
		"a shard": {[]reports.Stage{stage("checkout", "exact"), stage("operators", "add")}, flags{"stages": "checkout,operators",
			"shard": "2/8"}},
		"a shard's whole stage": {[]reports.Stage{stage("checkout", "exact")}, flags{"stages": "checkout"}},
		"nothing":               {[]reports.Stage{passed, {Name: "device", Verdict: reports.Skipped}}, nil},
		"a whole stage":         {[]reports.Stage{passed, stage("runtime", "fork")}, flags{"stages": "runtime"}},
		"two Python tests": {[]reports.Stage{passed, stage("python", "transformer", "conv1d", "conv1d")},
			flags{"stages": "python", "only": "^(conv1d|transformer)$"}},
		"python, and not a test": {[]reports.Stage{stage("python", "conv1d", "which torch")}, flags{"stages": "python"}},
		"python, and no check":   {[]reports.Stage{stage("python")}, flags{"stages": "python"}},
		"python and bench":       {[]reports.Stage{stage("python", "conv1d"), stage("bench", "linear")}, flags{"stages": "python,bench"}},
		"tests of PyTorch's": {[]reports.Stage{stage("upstream", "test_mps:TestMPS.test_exp")},
			flags{"stages": "upstream", "tests": `^(test_mps:TestMPS\.test_exp)$`}},
		"too many of them":     {[]reports.Stage{stage("upstream", "test_mps:TestMPS.test_exp", "7 more")}, flags{"stages": "upstream"}},
		"a stage that is gone": {[]reports.Stage{stage("former", "x")}, nil},
		"upstream with the overlay": {[]reports.Stage{stage("upstream", "test_mps:TestMPS.test_exp"), stage("overlay", "x")},
			flags{"stages": "upstream,overlay"}},
	} {
		want := c.want
		if want != nil {
			want["seed"], want["quick"] = "7", "true"
		}
		require.Equal(t, failedFlags(&reports.Report{Seed: 7, Quick: true, Shard: shard[name], Stages: c.stages}), want, name)
	}
}
