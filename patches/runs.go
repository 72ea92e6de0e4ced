package patches

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"mpsforge/internal/suggest"
)

// RunsFile holds the last run of each stage of mpsforge verify on a baseline, in the baseline's folder.
const RunsFile = "runs.json"

// Runs holds the last run of each stage on a real tree of a baseline (runs.json). A command writes it from reports of mpsforge
// verify, so that nothing is claimed of a series that was not run.
type Runs struct {
	Schema int             `json:"schema"` // always 1
	Tag    string          `json:"tag"`
	Trees  map[string]Tree `json:"trees"` // by tree id: the checkouts' bases, without the series
	Runs   []Run           `json:"runs"`
}

// Tree says how much of a tree is known to be the baseline's.
type Tree struct {
	Commit string `json:"commit"`
	// Whole says that commit or tree are the release's. Else only the exact files were compared; the rest is near the
	// baseline and not compared with anything.
	Whole bool     `json:"whole"`
	Exact []string `json:"exact"` // files that are equal to the baseline's digests
}

// Run is one run of mpsforge verify.
type Run struct {
	Date         time.Time  `json:"date"`
	Tool         string     `json:"mpsforge"` // version and commit
	System       string     `json:"system"`   // GOOS/GOARCH
	SeriesDigest string     `json:"series_digest"`
	Tree         string     `json:"tree"` // one of Trees
	Form         string     `json:"form"` // quick or long
	Seed         uint64     `json:"seed"`
	Stages       []StageRun `json:"stages"` // that this run is the last one of
}

// StageRun is what a run says about a stage.
type StageRun struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"` // why it failed, or was not run
	// Excused says that whoever recorded the run knew that the stage cannot run there. That is not a pass.
	Excused  bool             `json:"excused,omitempty"`
	Flavours []string         `json:"flavours,omitempty"` // of the host builds that were checked
	Checks   map[string]int   `json:"checks"`             // how many had each verdict
	Counts   map[string]int64 `json:"counts,omitempty"`   // the stage's own
}

// Verdicts of stages, as reports have them.
const (
	runPassed  = "passed"
	runFailed  = "failed"
	runSkipped = "skipped"
)

// ReadRuns reads the runs that a baseline's folder holds. Without the file they are none, and the error wraps fs.ErrNotExist.
func ReadRuns(fsys fs.FS, baseline string) (Runs, error) {
	var r Runs
	if err := readRecord(fsys, baseline, RunsFile, &r, &r.Schema); err != nil {
		return Runs{}, err
	}
	for _, run := range r.Runs {
		if _, known := r.Trees[run.Tree]; !known {
			return Runs{}, fmt.Errorf("%s has a run on the tree %q, which it does not describe; %s", RunsFile, run.Tree, recordRuns)
		}
		for _, stage := range run.Stages {
			if stage.Verdict == runPassed && (stage.Checks[runPassed] == 0 || stage.Checks[runFailed] > 0) {
				return Runs{}, fmt.Errorf("%s says that the stage %s passed, with %d checks passed and %d failed; %s",
					RunsFile, stage.Name, stage.Checks[runPassed], stage.Checks[runFailed], recordRuns)
			}
		}
	}
	return r, nil
}

const recordRuns = "the file is not for editing: mpsforge baseline runs REPORT.json writes it"

// RunState says what the last run of a stage is worth for the series as it is.
type RunState string

// The states. A stage that was excused did not run, which is not a pass; of the others only passed is one.
const (
	RunPassed  RunState = "passed"
	RunFailed  RunState = "failed"
	RunChanged RunState = "series changed" // since the stage was run
	RunNever   RunState = "never run"
	RunExcused RunState = "cannot run there"
)

// StageState is the state of a stage, and what its last runs say.
type StageState struct {
	Stage  string   `json:"stage"`
	State  RunState `json:"state"`
	Reason string   `json:"reason,omitempty"`
	Last   []Run    `json:"last"` // those runs, each with this stage alone
}

// RunsResult is what LintRuns found.
type RunsResult struct {
	Recorded
	Asked  bool         `json:"asked"` // whether runs are asked of the baseline; else there are no states
	Stages []StageState `json:"stages"`
}

// Of names the stages in a state.
func (r *RunsResult) Of(state RunState) []string {
	var names []string
	for _, s := range r.Stages {
		if s.State == state {
			names = append(names, s.Stage)
		}
	}
	return names
}

// Summary says in a line how many stages passed on the series as it is, and which did not run.
func (r *RunsResult) Summary() string {
	if !r.Asked {
		return "no runs are recorded, and none are asked for"
	}
	text := fmt.Sprintf("stages passed on this series: %d of %d", len(r.Of(RunPassed)), len(r.Stages))
	if excused := r.Of(RunExcused); len(excused) > 0 {
		text += ", not run: " + strings.Join(excused, ", ")
	}
	return text
}

// LintRuns compares the recorded runs of a baseline with its series as it is now, for all stages of the pipeline. Runs are asked
// of the default baseline, and of each other one whose folder has the file. An error means that there was nothing to compare.
func LintRuns(fsys fs.FS, baseline string, stages []string) (*RunsResult, error) {
	result := &RunsResult{Recorded: recordedOf(baseline), Asked: true, Stages: []StageState{}}
	add := result.finding(RunsFile, RuleRuns)
	runs, err := ReadRuns(fsys, baseline)
	switch {
	case errors.Is(err, ErrUnknownBaseline):
		return nil, err
	case errors.Is(err, fs.ErrNotExist) && baseline != DefaultBaseline:
		result.Asked = false
		return result, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		add(SeverityError, "", err.Error())
		return result, nil
	}
	series, err := Load(fsys, baseline)
	if err != nil {
		return nil, err
	}
	if runs.Tag != "" && runs.Tag != series.Baseline.Tag {
		add(SeverityError, recordRuns, fmt.Sprintf("the runs are of tag %q, the baseline is %q", runs.Tag, series.Baseline.Tag))
	}
	for _, run := range runs.Runs {
		for _, one := range run.Stages {
			if !slices.Contains(stages, one.Name) {
				add(SeverityError, recordRuns, fmt.Sprintf("there is no stage %q%s", one.Name, suggest.Names(one.Name, stages)))
			}
		}
	}
	for _, name := range stages {
		result.Stages = append(result.Stages, runs.state(name, series.Digest()))
	}
	for _, state := range []RunState{RunChanged, RunNever, RunFailed} {
		if names := result.Of(state); len(names) > 0 {
			what := map[RunState]string{RunChanged: "the series has changed since these stages were run",
				RunNever:  "these stages were never run on the baseline's tree",
				RunFailed: "these stages failed in their last run"}[state]
			add(SeverityWarning, result.do(), what+": "+strings.Join(names, ", "))
		}
	}
	return result, nil
}

// do names the commands that run the stages and record that.
func (r *RunsResult) do() string {
	do := fmt.Sprintf("run them and record that: mpsforge verify --baseline %s --report FILE.json, then mpsforge baseline runs --baseline %[1]s "+
		"--patches DIR FILE.json", r.Baseline)
	if r.Baseline == DefaultBaseline {
		do += "; in mpsforge's repository make test-" + r.Baseline + " does both"
	}
	return do
}

// Refusal says in words why nothing may be claimed of the series yet, and what is to be done; empty where something may.
func (r *RunsResult) Refusal() string {
	if len(r.Findings) == 0 {
		return ""
	}
	var why []string
	for _, f := range r.Findings {
		why = append(why, f.Message)
	}
	return r.Baseline + ": " + strings.Join(why, "; ") + "\n" + r.do()
}

// state finds the last runs of a stage and compares them with the series.
func (r Runs) state(name, series string) StageState {
	s := StageState{Stage: name, State: RunNever, Last: []Run{}}
	changed, failed, passed, excused := false, false, false, false
	for _, run := range r.Runs {
		at := slices.IndexFunc(run.Stages, func(one StageRun) bool { return one.Name == name })
		if at < 0 {
			continue
		}
		one := run.Stages[at]
		changed = changed || run.SeriesDigest != series
		failed = failed || one.Verdict == runFailed
		passed = passed || one.Verdict == runPassed
		excused = excused || one.Excused
		s.Reason = cmp.Or(s.Reason, one.Reason)
		run.Stages = []StageRun{one}
		s.Last = append(s.Last, run)
	}
	switch {
	case excused && !passed && !failed: // whatever the series is
		s.State = RunExcused
	case changed:
		s.State = RunChanged
	case failed:
		s.State = RunFailed
	case passed:
		s.State = RunPassed
	}
	return s
}

// Add puts a run into the file; whatever it has of the run's stages from earlier runs goes. Runs that are added together keep
// stages that they have in common: several seeds of one stage are one last run of it.
func (r *Runs) Add(trees map[string]Tree, added ...Run) {
	var names []string
	for _, run := range added {
		for _, stage := range run.Stages {
			names = append(names, stage.Name)
		}
	}
	kept := []Run{}
	for _, run := range r.Runs {
		run.Stages = slices.DeleteFunc(slices.Clone(run.Stages), func(s StageRun) bool { return slices.Contains(names, s.Name) })
		if len(run.Stages) > 0 {
			kept = append(kept, run)
		}
	}
	r.Runs = append(kept, added...)
	all := r.Trees
	r.Trees = map[string]Tree{}
	for _, run := range r.Runs {
		if tree, known := trees[run.Tree]; known {
			r.Trees[run.Tree] = tree
		} else {
			r.Trees[run.Tree] = all[run.Tree]
		}
	}
}
