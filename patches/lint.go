package patches

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"mpsforge/internal/suggest"
	"mpsforge/internal/words"
)

// The rules of Lint.
const (
	RuleSeries     = "series"     // series file and directory agree; names are slugs
	RuleParse      = "parse"      // one mail, one well-formed git diff
	RuleCanonical  = "canonical"  // byte for byte what git format-patch writes under the pinned options
	RuleMessage    = "message"    // subject, body, no line that git am would cut at
	RuleTrailers   = "trailers"   // Upstream-Status, Scenario, Fixes
	RulePath       = "path"       // text files inside the tree
	RuleWhitespace = "whitespace" // no trailing white space, no CR, a newline at the end
	RuleContext    = "context"    // every old line is at its line number; blob ids chain
	RuleHeading    = "heading"    // hunk headings are lines of the file, under git's default driver
	RuleBounds     = "bounds"     // how much a patch, the series and an operations file may change
	RuleBaseline   = "baseline"   // baseline.json, digests.json and the series agree
	RuleABI        = "abi"        // note: a change in a header that out-of-tree extensions include
	RuleUnverified = "unverified" // a hunk that cannot be checked
	RuleCumulative = "cumulative" // cumulative.patch is the composition of the series
	RuleBlobs      = "blobs"      // the blob ids that patches name as their results were recorded from exact text
	RuleRuns       = "runs"       // every stage was run on the series as it is (LintRuns)
	RuleAblation   = "ablation"   // something notices when a patch of the series as it is is left out (LintAblation)
	RuleControls   = "controls"   // the checks that a control names were seen to fail with it (LintControls)
	RuleCoverage   = "coverage"   // nearly all lines of the series as it is have run (LintCoverage)
	RuleMutants    = "mutants"    // faults planted into the series' lines were judged, and those that survived explained (LintMutants)
)

// Severity says what a finding means for the result.
type Severity string

// The severities. Neither an error nor an unverified hunk is a pass. A warning is no fault of the series, but nothing is to be
// claimed of it before that is seen to; a note is for the reader.
const (
	SeverityError      Severity = "error"
	SeverityUnverified Severity = "unverified"
	SeverityWarning    Severity = "warning"
	SeverityNote       Severity = "note"
)

// LintFinding is one thing that Lint has to say.
type LintFinding struct {
	File     string   `json:"file"` // below patches/
	Line     int      `json:"line"` // 0 for the file as a whole
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Do       string   `json:"do,omitempty"` // what to do about it
}

// String is the finding on one line, in the form that editors understand.
func (f LintFinding) String() string {
	s := fmt.Sprintf("%s:%d: %s [%s]: %s", f.File, f.Line, f.Severity, f.Rule, f.Message)
	if f.Do != "" {
		s += "; " + f.Do
	}
	return s
}

// PatchChange is how many lines a patch adds and removes.
type PatchChange struct {
	Patch string `json:"patch"`
	Lines int    `json:"lines"`
}

// LintResult is what Lint found. Hunks that are neither verified nor unverified are wrong, and have a finding.
type LintResult struct {
	Baseline   string        `json:"baseline"`
	Patches    int           `json:"patches"`
	Hunks      int           `json:"hunks"`
	Verified   int           `json:"verified"`
	Unverified int           `json:"unverified"`
	Files      int           `json:"files"`         // of the baseline that the series touches
	FilesExact int           `json:"files_exact"`   // of these, those whose exact text is known by its digests
	Changed    []PatchChange `json:"changed"`       // per patch, in order
	Total      int           `json:"changed_total"` // lines changed by the series
	NoTests    int           `json:"changed_without_tests"`
	Findings   []LintFinding `json:"findings"` // in the order of the series
}

// Of lists the findings of one severity.
func (r *LintResult) Of(s Severity) []LintFinding {
	var of []LintFinding
	for _, f := range r.Findings {
		if f.Severity == s {
			of = append(of, f)
		}
	}
	return of
}

const (
	maxSubject    = 72   // characters, the tag included
	maxPatch      = 400  // changed lines outside test/, but for those of patchBounds
	maxSeries     = 6500 // changed lines outside test/
	maxPatches    = 16
	maxOperations = 15 // changed lines in one operations/*.mm, over the series
	headingCut    = 80 // bytes at which git cuts a heading
)

// patchBounds are those of patches that have more, and why.
var patchBounds = map[string]int{
	"stream-pool":       620, // one idea, of which a half lets a program make streams that nothing counts or waits for
	"op-guards":         480, // a guard without what torchgen writes into wrappers, or the other way round, is used by nobody
	"hand-over":         900, // one protocol: records, locks, and the way past the locks
	"allocator-streams": 490, // memory and cached graphs have one rule: only who no longer uses them gives them back
	"thread-leases":     490, // what shows that leases are right, statistics and the end of a lease, comes with them
}

// operationsBounds are those of files that the series fixes, and not only connects.
var operationsBounds = map[string]int{
	"aten/src/ATen/native/mps/operations/Copy.mm": 80, // the copies themselves lose numbers, and take memory without a bound (cpu-copies)
}

// abiHeaders are the headers that out-of-tree extensions include, with the classes whose layout they rely on.
var abiHeaders = map[string]string{
	"aten/src/ATen/mps/MPSStream.h":                 "MPSStream",
	"aten/src/ATen/mps/MPSGuardImpl.h":              "MPSGuardImpl",
	"aten/src/ATen/mps/MPSEvent.h":                  "MPSEvent",
	"aten/src/ATen/mps/MPSAllocatorInterface.h":     "IMPSAllocator's vtable order",
	"aten/src/ATen/native/mps/MetalShaderLibrary.h": "MetalShaderLibrary",
	"aten/src/ATen/native/mps/OperationUtils.h":     "MPSCachedGraph, MPSGraphCache, MPSKernelCache",
}

// ABIClasses names the classes whose layout out-of-tree extensions rely on, of the header at a path; empty for any other
// file.
func ABIClasses(path string) string { return abiHeaders[path] }

var (
	upstreamStatus = lazy(`^(Pending|Submitted https://\S+|Backport #\d+|Inappropriate \S.*)$`)
	fixes          = lazy(`^(#\d+|https://github\.com/pytorch/pytorch/issues/\d+)$`)
)

// noScenario is what a Scenario trailer says where nothing fails without the patch.
const noScenario = "none"

// trailerKeys are the trailers that mean something here; another one that is nearly like one of them is a mistake.
var trailerKeys = []string{"Upstream-Status", "Scenario", "Fixes", "BC-Note"}

// Lint checks a baseline's series without any checkout: form, message, paths, bounds, and every context and removed
// line against the baseline's line digests, through all patches in order. An error means that there was nothing to
// check; what is wrong with the series are findings. Scenarios are the names that Scenario trailers may have beside the patch's own
// test files; nil: they are not known, and the names are not checked.
func Lint(fsys fs.FS, baseline string, scenarios []string) (*LintResult, error) {
	dir, err := baselineDir(fsys, baseline)
	if err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	if err := checkFinished(dir, baseline); err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	text, err := readFile(dir, seriesFile)
	if err != nil {
		return nil, fmt.Errorf("lint %s: read the series: %w", baseline, err)
	}
	l := &linter{dir: dir, scenarios: scenarios, result: LintResult{Baseline: baseline, Changed: []PatchChange{}, Findings: []LintFinding{}},
		operations: map[string]int{}}
	l.readFacts(baseline)
	for _, e := range l.lintSeries(string(text)) {
		l.lintPatch(e)
	}
	l.lintTotals()
	l.lintCumulative()
	return &l.result, nil
}

// linter carries what the rules learn from patch to patch.
type linter struct {
	dir        fs.FS
	scenarios  []string // that trailers may name; nil: not known
	result     LintResult
	series     Series
	digests    Digests
	blobs      Blobs
	files      files          // as the patches so far leave them
	unread     string         // the first patch that could not be parsed: after it nothing is known
	operations map[string]int // changed lines per operations/*.mm
}

func (l *linter) add(file string, line int, rule string, severity Severity, do, message string, args ...any) {
	l.result.Findings = append(l.result.Findings, LintFinding{
		File: path.Join(l.result.Baseline, file), Line: line, Rule: rule, Severity: severity,
		Message: fmt.Sprintf(message, args...), Do: do,
	})
}

// error adds a finding about a patch.
func (l *linter) error(p *Patch, line int, rule, do, message string, args ...any) {
	l.add(p.Name+suffix, line, rule, SeverityError, do, message, args...)
}

func (l *linter) readFacts(baseline string) {
	var err error
	if l.series.Baseline, err = readBaseline(l.dir); err != nil {
		l.add(BaselineFile, 0, RuleBaseline, SeverityError, "", "%v", err)
	} else if name := l.series.Baseline.Name; name != baseline {
		l.add(BaselineFile, 0, RuleBaseline, SeverityError, "give name and directory the same value", "the name is %q, the directory is %s", name, baseline)
	}
	if l.digests, err = readDigests(l.dir); err != nil {
		l.add(digestsFile, 0, RuleBaseline, SeverityError, "", "%v", err)
	}
	if l.blobs, err = readBlobs(l.dir); err != nil {
		l.add(blobsFile, 0, RuleBlobs, SeverityError, recordBlobs, "%v", err)
	}
	l.files = newFiles(l.series.Baseline, l.digests)
}

// lintSeries checks the series file against the directory and returns the entries that have a file.
func (l *linter) lintSeries(text string) []entry {
	entries, faults := parseSeries(text)
	for _, f := range faults {
		l.add(seriesFile, f.line, RuleSeries, SeverityError, f.do, "%s", f.why)
	}
	present, _ := fs.Glob(l.dir, "*"+suffix) // the pattern is well-formed
	entries = slices.DeleteFunc(entries, func(e entry) bool {
		if slices.Contains(present, e.name+suffix) {
			return false
		}
		l.add(seriesFile, e.line, RuleSeries, SeverityError, "add the file, or delete the line", "%s%s is listed but does not exist", e.name, suffix)
		return true
	})
	for _, name := range present {
		if !slices.ContainsFunc(entries, func(e entry) bool { return e.name+suffix == name }) && name != CumulativeFile {
			l.add(name, 0, RuleSeries, SeverityError, "list it, or delete it", "the patch is not listed in the series")
		}
	}
	return entries
}

func (l *linter) lintPatch(e entry) {
	raw, err := readFile(l.dir, e.name+suffix)
	if err != nil {
		l.add(seriesFile, e.line, RuleSeries, SeverityError, "make the file readable", "%v", err)
		return
	}
	p, err := Parse(e.name, raw)
	if err != nil {
		var fault *ParseError
		if errors.As(err, &fault) {
			l.add(e.name+suffix, fault.Line, fault.Rule, SeverityError, fault.Do, "%s", fault.Why)
		} else {
			l.add(e.name+suffix, 0, RuleParse, SeverityError, "export the commit again", "%v", err)
		}
		l.unread = cmp.Or(l.unread, e.name)
		return
	}
	l.series.Patches = append(l.series.Patches, p)
	l.lintCanonical(p)
	l.lintMessage(p)
	l.lintTrailers(p)
	for _, f := range p.Files {
		l.lintPaths(p, f)
		l.lintWhitespace(p, f)
		l.lintABI(p, f)
		l.lintContext(p, f)
		l.lintBlob(p, f)
	}
	l.count(p)
}

func (l *linter) lintCanonical(p *Patch) {
	const do = "run mpsforge lint --fix"
	want, err := Canonical(p)
	if err != nil {
		if !slices.ContainsFunc(p.Files, func(f *File) bool { return f.IsBinary || f.IsCopy }) { // these are RulePath's
			l.error(p, 0, RuleCanonical, "export the commit with mpsforge export", "%v", err)
		}
		return
	}
	if bytes.Equal(want, p.Raw) {
		return
	}
	have, canon := strings.SplitAfter(string(p.Raw), "\n"), strings.SplitAfter(string(want), "\n")
	i := 0
	for i < min(len(have), len(canon))-1 && have[i] == canon[i] {
		i++
	}
	l.error(p, i+1, RuleCanonical, do, "the line is %q, in canonical form %q", have[i], canon[i])
}

func (l *linter) lintMessage(p *Patch) {
	const at = 4 // where the subject is in canonical form, unless the author's name is folded
	if rest, ok := strings.CutPrefix(p.Header.Subject, "[MPS] "); !ok || rest == "" {
		l.error(p, at, RuleMessage, "begin it with [MPS], as upstream does", "the subject %q does not begin with \"[MPS] \"", p.Header.Subject)
	}
	if n := utf8.RuneCountInString(p.Header.Subject); n > maxSubject {
		l.error(p, at, RuleMessage, "shorten it", "the subject has %d characters, at most %d are allowed", n, maxSubject)
	}
	paragraphs := strings.Split(p.Header.Body, "\n\n")
	if p.Header.Body == "" || len(paragraphs) == 1 && len(p.Header.Trailers) > 0 {
		l.error(p, at, RuleMessage, "say what is wrong, why this fixes it, and what proves it", "the message has no body")
	}
}

func (l *linter) lintTrailers(p *Patch) {
	last := 0 // the line to name for a trailer that is missing
	for _, t := range p.Header.Trailers {
		last = t.Line
		switch {
		case t.Key == "Upstream-Status" && !upstreamStatus().MatchString(t.Value):
			l.error(p, t.Line, RuleTrailers, "write Pending, Submitted https://..., Backport #n or Inappropriate and the reason",
				"Upstream-Status: %q", t.Value)
		case t.Key == "Fixes" && !fixes().MatchString(t.Value):
			l.error(p, t.Line, RuleTrailers, "write #n or the issue's URL", "Fixes: %q is not an issue of pytorch/pytorch", t.Value)
		case t.Key == "Scenario" && t.Value == "":
			l.error(p, t.Line, RuleTrailers, "name the verify scenario", "Scenario: is empty")
		case t.Key == "Scenario":
			l.lintScenario(p, t)
		default:
			if near := suggest.Nearest(t.Key, trailerKeys); near != "" && near != t.Key {
				l.error(p, t.Line, RuleTrailers, "correct the name", "there is no trailer %s (did you mean %q?)", t.Key, near)
			}
		}
	}
	if n := len(p.Header.Values("Upstream-Status")); n != 1 {
		l.error(p, last, RuleTrailers, "write exactly one", "the message has %d Upstream-Status trailers in its last paragraph", n)
	}
	if len(p.Header.Values("Scenario")) == 0 {
		l.error(p, last, RuleTrailers, "name the verify scenarios that fail without this patch", "the message has no Scenario trailer in its last paragraph")
	}
}

// lintScenario holds the name that a trailer gives against the scenarios there are, and the patch's own test files.
func (l *linter) lintScenario(p *Patch, t Trailer) {
	if l.scenarios == nil {
		return
	}
	known := append(slices.Clone(l.scenarios), noScenario)
	for _, f := range p.Files {
		if strings.HasPrefix(f.Path(), "test/") {
			known = append(known, path.Base(f.Path()))
		}
	}
	if !slices.Contains(known, t.Value) {
		l.error(p, t.Line, RuleTrailers, "name a scenario of the stages runtime or conformance, a test file that the patch changes, or none",
			"there is no scenario %q%s", t.Value, suggest.Meant(t.Value, known))
	}
}

func (l *linter) lintPaths(p *Patch, f *File) {
	for _, name := range f.paths() {
		if err := CheckChange(name); err != nil {
			l.error(p, f.Line, RulePath, "leave the file out", "%v", err)
		}
	}
	for _, mode := range slices.Compact([]os.FileMode{f.OldMode, f.NewMode}) {
		switch mode {
		case 0, modeFile, modeExecutable:
		case modeSymlink:
			l.error(p, f.Line, RulePath, "make it a file", "%s is a symbolic link", f.Path())
		case modeSubmodule:
			l.error(p, f.Line, RulePath, "leave it out", "%s is a submodule", f.Path())
		}
	}
	if f.IsBinary {
		l.error(p, f.Line, RulePath, "leave it out, or make it text", "%s is a binary change", f.Path())
	}
	if f.IsCopy {
		l.error(p, f.Line, RulePath, "export without copy detection", "%s is a copy", f.Path())
	}
}

// CheckPath refuses a path that could lead out of the work tree or into .git, on any of the systems git runs on.
func CheckPath(name string) error {
	refuse := func(why string) error {
		return fmt.Errorf("path %q is refused: %s", words.Shorten(name, 200, "..."), why)
	}
	if len(name) > 1000 {
		return refuse("it is longer than 1000 bytes, and macOS takes 1023, the checkout's folder included")
	}
	if strings.HasPrefix(name, "/") {
		return refuse("it is absolute")
	}
	if strings.ContainsAny(name, "\\:") || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 127 || r == utf8.RuneError }) {
		return refuse(`it has a backslash, a colon, a control character or is not UTF-8`)
	}
	for part := range strings.SplitSeq(name, "/") {
		// HFS+ ignores some characters beyond ASCII, Windows trailing dots and spaces: .g<zero width>it and ".git." are .git.
		ascii := strings.Map(func(r rune) rune {
			if r > 127 {
				return -1
			}
			return r
		}, part)
		switch bare := strings.TrimRight(ascii, ". "); {
		case part == "":
			return refuse("it has an empty component")
		case len(part) > 255:
			return refuse("it has a component of more than 255 bytes, which no file system takes")
		case part == "." || part == "..":
			return refuse("it has a component " + part)
		case strings.EqualFold(bare, ".git"), strings.EqualFold(bare, "git~1"):
			return refuse("it leads into .git")
		}
	}
	return nil
}

// CheckChange refuses a path that no patch of a series may change, besides those that CheckPath refuses.
func CheckChange(name string) error {
	if strings.EqualFold(name, ".gitmodules") {
		return fmt.Errorf("path %q is refused: it says where submodules come from, and a series changes one repository only", name)
	}
	return CheckPath(name)
}

func (l *linter) lintWhitespace(p *Patch, f *File) {
	for i, h := range f.TextFragments {
		for k, line := range h.Lines {
			if !line.New() || line.Old() {
				continue
			}
			text, ended := strings.CutSuffix(line.Line, "\n")
			switch {
			case strings.HasSuffix(text, "\r"):
				l.error(p, f.lineOf(i, k), RuleWhitespace, "write LF", "an added line of %s ends in CR", f.Path())
			case strings.TrimRight(text, " \t") != text:
				l.error(p, f.lineOf(i, k), RuleWhitespace, "cut it", "an added line of %s ends in white space", f.Path())
			}
			if !ended {
				l.error(p, f.lineOf(i, k), RuleWhitespace, "end the file with a newline", "%s does not end with a newline", f.Path())
			}
		}
	}
}

// lintABI notes each run of changed lines in the headers of the ABI, comments and blank lines aside.
func (l *linter) lintABI(p *Patch, f *File) {
	classes, ok := abiHeaders[f.Path()]
	if !ok {
		return
	}
	for i, h := range f.TextFragments {
		var before, after []string
		start := 0
		for k := 0; k <= len(h.Lines); k++ {
			if k < len(h.Lines) && !(h.Lines[k].Old() && h.Lines[k].New()) {
				if text := strings.TrimSpace(h.Lines[k].Line); isCode(text) {
					if len(before)+len(after) == 0 {
						start = k
					}
					if h.Lines[k].Old() {
						before = append(before, text)
					} else {
						after = append(after, text)
					}
				}
				continue
			}
			if len(before)+len(after) > 0 {
				l.add(p.Name+suffix, f.lineOf(i, start), RuleABI, SeverityNote, "keep sizes and member offsets unless a member is unavoidable",
					"%s (%s): before %q, after %q", f.Path(), classes, before, after)
			}
			before, after = nil, nil
		}
	}
}

// isCode reports whether a trimmed line of C++ is neither blank nor only a comment. Lines within a block comment that
// begin with neither * nor / count as code: a note too many.
func isCode(text string) bool {
	return text != "" && !strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "/*") && !strings.HasPrefix(text, "*")
}

// count adds a patch to the totals and checks its own bound.
func (l *linter) count(p *Patch) {
	n := p.Changed()
	l.result.Changed = append(l.result.Changed, PatchChange{p.Name, n})
	l.result.Total += n
	outside := 0
	for _, f := range p.Files {
		l.result.Hunks += len(f.TextFragments)
		if !strings.HasPrefix(f.Path(), "test/") {
			outside += f.Changed()
		}
		if ok, _ := path.Match("aten/src/ATen/native/mps/operations/*.mm", f.Path()); ok {
			l.operations[f.Path()] += f.Changed()
		}
	}
	l.result.NoTests += outside
	if most := cmp.Or(patchBounds[p.Name], maxPatch); outside > most {
		l.error(p, 0, RuleBounds, "split the patch", "%d changed lines outside test/, at most %d are allowed in this patch", outside, most)
	}
}

// lintTotals checks what concerns the series as a whole.
func (l *linter) lintTotals() {
	l.result.Patches = len(l.series.Patches)
	if l.result.Patches > maxPatches {
		l.add(seriesFile, 0, RuleBounds, SeverityError, "make one of two", "%d patches, at most %d are allowed in the series", l.result.Patches, maxPatches)
	}
	if l.result.NoTests > maxSeries {
		l.add(seriesFile, 0, RuleBounds, SeverityError, "make it smaller", "%d changed lines outside test/, at most %d are allowed in the series",
			l.result.NoTests, maxSeries)
	}
	for _, file := range slices.Sorted(maps.Keys(l.operations)) {
		most := cmp.Or(operationsBounds[file], maxOperations)
		if n := l.operations[file]; n > most {
			l.add(seriesFile, 0, RuleBounds, SeverityError, "move the code to a new file",
				"%d changed lines in %s, at most %d are allowed over the series", n, file, most)
		}
	}
	l.lintBaseline()
	l.lintBlobsUsed()
}

// lintBaseline checks that baseline.json and digests.json describe the same baseline, and what the series touches.
func (l *linter) lintBaseline() {
	b, d := l.series.Baseline, l.digests
	fault := func(file, message string, args ...any) {
		l.add(file, 0, RuleBaseline, SeverityError, "run mpsforge baseline record", message, args...)
	}
	if d.Tag != "" && d.Tag != b.Tag {
		fault(digestsFile, "the digests are of tag %q, the baseline is %q", d.Tag, b.Tag)
	}
	blobs := map[string]string{}
	for _, f := range d.Files {
		blobs[f.Path] = f.Blob
		if slices.Contains(b.Absent, f.Path) {
			fault(digestsFile, "%s has digests but is listed in absent", f.Path)
		}
	}
	for _, name := range l.series.TouchedPaths() {
		if b.Touched[name] != nil {
			l.result.Files++
			if blobs[name] == *b.Touched[name] {
				l.result.FilesExact++
			}
		}
		if _, ok := b.Touched[name]; !ok && b.Schema != 0 {
			fault(BaselineFile, "the series touches %s, which touched does not list", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Touched)) {
		blob, known := blobs[name]
		switch want := b.Touched[name]; {
		case len(l.series.Patches) > 0 && l.unread == "" && !slices.Contains(l.series.TouchedPaths(), name):
			fault(BaselineFile, "touched lists %s, which the series does not touch", name)
		case want == nil && known:
			fault(BaselineFile, "touched says that %s is absent, digests.json has it", name)
		case want == nil && !slices.Contains(b.Absent, name):
			fault(BaselineFile, "touched says that %s is absent, absent does not list it", name)
		case want != nil && known && *want != blob:
			fault(BaselineFile, "touched gives blob %s for %s, digests.json %s", *want, name, blob)
		}
	}
}
