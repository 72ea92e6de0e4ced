package validate

import (
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/allocator"
	"mpsforge/validate/stage"
	runtimestage "mpsforge/validate/stages/runtime"
)

// The first failed check of the first failed stage found the mutant. A stage that could not judge is an error: it is neither found nor
// survived.
func TestWhatFoundAMutant(t *testing.T) {
	failed := reports.Check{Name: "items", Subject: "patched, plain", Verdict: reports.Failed,
		Detail: "4 threads: wrong values: 1 of 2; again: MPSFORGE_METAL_SEED=7 /cache/scenarios items"}
	passed := reports.Check{Name: "linear", Subject: "patched, plain", Verdict: reports.Passed}
	for name, c := range map[string]struct {
		stages []reports.Stage
		want   patches.Judgement
		found  bool
		fails  bool
	}{
		"a check fails": {stages: []reports.Stage{{Name: "checkout", Verdict: reports.Passed}, {Name: "runtime", Verdict: reports.Failed,
			Checks: []reports.Check{passed, failed}}},
			want: patches.Judgement{Verdict: patches.MutantFound, Stage: "runtime", Check: "items", Subject: "patched, plain",
				Detail: "4 threads: wrong values: 1 of 2"}, found: true},
		"nothing fails": {stages: []reports.Stage{{Name: "series", Verdict: reports.NotRun, Reason: reports.NotAsked},
			{Name: "runtime", Verdict: reports.Passed, Checks: []reports.Check{passed}}},
			want: patches.Judgement{Verdict: patches.MutantSurvived}},
		"it does not compile": {stages: []reports.Stage{{Name: "runtime", Verdict: reports.Failed,
			Checks: []reports.Check{{Name: "compile", Subject: "patched, plain", Verdict: reports.Failed, Detail: "a.mm:1: error"}}}},
			want: patches.Judgement{Verdict: patches.MutantNotCompiled, Stage: "runtime", Check: "compile", Subject: "patched, plain",
				Detail: "a.mm:1: error"}, found: true},
		"a stage ends with an error": {stages: []reports.Stage{{Name: "runtime", Verdict: reports.Failed, Reason: "the disk is full",
			Checks: []reports.Check{passed}}}, fails: true},
		"a stage skips itself": {stages: []reports.Stage{{Name: "runtime", Verdict: reports.Skipped, Reason: "no libtorch"}}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			judged := patches.Judgement{Verdict: patches.MutantSurvived}
			found, err := foundBy(&reports.Report{Stages: c.stages}, &judged)
			if c.fails {
				require.Is(t, err, patches.ErrMutants)
				return
			}
			if err != nil || found != c.found || judged != c.want {
				t.Errorf("%v, %+v, %v", found, judged, err)
			}
		})
	}
}

// The slot allocator's mutants begin with conformance, Python's with the Python tests, a lock that is left out with ThreadSanitizer, all
// others with the scenarios and the Python tests that are the patch's.
func TestMutantPasses(t *testing.T) {
	series := require.One(patches.Load(patches.Embedded(), patches.DefaultBaseline))(t)
	for name, c := range map[string]struct {
		mutant patches.Mutant
		stages string
	}{
		"slot allocator": {patches.Mutant{Patch: "thread-leases", Path: allocator.Header},
			"conformance; checkout,runtime; python; checkout,runtime; python; runtime; operators"},
		"Python": {patches.Mutant{Patch: "python-streams", Path: "torch/mps/streams.py"}, "python; checkout,runtime; runtime; operators"},
		"a lock": {patches.Mutant{Patch: "graph-and-kernel-cache", Path: "aten/src/ATen/mps/MPSStream.mm", Kind: "lock left out"},
			"runtime; checkout,runtime; python; checkout,runtime; python; operators"},
		"the rest": {patches.Mutant{Patch: "graph-and-kernel-cache", Path: "aten/src/ATen/mps/MPSStream.mm"},
			"checkout,runtime; python; checkout,runtime; python; runtime; operators"},
	} {
		t.Run(name, func(t *testing.T) {
			var stages []string
			whole := make(map[string]bool)
			for _, pass := range mutantPasses(series, c.mutant) {
				options := Options{Host: stage.HostOptions{Scenarios: []string{"of the pass before"}},
					Python: stage.PythonOptions{Only: "of the pass before"}}
				pass(&options)
				stages = append(stages, strings.Join(options.Stages, ","))
				scenarios, only := options.Host.Scenarios, options.Python.Only
				runtime := slices.Contains(options.Stages, "runtime")
				if runtime == (len(scenarios) == 0) || only != "" && !slices.Equal(options.Stages, []string{"python"}) {
					t.Errorf("%s: %v, %q", stages, scenarios, only)
				}
				if runtime && c.mutant.Patch == "graph-and-kernel-cache" && scenarios[0] != "cold-start" {
					t.Errorf("%s: begins with %s", stages, scenarios[0])
				}
				whole["runtime"] = whole["runtime"] || len(scenarios) >= len(runtimestage.ScenarioNames())
				whole["python"] = whole["python"] || slices.Contains(options.Stages, "python") && only == ""
			}
			if !whole["runtime"] || !whole["python"] {
				t.Errorf("only a part runs: %v", whole)
			}
			require.Equal(t, strings.Join(stages, "; "), c.stages)
		})
	}
}
