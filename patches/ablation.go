package patches

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// AblationFile holds what noticed that a patch of a baseline's series was left out, in the baseline's folder.
const AblationFile = "ablation.json"

// Ablation says of each patch of a series what happened without it (ablation.json). A command writes it from reports of mpsforge
// verify --ablate.
type Ablation struct {
	Schema  int            `json:"schema"` // always 1
	Tag     string         `json:"tag"`
	Patches []AblatedPatch `json:"patches"` // one for each patch and stage, in the order of the series
}

// AblatedPatch is what a stage said of a patch in the last run without it.
type AblatedPatch struct {
	Patch   string   `json:"patch"`
	Stage   string   `json:"stage"`
	Verdict string   `json:"verdict"` // passed: it was noticed; skipped: this stage cannot notice it
	Detail  string   `json:"detail"`  // the stage's words
	Noticed []Notice `json:"noticed,omitempty"`
	Claims  []string `json:"claims,omitempty"` // what its trailers named as failing without it
	// The run.
	Date         time.Time `json:"date"`
	Tool         string    `json:"mpsforge"`
	System       string    `json:"system"`
	SeriesDigest string    `json:"series_digest"` // of the whole series
	Tree         string    `json:"tree"`          // the checkout's base, without the series
	Form         string    `json:"form"`          // quick or long
	Seed         uint64    `json:"seed"`
}

// Notice is how a scenario went wrong without the patch.
type Notice struct {
	Scenario  string `json:"scenario"`
	Flavour   string `json:"flavour"` // of the host build
	Threads   int    `json:"threads"`
	Outcome   string `json:"outcome"`
	Signature string `json:"signature,omitempty"` // of the crash or the software Metal's finding
}

const recordAblation = "the file is not for editing: mpsforge baseline ablation REPORT.json writes it"

// ReadAblation reads what a baseline's folder holds. Without the file there is nothing, and the error wraps fs.ErrNotExist.
func ReadAblation(fsys fs.FS, baseline string) (Ablation, error) {
	var a Ablation
	if err := readRecord(fsys, baseline, AblationFile, &a, &a.Schema); err != nil {
		return Ablation{}, err
	}
	for _, p := range a.Patches {
		if !slices.Contains([]string{runPassed, runFailed, runSkipped}, p.Verdict) {
			return Ablation{}, fmt.Errorf("%s has the verdict %q for %s; %s", AblationFile, p.Verdict, p.Patch, recordAblation)
		}
	}
	return a, nil
}

// Add puts rows into the table, in place of those of the same patches and stages. Rows of patches that the series does not have go.
func (a *Ablation) Add(series *Series, added ...AblatedPatch) {
	a.Schema, a.Tag = 1, series.Baseline.Tag
	order := func(p AblatedPatch) int {
		return slices.IndexFunc(series.Patches, func(q *Patch) bool { return q.Name == p.Patch })
	}
	all := slices.DeleteFunc(slices.Clone(a.Patches), func(p AblatedPatch) bool {
		return order(p) < 0 || slices.ContainsFunc(added, func(q AblatedPatch) bool { return q.Patch == p.Patch && q.Stage == p.Stage })
	})
	a.Patches = append(all, added...)
	slices.SortStableFunc(a.Patches, func(p, q AblatedPatch) int { return cmp.Or(order(p)-order(q), cmp.Compare(p.Stage, q.Stage)) })
}

// AblationResult is what LintAblation found.
type AblationResult struct {
	Recorded
	Patches []AblatedPatch `json:"patches"`
}

// LintAblation compares the recorded table of a baseline with its series as it is now. A baseline without the file is asked for none.
func LintAblation(fsys fs.FS, baseline string) (*AblationResult, error) {
	result := &AblationResult{Recorded: recordedOf(baseline), Patches: []AblatedPatch{}}
	add := result.finding(AblationFile, RuleAblation)
	table, err := ReadAblation(fsys, baseline)
	series, err := comparedWith(fsys, baseline, err, table.Tag, "table is", recordAblation, add)
	if series == nil {
		return result, err
	}
	result.Patches = append(result.Patches, table.Patches...)
	states := map[string][]string{}
	for _, p := range series.Patches {
		state := table.state(p, series.Digest())
		states[state] = append(states[state], p.Name)
	}
	again := fmt.Sprintf("mpsforge verify --baseline %s --stages checkout,runtime --ablate all --quick --seed 7 --report FILE.json, then mpsforge "+
		"baseline ablation --baseline %[1]s --patches DIR FILE.json", baseline)
	for _, one := range []struct {
		state    string
		severity Severity
		do, what string
	}{
		{"changed", SeverityWarning, again, "the series has changed since these patches were left out"},
		{"never", SeverityWarning, again, "these patches were never left out"},
		{runFailed, SeverityWarning,
			"give each a scenario that fails without it, or take it out of the series; mpsforge baseline ablation has the details",
			"nothing notices that these patches are left out, or not the scenarios that their trailers name"},
		{runSkipped, SeverityNote, "", "no scenario notices that these patches are left out; their trailers name the proof of another stage"},
	} {
		if names := states[one.state]; len(names) > 0 {
			add(one.severity, one.do, one.what+": "+strings.Join(names, ", "))
		}
	}
	return result, nil
}

// state says what the rows of a patch are worth for the series as it is: a failed row counts before one that passed, and one of another
// series, or of other trailers, before both.
func (a Ablation) state(patch *Patch, series string) string {
	state := "never"
	for _, p := range a.Patches {
		switch {
		case p.Patch != patch.Name:
		case p.SeriesDigest != series || !slices.Equal(p.Claims, patch.Header.Values("Scenario")):
			return "changed"
		case p.Verdict == runFailed || state == "never" || state == runSkipped:
			state = p.Verdict
		}
	}
	return state
}
