package patches

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// differencesFile keeps, for a baseline, the reason of each difference between its series and the default baseline's.
const differencesFile = "differences.json"

// Reason explains one Difference, which its digest names.
type Reason struct {
	Patch  string `json:"patch"`
	Path   string `json:"path"`
	Digest string `json:"digest"`
	Reason string `json:"reason"`
}

// Explained is a difference with its reason, which is empty when none is kept.
type Explained struct {
	Difference
	Reason string `json:"reason"`
}

// CompareResult is what LintCompare found.
type CompareResult struct {
	Baseline    string        `json:"baseline"`
	Against     string        `json:"against"`
	Patches     int           `json:"patches"` // in both
	Differences []Explained   `json:"differences"`
	Findings    []LintFinding `json:"findings"` // differences without a reason, reasons without a difference
}

// RuleCompare is the rule of LintCompare's findings.
const RuleCompare = "compare"

// LintCompare compares the added and removed lines of a baseline's series with those of the default baseline's, patch by
// patch. Each difference must have a reason in differences.json, and each reason a difference.
func LintCompare(fsys fs.FS, baseline string) (*CompareResult, error) {
	result, reasons, err := compareWithDefault(fsys, baseline)
	if err != nil {
		return nil, err
	}
	file := path.Join(baseline, differencesFile)
	add := func(do, message string, args ...any) {
		result.Findings = append(result.Findings, LintFinding{File: file, Rule: RuleCompare, Severity: SeverityError,
			Message: fmt.Sprintf(message, args...), Do: do})
	}
	for i := range result.Differences {
		d := &result.Differences[i]
		if at := slices.IndexFunc(reasons, d.explainedBy); at >= 0 {
			d.Reason = reasons[at].Reason
		}
		if d.Reason == "" {
			add("make the patches alike, or run mpsforge lint --compare --fix --patches DIR and write the reason into the entry of this digest",
				"the difference %s (%s: %s) from %s has no reason", d.Digest, cmp.Or(d.Patch, "the series"), d.Path, result.Against)
		}
	}
	for _, r := range reasons {
		if !slices.ContainsFunc(result.Differences, func(d Explained) bool { return d.explainedBy(r) }) {
			add("run mpsforge lint --compare --fix --patches DIR", "the reason %q is for a difference that does not exist: %s %s (%s)", r.Reason,
				r.Patch, r.Path, r.Digest)
		}
	}
	return result, nil
}

func (d Difference) explainedBy(r Reason) bool {
	return d.Patch == r.Patch && d.Path == r.Path && d.Digest == r.Digest
}

func compareWithDefault(fsys fs.FS, baseline string) (*CompareResult, []Reason, error) {
	fail := func(err error) (*CompareResult, []Reason, error) {
		return nil, nil, fmt.Errorf("compare the series of %s and %s: %w", baseline, DefaultBaseline, err)
	}
	here, err := Load(fsys, baseline)
	if err != nil {
		return fail(err)
	}
	there, err := Load(fsys, DefaultBaseline)
	if err != nil {
		return fail(err)
	}
	reasons := []Reason{}
	if err := readJSON(here.dir, differencesFile, &reasons, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	result := &CompareResult{Baseline: baseline, Against: DefaultBaseline, Differences: []Explained{}, Findings: []LintFinding{}}
	for _, name := range here.Names() {
		if slices.Contains(there.Names(), name) {
			result.Patches++
		}
	}
	for _, d := range compareSeries(here, there) {
		result.Differences = append(result.Differences, Explained{Difference: d})
	}
	return result, reasons, nil
}

// FixDifferences writes differences.json of a baseline below dir anew: an entry for each difference, with its reason if
// it had one. It reports whether the file changed.
func FixDifferences(dir, baseline string) (bool, error) {
	result, reasons, err := compareWithDefault(os.DirFS(dir), baseline)
	if err != nil {
		return false, err
	}
	kept := []Reason{}
	for _, d := range result.Differences {
		r := Reason{Patch: d.Patch, Path: d.Path, Digest: d.Digest}
		if at := slices.IndexFunc(reasons, d.explainedBy); at >= 0 {
			r.Reason = reasons[at].Reason
		}
		if !slices.Contains(kept, r) {
			kept = append(kept, r)
		}
	}
	text, err := FileText(differencesFile, kept)
	if err != nil {
		return false, err
	}
	file := filepath.Join(dir, baseline, differencesFile)
	was, err := os.ReadFile(file)
	if err == nil && bytes.Equal(was, text) || errors.Is(err, fs.ErrNotExist) && len(kept) == 0 {
		return false, nil
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return false, fmt.Errorf("write the reasons: %w", err)
	}
	return true, nil
}
