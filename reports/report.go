// Package reports holds the model of a verification report and renders it.
//
// The model is the contract between the stages that fill it and everybody who reads it later (people, CI, a comparison
// of two runs), so its JSON form carries a schema number: readers refuse a number they do not know.
package reports

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"mpsforge/internal/words"
)

// Schema is the version of the JSON form that this package writes. It rises whenever a field changes its meaning or
// goes away; new optional fields do not raise it.
const Schema = 1

// Verdict is the outcome of a stage or of one check in it. The zero value is not a verdict at all and is never written.
type Verdict string

// The four outcomes. Skipped means that the stage or check cannot run here, for the reason given with it; NotRun means
// that it was not reached or not asked for. Neither is ever counted as a pass.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Skipped Verdict = "skipped"
	NotRun  Verdict = "not run"
)

// NotAsked is the reason of stages that a run left out because others were named.
const NotAsked = "not asked for"

// Report is one run of the verification pipeline.
type Report struct {
	Schema   int       `json:"schema"`
	Tool     Tool      `json:"tool"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Quick    bool      `json:"quick"`
	Seed     uint64    `json:"seed"` // every random choice of the run derives from it
	Identity Identity  `json:"identity"`
	Machine  Machine   `json:"machine"`
	// Shard says that this is a part of a run alone. It never has the verdict Passed, whatever its stages have: Merge makes a run of
	// all parts.
	Shard  *Shard  `json:"shard,omitempty"`
	Merged int     `json:"merged,omitempty"` // from so many shards
	Stages []Stage `json:"stages"`
	// Verdict is Failed if any stage failed, else Skipped if a required stage did not run, else Passed if any passed.
	Verdict Verdict  `json:"verdict"`
	Missing []string `json:"missing,omitempty"` // required stages that did not run
	// Settings are the flags that a file of settings has set, by name.
	Settings map[string]string `json:"settings,omitempty"`
	// Choices are the flags that made stages run something else than their short or long form, by name.
	Choices map[string]string `json:"choices,omitempty"`
	Command string            `json:"command,omitempty"` // for a POSIX shell: runs the same again, with the same seed
	// Summary is Conclusion, for readers of the JSON form: the verdict alone does not say that stages did not run.
	Summary string   `json:"summary,omitempty"`
	Limits  []string `json:"limits"` // what this kind of run cannot show, in full sentences
}

// Shard is one of several parts of a run, from 1 on.
type Shard struct {
	Index int `json:"index"`
	Of    int `json:"of"`
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Tool names the program that wrote the report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// Identity says what was verified.
type Identity struct {
	Baseline     string   `json:"baseline"`
	SeriesDigest string   `json:"series_digest"` // SHA-256 over the names of the patches and their diffs, in order
	Patches      []string `json:"patches"`
	Checkout     string   `json:"checkout,omitempty"` // path, empty when no stage needed a checkout
	BaseCommit   string   `json:"base_commit,omitempty"`
	BaseProof    string   `json:"base_proof,omitempty"` // how the base is known to be the baseline
	HeadCommit   string   `json:"head_commit,omitempty"`
	HeadTree     string   `json:"head_tree,omitempty"`
}

// Machine says where.
type Machine struct {
	System   string `json:"system"` // GOOS/GOARCH
	Cores    int    `json:"cores"`
	Git      string `json:"git,omitempty"`
	MetalRan bool   `json:"metal_ran"` // whether a real Metal device was used; false on every Linux run
}

// Stage is one step of the pipeline.
type Stage struct {
	Name     string           `json:"name"`
	Question string           `json:"question"`
	Verdict  Verdict          `json:"verdict"`
	Reason   string           `json:"reason,omitempty"` // why it failed, was skipped or not run
	Seconds  float64          `json:"seconds"`
	Part     *Part            `json:"part,omitempty"` // in a shard's report, of a stage that is divided
	Counts   map[string]int64 `json:"counts,omitempty"`
	Seeds    []uint64         `json:"seeds,omitempty"`
	Facts    []Fact           `json:"facts,omitempty"` // identities proven by the stage, in order
	Checks   []Check          `json:"checks,omitempty"`
	Tables   []Table          `json:"tables,omitempty"`
	Plots    []Plot           `json:"plots,omitempty"`
}

// Part says how many of a stage's jobs a shard has, and of which.
type Part struct {
	Jobs   int    `json:"jobs"`
	Of     int    `json:"of"`
	Digest string `json:"digest"` // SHA-256 of the names of all jobs, sorted
	Done   bool   `json:"done"`   // the stage came to its end on all of the shard's jobs, which may be none
}

// Plot is a chart that begins at zero: of bars in groups, or of lines over a number. Like a table it decides nothing.
type Plot struct {
	Title string     `json:"title"`
	Unit  string     `json:"unit"`
	Bars  []PlotBar  `json:"bars,omitempty"`
	X     string     `json:"x,omitempty"` // what the lines' points count, such as "threads"
	Lines []PlotLine `json:"lines,omitempty"`
}

// PlotLine is one line, its points in rising order.
type PlotLine struct {
	Name   string      `json:"name"`
	Points []PlotPoint `json:"points"`
}

// PlotPoint is one point of a line.
type PlotPoint struct {
	X float64 `json:"x"`
	Y float64 `json:"y"` // not negative
	// Samples are the single measurements of a speed that Y is the median of; a comparison takes its uncertainty from
	// them. A point of something derived has none.
	Samples []float64 `json:"samples,omitempty"`
}

// PlotBar is one bar; bars of a group are together.
type PlotBar struct {
	Group string  `json:"group"`
	Name  string  `json:"name"`
	Value float64 `json:"value"` // not negative
}

// Table shows measurements side by side. It decides nothing: verdicts are the checks'.
type Table struct {
	Title string `json:"title"`
	Note  string `json:"note,omitempty"` // how to read it, and what it cannot say
	// Key says that so many first columns name a row, and a merge of shards adds up the others; 0: it puts the rows one after another.
	Key     int        `json:"key,omitempty"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Fact is one named value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Check is one scenario, history group, sanitizer run or rule within a stage.
type Check struct {
	Name    string  `json:"name"`
	Subject string  `json:"subject,omitempty"` // what was checked, such as "reference", "stock" or "patched, tsan": a side and its flavour
	Rule    string  `json:"rule,omitempty"`    // the pool's rules that it tests, by number (docs/dev/spec/pool.md)
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail,omitempty"` // one line; on failure expected and found
	Seconds float64 `json:"seconds"`
	Output  string  `json:"output,omitempty"` // bounded tail of a tool's own words, on failure
	// Artifact is the path of a file kept for a failure, such as a minimised history, else empty.
	Artifact string `json:"artifact,omitempty"`
	// Shard is the index of the shard that judges it, where this report is of another one.
	Shard int `json:"shard,omitempty"`
	// Cells show how the check's processes ended, for each number of threads.
	Cells []Cell `json:"cells,omitempty"`
	// Findings are what checkers found, wanted or not; of many the first ones.
	Findings []Finding `json:"findings,omitempty"`
}

// Cell is one cell of the thread grid: the processes of a check with the same number of threads.
type Cell struct {
	Threads   int     `json:"threads"`        // with path "processes" so many processes
	Path      string  `json:"path,omitempty"` // which of several ways through the same test, such as "graph", "warm" or "processes"
	Outcome   Outcome `json:"outcome"`        // of the first process that did not pass, else OutcomePassed
	Bad       int     `json:"bad"`            // processes that ended so or otherwise badly
	Of        int     `json:"of"`             // processes that ran
	Signature string  `json:"signature,omitempty"`
	Detail    string  `json:"detail,omitempty"` // one line: the first problem, or why there is no outcome
}

// Outcome is how a process ended. It is not a verdict: a stock torch must crash in some checks.
type Outcome string

// The outcomes.
const (
	OutcomePassed      Outcome = "passed" // all operations done, all values right, nothing found
	OutcomeFailed      Outcome = "failed" // errors, or something was not done or not compared
	OutcomeWrongValues Outcome = "wrong values"
	OutcomeCrashed     Outcome = "crashed"
	OutcomeHung        Outcome = "hung"
	OutcomeRace        Outcome = "race"      // found by ThreadSanitizer or by the software Metal
	OutcomeViolation   Outcome = "violation" // another finding of the software Metal
	OutcomeSkipped     Outcome = "skipped"
)

// Finding is what a checker saw, with both sides of it.
type Finding struct {
	Kind      string `json:"kind"` // such as "data race", "race" or "violation"
	Threads   int    `json:"threads,omitempty"`
	Message   string `json:"message"`
	First     string `json:"first,omitempty"`
	Second    string `json:"second,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// Add appends a check and keeps the stage's verdict in step: one failed check fails the stage, and a stage passes only
// if at least one of its checks passed.
func (s *Stage) Add(check Check) {
	s.Checks = append(s.Checks, check)
	switch {
	case check.Verdict == Failed && s.Verdict != Failed:
		s.Verdict = Failed
		s.Reason = check.Name + ": " + check.Detail
	case check.Verdict == Passed && s.Verdict == "":
		s.Verdict = Passed
	}
}

// AddTable adds a table; one without rows says nothing and is left out.
func (s *Stage) AddTable(table Table) {
	if len(table.Rows) > 0 {
		s.Tables = append(s.Tables, table)
	}
}

// Count adds n to the counter called name.
func (s *Stage) Count(name string, n int64) {
	if s.Counts == nil {
		s.Counts = map[string]int64{}
	}
	s.Counts[name] += n
}

// Stage returns the stage called name, or nil.
func (r *Report) Stage(name string) *Stage {
	if i := slices.IndexFunc(r.Stages, func(s Stage) bool { return s.Name == name }); i >= 0 {
		return &r.Stages[i]
	}
	return nil
}

// Conclude sets verdict and summary from the stages and from the names of those that were required to run.
func (r *Report) Conclude(required []string) {
	r.Verdict, r.Missing = NotRun, nil
	for _, stage := range r.Stages {
		switch {
		case stage.Verdict == Failed:
			r.Verdict = Failed
		case stage.Verdict == Passed && r.Verdict == NotRun:
			r.Verdict = Passed
		}
	}
	for _, name := range required {
		stage := r.Stage(name)
		done := stage != nil && stage.Part != nil && stage.Part.Done // whatever the other shards find
		if !ran(stage) && !done && !slices.Contains(r.Missing, name) {
			r.Missing = append(r.Missing, name)
		}
	}
	if (len(r.Missing) > 0 || r.Shard != nil) && r.Verdict != Failed {
		r.Verdict = Skipped
	}
	r.Summary = r.Conclusion()
}

// ran says whether a stage has a verdict of its own.
func ran(s *Stage) bool { return s != nil && (s.Verdict == Passed || s.Verdict == Failed) }

// Conclusion is the verdict as every summary of the report says it. Where not all stages ran it says how many passed of how
// many, so that a run of some stages does not look like a pass of all.
func (r *Report) Conclusion() string {
	passed, all := 0, true
	for i := range r.Stages {
		if r.Stages[i].Verdict == Passed {
			passed++
		}
		all = all && ran(&r.Stages[i])
	}
	text := string(r.Verdict)
	if r.Verdict == Skipped {
		text = "incomplete"
	}
	if !all {
		counted := fmt.Sprintf("passed %d of %d stages", passed, len(r.Stages))
		if r.Verdict == Passed {
			text = counted
		} else {
			text += ", " + counted
		}
	}
	if len(r.Missing) > 0 {
		text += "; required but not run: " + strings.Join(r.Missing, ", ")
	}
	if r.Shard != nil {
		text += fmt.Sprintf("; shard %s alone, no whole run", r.Shard)
	}
	return text
}

// WhyMissing names the required stages that did not run, those with the same reason together, and the reasons.
func (r *Report) WhyMissing() string {
	var groups words.Groups
	for _, name := range r.Missing {
		reason := "there is no such stage in the report"
		if stage := r.Stage(name); stage != nil {
			reason = stage.Reason
		}
		groups.Add(reason, name)
	}
	var parts []string
	for _, group := range groups {
		parts = append(parts, fmt.Sprintf("%s (%s)", strings.Join(group.Names, ", "), group.Reason))
	}
	return strings.Join(parts, ", ")
}

// WriteJSON writes the report as indented JSON with a final newline. The checks are encoded one by one: all at once, a million of
// them take several times the report's own memory.
func (r *Report) WriteJSON(w io.Writer) error {
	outline := *r
	outline.Stages = slices.Clone(r.Stages)
	for i := range outline.Stages {
		if len(outline.Stages[i].Checks) > 0 {
			outline.Stages[i].Checks = []Check{{}} // no check of a report is empty
		}
	}
	const indent = "  "
	text, err := encoded(outline, "", indent)
	place, placeErr := encoded(Check{}, strings.Repeat(indent, 4), indent)
	if err := errors.Join(err, placeErr); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for _, stage := range r.Stages {
		for i := range stage.Checks {
			separator := ",\n" + strings.Repeat(indent, 4)
			if i == 0 {
				var before []byte
				before, text, _ = bytes.Cut(text, place)
				separator = string(before)
			}
			check, err := encoded(stage.Checks[i], strings.Repeat(indent, 4), indent)
			if err != nil {
				return err
			}
			_, _ = out.WriteString(separator) // Flush gives the error
			_, _ = out.Write(check)
		}
	}
	_, _ = out.Write(append(text, '\n'))
	return out.Flush()
}

// encoded is JSON without a final newline.
func encoded(value any, prefix, indent string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent(prefix, indent)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimRight(text.Bytes(), "\n"), err
}

// ErrSchema is returned, wrapped, for a report whose schema number this package does not know.
var ErrSchema = errors.New("unknown report schema")

// ErrNoReport is returned, wrapped, for a file that WriteJSON did not write.
var ErrNoReport = errors.New("not a report of mpsforge verify")

// ReadFile reads a report that WriteJSON wrote. Other JSON is refused: it would be shown as a report of nothing.
func ReadFile(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	var report Report
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("read report %s: %w: %w", path, ErrNoReport, err)
	}
	switch {
	case report.Schema == 0:
		return nil, fmt.Errorf("read report %s: %w: it has no schema number", path, ErrNoReport)
	case report.Schema != Schema:
		return nil, fmt.Errorf("read report %s: %w %d: this mpsforge reads schema %d", path, ErrSchema, report.Schema, Schema)
	case len(report.Stages) == 0:
		return nil, fmt.Errorf("read report %s: %w: it has no stages", path, ErrNoReport)
	case marks[report.Verdict] == "":
		return nil, fmt.Errorf("read report %s: %w: %q is not a verdict", path, ErrNoReport, report.Verdict)
	}
	for i, stage := range report.Stages {
		if stage.Name == "" || marks[stage.Verdict] == "" {
			return nil, fmt.Errorf("read report %s: %w: its stage %d, %q, has no name or no verdict", path, ErrNoReport, i+1, stage.Name)
		}
		if fault := stage.fault(); fault != "" {
			return nil, fmt.Errorf("read report %s: %w: in its stage %s %s", path, ErrNoReport, stage.Name, fault)
		}
	}
	return &report, nil
}

// fault says what in the stage's tables and plots cannot be shown or merged, as nothing of ours writes it, or is empty.
func (s *Stage) fault() string {
	for _, table := range s.Tables {
		if table.Key < 0 || table.Key > len(table.Columns) {
			return fmt.Sprintf("the table %q has %d columns, of which %d name a row", table.Title, len(table.Columns), table.Key)
		}
		for _, row := range table.Rows {
			if table.Key > 0 && len(row) != len(table.Columns) {
				return fmt.Sprintf("the table %q has %d columns, and a row of %d", table.Title, len(table.Columns), len(row))
			}
		}
	}
	for _, plot := range s.Plots {
		for _, bar := range plot.Bars {
			if bar.Value < 0 {
				return fmt.Sprintf("the plot %q has the value %g, which is less than none", plot.Title, bar.Value)
			}
		}
		for _, line := range plot.Lines {
			if len(line.Points) == 0 {
				return fmt.Sprintf("the plot %q has a line without points, %q", plot.Title, line.Name)
			}
			for _, point := range line.Points {
				if point.Y < 0 {
					return fmt.Sprintf("the plot %q has the value %g, which is less than none", plot.Title, point.Y)
				}
			}
		}
	}
	return ""
}
