package patches

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// CoverageFile holds which of the lines that a baseline's series adds the stages have run, in the baseline's folder.
const CoverageFile = "coverage.json"

// MostUnrun is the largest part of the lines that may never have run.
const MostUnrun = 0.03

// Coverage is which of the lines that the series adds ran in the host build under the stages. People write the reasons; the rest is
// recorded.
type Coverage struct {
	Schema       int       `json:"schema"` // always 1
	Tag          string    `json:"tag"`
	SeriesDigest string    `json:"series_digest"`
	Stages       []string  `json:"stages"` // in their short form
	Date         time.Time `json:"date"`
	Tool         string    `json:"mpsforge"`
	Seed         uint64    `json:"seed"`
	// Lines are those with code of the files that were measured: as LLVM counts, without those that are only punctuation.
	Lines int `json:"lines"`
	Run   int `json:"run"`
	// Unrun are the others, in the order of the series' files.
	Unrun []UnrunLine `json:"unrun"`
	// NotMeasured are the files in which the series adds lines and that the host build does not compile.
	NotMeasured []string `json:"not_measured"`
}

// UnrunLine is a line that no stage has run.
type UnrunLine struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1, with the whole series applied
	Text string `json:"text"`
	// Reason why it cannot run over the software Metal, or "".
	Reason string `json:"reason,omitempty"`
}

// ErrCoverage is returned, wrapped, where it cannot be measured.
var ErrCoverage = errors.New("coverage")

// ReadCoverage reads what a baseline's folder holds. Without the file the error wraps fs.ErrNotExist.
func ReadCoverage(fsys fs.FS, baseline string) (Coverage, error) {
	var c Coverage
	err := readRecord(fsys, baseline, CoverageFile, &c, &c.Schema)
	return c, err
}

// Count sorts the lines that the series adds into those that have run and the others. counts gives for each file that was measured, by its
// path in the tree, how often each line with code ran, from 1.
func (c *Coverage) Count(series *Series, counts map[string]map[int]uint64) {
	c.Schema, c.Tag, c.SeriesDigest, c.Unrun, c.NotMeasured = 1, series.Baseline.Tag, series.Digest(), []UnrunLine{}, []string{}
	for _, line := range addedLines(series) {
		lines, measured := counts[line.path]
		if !measured {
			if !slices.Contains(c.NotMeasured, line.path) {
				c.NotMeasured = append(c.NotMeasured, line.path)
			}
			continue
		}
		count, code := lines[line.line]
		if text := strings.TrimSpace(line.text); !code || strings.HasPrefix(text, "//") || strings.Trim(text, "{}();, ") == "" {
			continue
		}
		c.Lines++
		if count > 0 {
			c.Run++
			continue
		}
		c.Unrun = append(c.Unrun, UnrunLine{Path: line.path, Line: line.line, Text: strings.TrimSpace(line.text)})
	}
}

// Summary says in words how many lines ran.
func (c Coverage) Summary() string {
	if c.Lines == 0 {
		return "which lines run was not measured"
	}
	return fmt.Sprintf("%d of %d lines that the series adds ran (%.1f %%)", c.Run, c.Lines, 100*float64(c.Run)/float64(c.Lines))
}

// KeepReasons takes over the reasons of an earlier record, for the lines that are in both.
func (c *Coverage) KeepReasons(earlier Coverage) {
	for i, line := range c.Unrun {
		at := slices.IndexFunc(earlier.Unrun, func(e UnrunLine) bool { return e.Path == line.Path && e.Text == line.Text && e.Reason != "" })
		if at >= 0 {
			c.Unrun[i].Reason = earlier.Unrun[at].Reason
		}
	}
}

// CoverageResult is what LintCoverage found.
type CoverageResult struct {
	Recorded
	Coverage `json:"coverage"`
}

// LintCoverage compares the recorded coverage of a baseline with its series as it is now. A baseline without the file is asked for none.
func LintCoverage(fsys fs.FS, baseline string) (*CoverageResult, error) {
	result := &CoverageResult{Recorded: recordedOf(baseline), Coverage: Coverage{Unrun: []UnrunLine{}, NotMeasured: []string{}}}
	add := result.finding(CoverageFile, RuleCoverage)
	recorded, err := ReadCoverage(fsys, baseline)
	series, err := comparedWith(fsys, baseline, err, recorded.Tag, "coverage is", "measure it again", add)
	if series == nil {
		return result, err
	}
	result.Coverage = recorded
	command := "mpsforge baseline coverage --baseline " + baseline + " --patches DIR --checkout DIR --measure"
	if recorded.SeriesDigest != series.Digest() {
		add(SeverityWarning, command, "the series has changed since its coverage was measured")
		return result, nil
	}
	if most := int(MostUnrun * float64(recorded.Lines)); len(recorded.Unrun) > most {
		add(SeverityWarning, "write scenarios that run them", fmt.Sprintf("%d of %d lines have never run; at most %d may", len(recorded.Unrun),
			recorded.Lines, most))
	}
	without := 0
	for _, line := range recorded.Unrun {
		if line.Reason == "" {
			without++
		}
	}
	if without > 0 {
		add(SeverityWarning, "write the reasons into "+CoverageFile, fmt.Sprintf("%d lines that have never run have no reason", without))
	}
	return result, nil
}
