package patches

import (
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"mpsforge/internal/require"
)

// recordedRuns puts runs of the stages one and two into the folder of a fixture's baseline.
func recordedRuns(fsys fstest.MapFS, runs ...Run) fstest.MapFS {
	all := Runs{Schema: 1, Tag: "v1.0.0"}
	all.Add(map[string]Tree{"": {Exact: []string{}}}, runs...)
	record(fsys, RunsFile, all)
	return fsys
}

func ran(name, verdict string) StageRun {
	return StageRun{Name: name, Verdict: verdict, Checks: map[string]int{verdict: 1}}
}

// What a stage's last run is worth for the series as it is.
func TestLintRuns(t *testing.T) {
	fsys, series := onePatch(t)
	now := series.Digest()
	of := func(digest string, stages ...StageRun) Run { return Run{SeriesDigest: digest, Stages: stages} }
	excused := StageRun{Name: "two", Verdict: "skipped", Excused: true, Checks: map[string]int{}}
	for name, c := range map[string]struct {
		runs  []Run
		want  RunState // of the stage two; one has passed
		finds string   // in the warning; empty for none
	}{
		"passed": {[]Run{of(now, ran("one", "passed"), ran("two", "passed"))}, RunPassed, ""},
		"another series": {[]Run{of(now, ran("one", "passed")), of("old", ran("two", "passed"))}, RunChanged,
			"the series has changed since these stages were run: two"},
		"failed": {[]Run{of(now, ran("one", "passed"), ran("two", "failed"))}, RunFailed, "failed in their last run: two"},
		"failed with one of two seeds": {[]Run{of(now, ran("one", "passed"), ran("two", "passed")), of(now, ran("two", "failed"))}, RunFailed,
			"failed in their last run: two"},
		"never":                {[]Run{of(now, ran("one", "passed"))}, RunNever, "never run on the baseline's tree: two"},
		"skipped is never":     {[]Run{of(now, ran("one", "passed"), ran("two", "skipped"))}, RunNever, "never run on the baseline's tree: two"},
		"not reached is never": {[]Run{of(now, ran("one", "passed"), ran("two", "not run"))}, RunNever, "never run on the baseline's tree: two"},
		"excused":              {[]Run{of(now, ran("one", "passed"), excused)}, RunExcused, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := require.One(LintRuns(recordedRuns(fsys, c.runs...), "v1.0.0", []string{"one", "two"}))(t)
			if got := found.Of(c.want); !slices.Equal(got, []string{"two"}) && !slices.Equal(got, []string{"one", "two"}) {
				t.Errorf("%+v", found.Stages)
			}
			switch {
			case c.finds == "" && (len(found.Findings) > 0 || found.Refusal() != ""):
				t.Errorf("%v", found.Findings)
			case c.finds != "" && (len(found.Findings) != 1 || found.Findings[0].Severity != SeverityWarning || !strings.Contains(found.Refusal(), c.finds)):
				t.Errorf("%v", found.Findings)
			}
		})
	}
}

// A baseline without the file is asked for no runs, unless it is the default one: its file may not just be deleted.
func TestRunsAreAskedOfTheDefaultBaseline(t *testing.T) {
	fsys, _ := onePatch(t)
	found, err := LintRuns(fsys, "v1.0.0", []string{"one"})
	if err != nil || found.Asked || found.Refusal() != "" {
		t.Errorf("%+v, %v", found, err)
	}
	for name, file := range fsys {
		fsys[strings.Replace(name, "v1.0.0", DefaultBaseline, 1)] = file
	}
	found, err = LintRuns(fsys, DefaultBaseline, []string{"one"})
	if err != nil || !found.Asked || !strings.Contains(found.Refusal(), "never run on the baseline's tree: one\n") {
		t.Errorf("%+v, %v", found, err)
	}
}

// Runs that are added replace earlier ones of the same stages, and only those. Trees that no run is on are forgotten.
func TestAddRuns(t *testing.T) {
	run := func(tree string, seed uint64, stages ...string) Run {
		one := Run{Tree: tree, Seed: seed}
		for _, name := range stages {
			one.Stages = append(one.Stages, ran(name, "passed"))
		}
		return one
	}
	var runs Runs
	runs.Add(map[string]Tree{"a": {Commit: "A"}}, run("a", 1, "one", "two"), run("a", 2, "two"))
	if len(runs.Runs) != 2 {
		t.Errorf("two seeds of a stage: %+v", runs.Runs)
	}
	runs.Add(map[string]Tree{"b": {Commit: "B"}}, run("b", 3, "two"))
	if want := []Run{run("a", 1, "one"), run("b", 3, "two")}; !reflect.DeepEqual(runs.Runs, want) || len(runs.Trees) != 2 {
		t.Errorf("%+v, want %+v", runs, want)
	}
	runs.Add(map[string]Tree{"b": {Commit: "B"}}, run("b", 4, "one"))
	require.Equal(t, runs.Trees, map[string]Tree{"b": {Commit: "B"}})
}

// What no command could have written is an error, and nothing is taken from it.
func TestRunsThatCannotBe(t *testing.T) {
	whole := Run{SeriesDigest: "d", Stages: []StageRun{ran("one", "passed")}}
	for name, c := range map[string]struct{ old, new, want string }{
		"another schema":                {`"schema": 1`, `"schema": 2`, "schema 2"},
		"a misspelt field":              {`"seed"`, `"sede"`, "sede"},
		"passed without a passed check": {`"passed": 1`, `"skipped": 1`, "with 0 checks passed"},
		"passed with a failed check":    {`"passed": 1`, `"passed": 1, "failed": 2`, "and 2 failed"},
		"a tree that is not described":  {`"tree": ""`, `"tree": "t"`, `the tree "t"`},
		"a stage that does not exist":   {`"name": "one"`, `"name": "onne"`, `there is no stage "onne" (did you mean "one"?)`},
		"the runs of another baseline":  {`"tag": "v1.0.0"`, `"tag": "v2.0.0"`, `the runs are of tag "v2.0.0"`},
	} {
		fsys, _ := onePatch(t)
		file := recordedRuns(fsys, whole)["v1.0.0/"+RunsFile]
		file.Data = plantIn(t, file.Data, c.old, c.new)
		found, err := LintRuns(fsys, "v1.0.0", []string{"one"})
		if err != nil || len(found.Errors()) != 1 || !strings.Contains(found.Errors()[0].Message, c.want) || found.Refusal() == "" {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	_, err := ReadRuns(fixture(tree, "p", good()), "v1.0.0")
	require.Is(t, err, fs.ErrNotExist, "no file")
}
