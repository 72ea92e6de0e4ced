package patches

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"mpsforge/internal/suggest"
)

// MutantsFile holds the mutants of a baseline's series and what found them, in the baseline's folder.
const MutantsFile = "mutants.json"

// Kinds of mutants that make races of accesses.
const (
	kindLock  = "lock left out"
	kindOrder = "order weakened"
)

// Mutants are small faults planted into the lines that a series adds, to see whether the verifier finds them (mutants.json). The list is
// drawn by a seed before any of them is judged.
type Mutants struct {
	Schema       int      `json:"schema"` // always 1
	Tag          string   `json:"tag"`
	SeriesDigest string   `json:"series_digest"` // of the series that they are drawn from
	Seed         uint64   `json:"seed"`
	Mutants      []Mutant `json:"mutants"`
}

// Mutant is one changed line of the patched tree.
type Mutant struct {
	Name string `json:"name"` // such as m07
	// Patch is the one of the series that adds the line; no later one changes it.
	Patch string `json:"patch"`
	Path  string `json:"path"`
	Line  int    `json:"line"` // from 1, with the whole series applied
	Nth   int    `json:"nth"`  // of the lines with this text that the patch adds to the file, from 1
	Kind  string `json:"kind"`
	Old   string `json:"old"`
	New   string `json:"new"`
	// Judged is nil until it was.
	Judged *Judgement `json:"judged,omitempty"`
	// Reading says of one that survived which test covers it now, or why it is no fault.
	Reading string `json:"reading,omitempty"`
}

// MakesRace says that the mutant takes away what orders accesses.
func (m Mutant) MakesRace() bool { return m.Kind == kindLock || m.Kind == kindOrder }

// Judgement is how a mutant ended.
type Judgement struct {
	Verdict MutantVerdict `json:"verdict"`
	// What found it first.
	Stage   string `json:"stage,omitempty"`
	Check   string `json:"check,omitempty"`
	Subject string `json:"subject,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// The run.
	SeriesDigest string    `json:"series_digest"` // of the series that the fault was planted into
	Date         time.Time `json:"date"`
	Seconds      int       `json:"seconds"`
	Tool         string    `json:"mpsforge"`
	Seed         uint64    `json:"seed"`
}

// MutantVerdict says how a mutant ended.
type MutantVerdict string

// The verdicts.
const (
	MutantFound       MutantVerdict = "found"
	MutantSurvived    MutantVerdict = "survived"
	MutantNotCompiled MutantVerdict = "does not compile" // it says nothing of the verifier
)

const recordMutants = "the file is not for editing: mpsforge baseline mutants --draw writes it"

// ReadMutants reads what a baseline's folder holds. Without the file the error wraps fs.ErrNotExist.
func ReadMutants(fsys fs.FS, baseline string) (Mutants, error) {
	var m Mutants
	err := readRecord(fsys, baseline, MutantsFile, &m, &m.Schema)
	return m, err
}

// ErrMutants is returned, wrapped, for mutants that cannot be drawn, planted or judged.
var ErrMutants = errors.New("mutants")

// mutation is a kind of fault. change gives the faulty line, or "" where the line has nothing of the kind.
type mutation struct {
	kind   string
	change func(line string, python bool) string
}

const emptied = ";" // what is left of a C++ statement: it may be all that an if has

var (
	lockLine   = lazy(`^\s*(const )?(auto \w+ = )?(std::(lock_guard|scoped_lock)\b|[\w:]*(Lock|Guard|Block)\b(<\w+>)?( \w+)?[({]).*;$`)
	deferLine  = lazy(`^(.*std::(?:unique_lock|shared_lock)\b[^;(]*\([^ ,;]*[\w)])\);$`)
	orderWord  = lazy(`std::memory_order_(acquire|release|acq_rel|seq_cst)\b`)
	orderless  = lazy(`(\w\.(?:load\(|(?:store|exchange)\([^,()]+))\)`) // sequentially consistent, as no order is named
	waitLine   = lazy(`(?i)(wait|synchroni|fence|signal|notify|commit|flush|barrier)\w*[(:\]]`)
	comparison = lazy(` (==|!=|<=|>=|<|>) `)
	condition  = lazy(`^(\s*(?:\} else )?(?:if|while) )\((.*)\)( \{)?$`)
	pyCond     = lazy(`^(\s*(?:if|elif|while) )(.*):$`)
	// A call, a message or an assignment: without a type before it, which would be a declaration.
	statement   = lazy(`^(\s*)(\[.*\]|[\w:.>\[\]*-]+\(.*\)|[\w:.>\[\]*-]+ (?:[-+|&]?=) .*|\+\+[\w.>-]+|[\w.>-]+\+\+)(?: \? .*)?;$`)
	pyStatement = lazy(`^(\s*)([\w.]+\(.*\)|[\w.]+ (?:[-+|&]?=) .*)$`)
	notAlone    = lazy(`^\s*(return|using|namespace|template|typedef|case|default|throw|new|delete|else|static_assert|class|def|import|from)\b`)
)

// turned is what a comparison becomes.
var turned = map[string]string{"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

// mutations are the kinds of faults, in an order that the draw does not depend on.
func mutations() []mutation {
	without := func(line string, python bool) string {
		if python {
			if m := pyStatement().FindStringSubmatch(line); m != nil && !notAlone().MatchString(line) {
				return m[1] + "pass"
			}
			return ""
		}
		if m := statement().FindStringSubmatch(line); m != nil && !notAlone().MatchString(line) {
			return m[1] + emptied
		}
		return ""
	}
	return []mutation{
		{kindLock, func(line string, python bool) string {
			if m := deferLine().FindStringSubmatch(line); m != nil {
				return m[1] + ", std::defer_lock);"
			}
			if python || !lockLine().MatchString(line) {
				return ""
			}
			return line[:len(line)-len(strings.TrimLeft(line, " "))] + emptied
		}},
		{kindOrder, func(line string, _ bool) string {
			if at := orderWord().FindStringIndex(line); at != nil {
				return line[:at[0]] + "std::memory_order_relaxed" + line[at[1]:]
			}
			if at := orderless().FindStringIndex(line); at != nil {
				order := "std::memory_order_relaxed)"
				if line[at[1]-2] != '(' {
					order = ", " + order
				}
				return line[:at[1]-1] + order + line[at[1]:]
			}
			return ""
		}},
		{"comparison turned", func(line string, _ bool) string {
			at := comparison().FindStringSubmatchIndex(line)
			if at == nil || strings.Count(line[:at[0]], `"`)%2 == 1 || strings.Contains(line, "template") {
				return ""
			}
			return line[:at[2]] + turned[line[at[2]:at[3]]] + line[at[3]:]
		}},
		{"wait skipped", func(line string, python bool) string {
			if !waitLine().MatchString(line) || strings.Contains(line, " = ") {
				return ""
			}
			return without(line, python)
		}},
		{"condition turned", func(line string, python bool) string {
			if m := pyCond().FindStringSubmatch(line); python && m != nil {
				return m[1] + "not (" + m[2] + "):"
			}
			if m := condition().FindStringSubmatch(line); m != nil && !strings.ContainsAny(m[2], ";=") {
				return m[1] + "(!(" + m[2] + "))" + m[3]
			}
			return ""
		}},
		{"statement left out", func(line string, python bool) string {
			if waitLine().MatchString(line) && !strings.Contains(line, " = ") || lockLine().MatchString(line) {
				return ""
			}
			return without(line, python)
		}},
	}
}

// DrawMutants draws so many mutants of the lines that the series adds outside its tests, evenly over the patches and, within a patch, over
// the kinds. The same series and seed give the same ones, and a larger number gives these and more. There may be fewer.
func DrawMutants(series *Series, seed uint64, count int) Mutants {
	drawn := Mutants{Schema: 1, Tag: series.Baseline.Tag, SeriesDigest: series.Digest(), Seed: seed, Mutants: []Mutant{}}
	added := addedLines(series)
	candidates := map[string][]Mutant{}
	for _, p := range series.Patches {
		candidates[p.Name] = candidatesOf(p.Name, added, seed)
	}
	for round := 0; len(drawn.Mutants) < count; round++ {
		before := len(drawn.Mutants)
		for _, p := range series.Patches {
			if own := candidates[p.Name]; round < len(own) && len(drawn.Mutants) < count {
				own[round].Name = fmt.Sprintf("m%02d", len(drawn.Mutants)+1)
				drawn.Mutants = append(drawn.Mutants, own[round])
			}
		}
		if len(drawn.Mutants) == before {
			break
		}
	}
	return drawn
}

// candidatesOf are the mutants of a patch's lines in the order in which they are drawn: one of each kind in turn, no line twice.
func candidatesOf(patch string, added []addedLine, seed uint64) []Mutant {
	type ranked struct {
		Mutant
		rank string
	}
	rankOf := func(text string) string {
		return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%d\n%s\n%s", seed, patch, text)))
	}
	kinds := map[string][]ranked{}
	seen := map[string]int{}
	for _, line := range added {
		if line.patch != patch || line.continues() {
			continue
		}
		for _, m := range mutations() {
			if changed := m.change(line.text, strings.HasSuffix(line.path, ".py")); changed != "" && changed != line.text {
				key := line.path + "\n" + m.kind + "\n" + line.text
				seen[key]++
				kinds[m.kind] = append(kinds[m.kind], ranked{Mutant{Patch: patch, Path: line.path, Line: line.line, Nth: seen[key], Kind: m.kind,
					Old: line.text, New: changed}, rankOf(fmt.Sprint(key, "\n", seen[key]))})
			}
		}
	}
	var queues [][]ranked
	for _, all := range kinds {
		slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
		queues = append(queues, all)
	}
	slices.SortFunc(queues, func(a, b []ranked) int { return cmp.Compare(rankOf(a[0].Kind), rankOf(b[0].Kind)) })
	var order []Mutant
	used := map[string]bool{}
	for left := true; left; {
		left = false
		for i := range queues {
			for len(queues[i]) > 0 {
				next := queues[i][0].Mutant
				queues[i], left = queues[i][1:], true
				if place := fmt.Sprintf("%s:%d", next.Path, next.Line); !used[place] {
					used[place] = true
					order = append(order, next)
					break
				}
			}
		}
	}
	return order
}

// addedLine is a line of the patched tree that a patch has added.
type addedLine struct {
	patch, path string
	line        int    // from 1, with the whole series applied
	text        string // without its end
	before      string // the line before it in the patch, or ""
}

var unfinished = regexp.MustCompile(`([,(=&|+<?]|\belse if|\breturn)$`)

// continues reports whether the line is only a part of a statement, or no code.
func (l addedLine) continues() bool {
	text, before := strings.TrimSpace(l.text), strings.TrimSpace(l.before)
	comment := strings.HasPrefix(text, "//") || strings.HasPrefix(text, "*") || strings.HasPrefix(text, "/*") || strings.HasPrefix(text, "#")
	code, _, _ := strings.Cut(text, " //")
	open := strings.Count(code, "(") - strings.Count(code, ")")
	before, _, _ = strings.Cut(before, " //")
	return comment || open != 0 || unfinished.MatchString(strings.TrimSpace(before)) || code != text
}

// addedLines gives the lines that the patches add outside tests and that are still there after the last patch.
func addedLines(series *Series) []addedLine {
	files := map[string][]addedLine{}
	var order []string
	for _, patch := range series.Patches {
		for _, file := range patch.Files {
			path := file.Path()
			if strings.HasPrefix(path, "test/") {
				continue
			}
			if !slices.Contains(order, path) {
				order = append(order, path)
			}
			from := path
			if file.IsRename || file.IsCopy {
				from = file.OldName
			}
			files[path] = moved(files[from], file)
			if file.IsRename {
				delete(files, from)
			}
			for _, h := range file.TextFragments {
				line, before := int(h.NewPosition), ""
				for _, l := range h.Lines {
					if !l.New() {
						continue
					}
					text := strings.TrimSuffix(l.Line, "\n")
					if !l.Old() {
						files[path] = append(files[path], addedLine{patch.Name, path, line, text, before})
					}
					line, before = line+1, text
				}
			}
		}
	}
	var all []addedLine
	for _, path := range order {
		slices.SortFunc(files[path], func(a, b addedLine) int { return a.line - b.line })
		all = append(all, files[path]...)
	}
	return all
}

// moved gives the lines as they are after a change of their file; those that it removes are gone.
func moved(lines []addedLine, file *File) (left []addedLine) {
	for _, l := range lines {
		shift, gone := 0, file.IsDelete
		for _, h := range file.TextFragments {
			if l.line < int(h.OldPosition) {
				break
			}
			if l.line >= int(h.OldPosition+h.OldLines) {
				shift = int(h.NewPosition + h.NewLines - h.OldPosition - h.OldLines)
				continue
			}
			at, to := int(h.OldPosition), int(h.NewPosition)
			for _, one := range h.Lines {
				if one.Old() && at == l.line {
					gone, shift = !one.New(), to-at
					break
				}
				if one.Old() {
					at++
				}
				if one.New() {
					to++
				}
			}
			break
		}
		if !gone {
			l.line += shift
			left = append(left, l)
		}
	}
	return left
}

// Plant gives the series with the mutant as one patch more. read gives a file's content with the whole series applied.
func (m Mutant) Plant(series *Series, read func(path string) ([]byte, error)) (*Series, error) {
	content, err := read(m.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMutants, m.Name, err)
	}
	lines := slices.Collect(strings.Lines(string(content)))
	if m.Line > len(lines) || strings.TrimSuffix(lines[m.Line-1], "\n") != m.Old {
		return nil, fmt.Errorf("%w: %s: line %d of %s is not what was drawn; draw the mutants of the series as it is", ErrMutants, m.Name, m.Line, m.Path)
	}
	faulty, err := planted(series, m.Name, m.Kind, m.Path, lines, m.Line, []string{m.Old}, []string{m.New})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMutants, m.Name, err)
	}
	return faulty, nil
}

// planted gives the series with one patch more, which changes the lines of a file from the given one on (from 1).
func planted(series *Series, name, kind, path string, lines []string, line int, old, changed []string) (*Series, error) {
	first, last := max(line-3, 1), min(line+len(old)+2, len(lines))
	var diff bytes.Buffer
	fmt.Fprintf(&diff, "diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -%[2]d,%[3]d +%[2]d,%[4]d @@\n", path, first, last-first+1,
		last-first+1+len(changed)-len(old))
	write := func(mark string, all []string) {
		for _, one := range all {
			diff.WriteString(mark + strings.TrimSuffix(one, "\n") + "\n")
		}
	}
	write(" ", lines[first-1:line-1])
	write("-", old)
	write("+", changed)
	write(" ", lines[line-1+len(old):last])
	patch, err := ParseDiff(name, diff.Bytes())
	if err != nil {
		return nil, err
	}
	patch.Header = NewHeader("mpsforge", "mpsforge@example.org", time.Unix(0, 0).UTC(), name+": "+kind)
	faulty := *series
	faulty.Patches = append(slices.Clone(series.Patches), patch)
	return &faulty, nil
}

// MutantsResult is what LintMutants found.
type MutantsResult struct {
	Recorded
	Mutants `json:"mutants"`
}

// LintMutants compares the recorded mutants of a baseline with its series as it is now. A baseline without the file is asked for none.
func LintMutants(fsys fs.FS, baseline string) (*MutantsResult, error) {
	result := &MutantsResult{Recorded: recordedOf(baseline), Mutants: Mutants{Mutants: []Mutant{}}}
	add := result.finding(MutantsFile, RuleMutants)
	table, err := ReadMutants(fsys, baseline)
	series, err := comparedWith(fsys, baseline, err, table.Tag, "mutants are", recordMutants, add)
	if series == nil {
		return result, err
	}
	result.Mutants = table
	command := "mpsforge baseline mutants --baseline " + baseline + " --patches DIR"
	if table.SeriesDigest != series.Digest() {
		add(SeverityWarning, command+fmt.Sprintf(" --draw %d --seed %d, then --judge all", len(table.Mutants), table.Seed),
			"the series has changed since the mutants were drawn")
		return result, nil
	}
	if waiting := table.Names(func(m Mutant) bool { return m.Judged == nil }); len(waiting) > 0 {
		add(SeverityWarning, command+" --judge all", "these mutants were never judged: "+strings.Join(waiting, ", "))
	}
	if old := table.Names(func(m Mutant) bool { return m.Judged != nil && m.Judged.SeriesDigest != series.Digest() }); len(old) > 0 {
		add(SeverityWarning, command+" --judge "+strings.Join(old, ","), "the series has changed since these mutants were judged: "+strings.Join(old, ", "))
	}
	if unread := table.Names(func(m Mutant) bool { return m.Judged != nil && m.Judged.Verdict == MutantSurvived && m.Reading == "" }); len(unread) > 0 {
		add(SeverityWarning, "have a test find each, or say with --read why it is no fault", "nothing finds these mutants, and nobody has said why: "+
			strings.Join(unread, ", "))
	}
	return result, nil
}

// Names are the names of those mutants of which a condition holds.
func (m Mutants) Names(of func(Mutant) bool) []string { return namesOf(m.Mutants, mutantName, of) }

func mutantName(m Mutant) string { return m.Name }

// Mutant gives the one of a name.
func (m Mutants) Mutant(name string) (*Mutant, error) {
	return named(m.Mutants, mutantName, name, ErrMutants)
}

// namesOf are the names of those of which a condition holds.
func namesOf[T any](all []T, name func(T) string, of func(T) bool) (names []string) {
	for _, one := range all {
		if of(one) {
			names = append(names, name(one))
		}
	}
	return names
}

// named gives the one of a name. Where there is none, the error wraps kind.
func named[T any](all []T, name func(T) string, wanted string, kind error) (*T, error) {
	names := namesOf(all, name, func(T) bool { return true })
	at := slices.Index(names, wanted)
	if at < 0 {
		return nil, fmt.Errorf("%w: there is no %q%s", kind, wanted, suggest.Names(wanted, names))
	}
	return &all[at], nil
}

// Same reports whether two mutants are the same fault, whatever their names, and wherever in its file the line is by now.
func (m Mutant) Same(other Mutant) bool {
	return m.Patch == other.Patch && m.Path == other.Path && m.Nth == other.Nth && m.Old == other.Old && m.New == other.New
}

// String says what is known of the mutant.
func (m Mutant) String() string {
	switch {
	case m.Judged == nil:
		return "not judged"
	case m.Reading != "":
		return m.Judged.String() + "; " + m.Reading
	}
	return m.Judged.String()
}

// String says how the mutant ended.
func (j Judgement) String() string {
	if j.Verdict != MutantFound {
		return string(j.Verdict)
	}
	return fmt.Sprintf("found by %s, %s, %s: %s", j.Stage, j.Check, j.Subject, j.Detail)
}

// Summary counts the mutants.
func (m Mutants) Summary() string {
	counts := map[MutantVerdict]int{}
	read, judged, before := 0, 0, 0
	for _, one := range m.Mutants {
		if one.Judged != nil {
			judged++
			if one.Judged.SeriesDigest != m.SeriesDigest {
				before++
			}
			counts[one.Judged.Verdict]++
			if one.Reading != "" {
				read++
			}
		}
	}
	return fmt.Sprintf("mutants: %d, judged: %d (on an earlier series: %d), found: %d, survived: %d (explained: %d), not compiled: %d", len(m.Mutants),
		judged, before, counts[MutantFound], counts[MutantSurvived], read, counts[MutantNotCompiled])
}
