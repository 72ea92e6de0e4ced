package patches

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Recorded is what is known of a file in a baseline's folder that a command writes: its form is the start of each such result.
type Recorded struct {
	Baseline string `json:"baseline"`
	// Findings are warnings and notes, but for an error where the file cannot be used.
	Findings []LintFinding `json:"findings"`
}

func recordedOf(baseline string) Recorded {
	return Recorded{Baseline: baseline, Findings: []LintFinding{}}
}

// Errors are the findings that say that the file cannot be used.
func (r *Recorded) Errors() []LintFinding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f LintFinding) bool { return f.Severity != SeverityError })
}

// finding gives what adds findings about the file with that name.
func (r *Recorded) finding(name, rule string) func(severity Severity, do, message string) {
	return func(severity Severity, do, message string) {
		r.Findings = append(r.Findings, LintFinding{File: r.Baseline + "/" + name, Rule: rule, Severity: severity, Message: message, Do: do})
	}
}

// readRecord reads what a command has recorded in a baseline's folder. Without the file the error wraps fs.ErrNotExist.
func readRecord(fsys fs.FS, baseline, name string, to any, schema *int) error {
	dir, err := baselineDir(fsys, baseline)
	if err != nil {
		return err
	}
	return readJSON(dir, name, to, schema)
}

// readFacts reads a file of facts from the folder of the series' baseline, which may have none.
func (s *Series) readFacts(name string, to any, schema *int) error {
	if s.dir == nil {
		return nil
	}
	if err := readJSON(s.dir, name, to, schema); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// comparedWith gives the series that a recorded file, which was read with that error, is compared with; nil where there is no file, or
// none that can be used, which is a finding. So is a tag of another baseline: what the file holds is called what, and do corrects it.
func comparedWith(fsys fs.FS, baseline string, read error, tag, what, do string, add func(severity Severity, do, message string)) (*Series, error) {
	switch {
	case errors.Is(read, ErrUnknownBaseline):
		return nil, read
	case errors.Is(read, fs.ErrNotExist):
		return nil, nil
	case read != nil:
		add(SeverityError, "", read.Error())
		return nil, nil
	}
	series, err := Load(fsys, baseline)
	if err == nil && tag != series.Baseline.Tag {
		add(SeverityError, do, fmt.Sprintf("the %s of tag %q, the baseline is %q", what, tag, series.Baseline.Tag))
	}
	return series, err
}
