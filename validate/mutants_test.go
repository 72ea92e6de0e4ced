package validate

import (
	"errors"
	"slices"
	"testing"

	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/allocator"
	runtimestage "mpsforge/validate/runtime"
)

// The first failed check of the first failed stage found the mutant. A stage that could not judge is an error: it is neither found nor
// survived.
func TestWhatFoundAMutant(t *testing.T) {
	failed := reports.Check{Name: "items", Subject: "patched, plain", Verdict: reports.Failed, Detail: "4 threads: wrong values: 1 of 2; again: MPSFORGE_METAL_SEED=7 /cache/scenarios items"}
	passed := reports.Check{Name: "linear", Subject: "patched, plain", Verdict: reports.Passed}
	for name, c := range map[string]struct {
		stages []reports.Stage
		want   patches.Judgement
		found  bool
		fails  bool
	}{
		"a check fails": {stages: []reports.Stage{{Name: "checkout", Verdict: reports.Passed}, {Name: "runtime", Verdict: reports.Failed, Checks: []reports.Check{passed, failed}}},
			want: patches.Judgement{Verdict: patches.MutantFound, Stage: "runtime", Check: "items", Subject: "patched, plain", Detail: "4 threads: wrong values: 1 of 2"}, found: true},
		"nothing fails": {stages: []reports.Stage{{Name: "series", Verdict: reports.NotRun, Reason: notAsked}, {Name: "runtime", Verdict: reports.Passed, Checks: []reports.Check{passed}}},
			want: patches.Judgement{Verdict: patches.MutantSurvived}},
		"it does not compile": {stages: []reports.Stage{{Name: "runtime", Verdict: reports.Failed, Checks: []reports.Check{{Name: "compile", Subject: "patched, plain", Verdict: reports.Failed, Detail: "a.mm:1: error"}}}},
			want: patches.Judgement{Verdict: patches.MutantNotCompiled, Stage: "runtime", Check: "compile", Subject: "patched, plain", Detail: "a.mm:1: error"}, found: true},
		"a stage ends with an error": {stages: []reports.Stage{{Name: "runtime", Verdict: reports.Failed, Reason: "the disk is full", Checks: []reports.Check{passed}}}, fails: true},
		"a stage skips itself":       {stages: []reports.Stage{{Name: "runtime", Verdict: reports.Skipped, Reason: "no libtorch"}}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			judged := patches.Judgement{Verdict: patches.MutantSurvived}
			found, err := foundBy(&reports.Report{Stages: c.stages}, &judged)
			if c.fails {
				if !errors.Is(err, patches.ErrMutants) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || found != c.found || judged != c.want {
				t.Errorf("%v, %+v, %v", found, judged, err)
			}
		})
	}
}

// The scenarios of the patch's trailer run first, and conformance where the mutant is in the slot allocator.
func TestMutantPasses(t *testing.T) {
	series, err := patches.Load(patches.Embedded(), patches.DefaultBaseline)
	if err != nil {
		t.Fatal(err)
	}
	var first, second Options
	passes := mutantPasses(series, patches.Mutant{Patch: "matrix-kernel-locks", Path: allocator.Header})
	passes[0](&first)
	passes[1](&second)
	if first.Host.Scenarios[0] != "matrix-kernels" || len(first.Host.Scenarios) <= len(runtimestage.ScenarioNames()) || !slices.Equal(first.Stages, []string{"checkout", "runtime"}) {
		t.Errorf("%+v", first)
	}
	if second.Stages[0] != "conformance" || len(second.Host.Scenarios) > 0 || len(second.Host.Flavours) > 0 {
		t.Errorf("%+v", second)
	}
}
