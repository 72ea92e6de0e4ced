package patches

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"mpsforge/internal/require"
)

// recordedAblation puts rows into the folder of a fixture's baseline.
func recordedAblation(fsys fstest.MapFS, rows ...AblatedPatch) fstest.MapFS {
	record(fsys, AblationFile, Ablation{Schema: 1, Tag: "v1.0.0", Patches: rows})
	return fsys
}

// What the recorded rows of a patch are worth for the series as it is.
func TestLintAblation(t *testing.T) {
	fsys, series := onePatch(t)
	now := series.Digest()
	row := func(stage, verdict, digest string) AblatedPatch {
		return AblatedPatch{Patch: "p", Stage: stage, Verdict: verdict, SeriesDigest: digest, Claims: series.Patches[0].Header.Values("Scenario")}
	}
	claims := func(row AblatedPatch, names ...string) AblatedPatch {
		row.Claims = names
		return row
	}
	const (
		unnoticed = "nothing notices that these patches are left out, or not the scenarios that their trailers name: p"
		elsewhere = "no scenario notices that these patches are left out; their trailers name the proof of another stage: p"
		stale     = "the series has changed since these patches were left out: p"
	)
	for name, c := range map[string]struct {
		rows     []AblatedPatch
		severity Severity
		finds    string // empty for none
	}{
		"noticed":                        {[]AblatedPatch{row("runtime", "passed", now)}, "", ""},
		"noticed by another stage":       {[]AblatedPatch{row("runtime", "skipped", now), row("operators", "passed", now)}, "", ""},
		"nothing notices":                {[]AblatedPatch{row("runtime", "failed", now)}, SeverityWarning, unnoticed},
		"one of two stages does not":     {[]AblatedPatch{row("operators", "passed", now), row("runtime", "failed", now)}, SeverityWarning, unnoticed},
		"its proof is in another stage":  {[]AblatedPatch{row("runtime", "skipped", now)}, SeverityNote, elsewhere},
		"another series":                 {[]AblatedPatch{row("runtime", "passed", "old")}, SeverityWarning, stale},
		"one of two rows of another one": {[]AblatedPatch{row("operators", "passed", now), row("runtime", "passed", "old")}, SeverityWarning, stale},
		"other trailers then":            {[]AblatedPatch{claims(row("runtime", "passed", now), "items")}, SeverityWarning, stale},
		"never":                          {[]AblatedPatch{}, SeverityWarning, "these patches were never left out: p"},
		"a verdict that no command wrote": {[]AblatedPatch{row("runtime", "fine", now)}, SeverityError,
			`ablation.json has the verdict "fine" for p; the file is not for editing: mpsforge baseline ablation REPORT.json writes it`},
	} {
		t.Run(name, func(t *testing.T) {
			found := require.One(LintAblation(recordedAblation(fsys, c.rows...), "v1.0.0"))(t)
			wantFinding(t, found.Findings, c.severity, c.finds)
			if wants := c.severity == SeverityError; wants != (len(found.Errors()) == 1) {
				t.Errorf("errors %v", found.Errors())
			}
		})
	}
}

// A file of another schema, or of another release, cannot be used; without the file nothing is asked.
func TestAblationThatCannotBe(t *testing.T) {
	fsys, _ := onePatch(t)
	if found, err := LintAblation(fsys, "v1.0.0"); err != nil || len(found.Findings) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	_, err := ReadAblation(fsys, "v1.0.0")
	require.Is(t, err, fs.ErrNotExist, "no file")
	for old, c := range map[string]struct{ new, want string }{
		`"schema": 1`:     {`"schema": 2`, "schema 2"},
		`"tag": "v1.0.0"`: {`"tag": "v2.0.0"`, `the table is of tag "v2.0.0"`},
		`"patches"`:       {`"pathces"`, "pathces"},
	} {
		file := recordedAblation(fsys)["v1.0.0/"+AblationFile]
		file.Data = plantIn(t, file.Data, old, c.new)
		found, err := LintAblation(fsys, "v1.0.0")
		if err != nil || len(found.Errors()) != 1 || !strings.Contains(found.Errors()[0].Message, c.want) {
			t.Errorf("%s: %+v, %v", c.new, found, err)
		}
	}
}

// Rows replace those of the same patch and stage, are in the order of the series, and go with their patch.
func TestAddAblation(t *testing.T) {
	series := &Series{Baseline: Baseline{Tag: "v1.0.0"}, Patches: []*Patch{{Name: "one"}, {Name: "two"}}}
	row := func(patch, stage string, seed uint64) AblatedPatch {
		return AblatedPatch{Patch: patch, Stage: stage, Seed: seed}
	}
	var table Ablation
	table.Add(&Series{Patches: []*Patch{{Name: "gone"}, {Name: "two"}, {Name: "one"}}}, row("two", "runtime", 1), row("gone", "runtime", 1),
		row("one", "runtime", 1), row("one", "operators", 1))
	table.Add(series, row("one", "runtime", 2))
	var got []string
	for _, p := range table.Patches {
		got = append(got, strings.Join([]string{p.Patch, p.Stage, string('0' + rune(p.Seed))}, " "))
	}
	if want := []string{"one operators 1", "one runtime 2", "two runtime 1"}; !slices.Equal(got, want) || table.Tag != "v1.0.0" {
		t.Errorf("%q, want %q; tag %s", got, want, table.Tag)
	}
}
