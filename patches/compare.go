package patches

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Degree says how much of a patch's file, or of a patch, is another than before.
type Degree int

// The degrees, each of which includes the possibility of the lower ones.
const (
	DegreeNone    Degree = iota
	DegreeIndex          // blob ids in index lines
	DegreePlaces         // line numbers and hunk headings
	DegreeContext        // context lines, or the division into hunks
	DegreeContent        // added or removed lines, or modes
)

// String is the degree in words.
func (d Degree) String() string {
	return [...]string{"unchanged", "index lines", "line numbers", "context lines", "content"}[d]
}

// MarshalText writes the degree in words.
func (d Degree) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// PatchDifference says in what two versions of a patch differ.
type PatchDifference struct {
	Header []string `json:"header"` // which of author, address, date, subject and message
	Diff   Degree   `json:"diff"`   // the highest of Paths
	// Paths are those of a degree above DegreeNone.
	Paths map[string]Degree `json:"paths"`
}

// None reports whether both versions are the same.
func (d PatchDifference) None() bool { return len(d.Header) == 0 && d.Diff == DegreeNone }

// Compare compares two versions of a patch.
func Compare(old, new *Patch) PatchDifference {
	d := PatchDifference{Header: []string{}, Paths: map[string]Degree{}}
	was, is := old.Header.identity(), new.Header.identity()
	for i, what := range headerFields {
		if was[i] != is[i] {
			d.Header = append(d.Header, what)
		}
	}
	before, after := byPath(old), byPath(new)
	for _, path := range unionOfKeys(before, after) {
		if degree := compareFiles(before[path], after[path]); degree > DegreeNone {
			d.Paths[path] = degree
			d.Diff = max(d.Diff, degree)
		}
	}
	return d
}

func byPath(p *Patch) map[string]*File {
	files := map[string]*File{}
	for _, f := range p.Files {
		files[f.Path()] = f
	}
	return files
}

func unionOfKeys[V any](a, b map[string]V) []string {
	keys := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// compareFiles compares the changes of one path; either may be nil.
func compareFiles(old, new *File) Degree {
	if old == nil || new == nil || !slices.Equal(changedLines(old), changedLines(new)) {
		return DegreeContent
	}
	degree := DegreeNone
	if old.OldID != new.OldID || old.NewID != new.NewID {
		degree = DegreeIndex
	}
	if len(old.TextFragments) != len(new.TextFragments) {
		return DegreeContext
	}
	for i, h := range old.TextFragments {
		other := new.TextFragments[i]
		if !slices.Equal(h.Lines, other.Lines) {
			return DegreeContext
		}
		if h.Header() != other.Header() {
			degree = DegreePlaces
		}
	}
	return degree
}

// changedLines lists what a file's change is made of: the lines added and removed, and changes of name and mode.
func changedLines(f *File) []string {
	var lines []string
	switch old, new := f.names(); {
	case f.IsNew:
		lines = append(lines, fmt.Sprintf("new file, mode %06o", uint32(f.NewMode)))
	case f.IsDelete:
		lines = append(lines, fmt.Sprintf("deleted file, mode %06o", uint32(f.OldMode)))
	case old != new:
		lines = append(lines, "renamed from "+old)
	}
	if !f.IsNew && !f.IsDelete && modeChanged(f.File) {
		lines = append(lines, fmt.Sprintf("mode %06o to %06o", uint32(f.OldMode), uint32(f.NewMode)))
	}
	for _, h := range f.TextFragments {
		for _, line := range h.Lines {
			if line.Op != gitdiff.OpContext {
				lines = append(lines, line.String()) // a missing newline at the end of the file shows as one missing here
			}
		}
	}
	return lines
}

// Difference is one run of lines in which the same patch of two series differs.
type Difference struct {
	Patch  string   `json:"patch"` // empty: the order or choice of the patches themselves
	Path   string   `json:"path"`  // a file, or "message"
	Digest string   `json:"digest"`
	Here   []string `json:"here"`  // lines that only the one series has, with their + or -
	There  []string `json:"there"` // lines that only the other has
}

// messagePath is used for a patch's message where a path is wanted.
const messagePath = "message"

// compareSeries lists the differences between two series in order, names, authors, dates, messages and changed lines, patch by patch.
// Context, line numbers and blob ids may differ: that is what two baselines are.
func compareSeries(here, there *Series) []Difference {
	list := differ("", seriesFile, here.Names(), there.Names())
	for _, p := range here.Patches {
		i := slices.IndexFunc(there.Patches, func(q *Patch) bool { return q.Name == p.Name })
		if i < 0 {
			continue // a difference of the names
		}
		q := there.Patches[i]
		list = append(list, differ(p.Name, messagePath, commitLines(p), commitLines(q))...)
		a, b := byPath(p), byPath(q)
		for _, path := range unionOfKeys(a, b) {
			var ours, theirs []string
			if a[path] != nil {
				ours = changedLines(a[path])
			}
			if b[path] != nil {
				theirs = changedLines(b[path])
			}
			list = append(list, differ(p.Name, path, ours, theirs)...)
		}
	}
	return list
}

// commitLines are the lines of a patch that make its commit: author, date and message. port carries all three from one baseline to another.
func commitLines(p *Patch) []string {
	h := p.Header
	author, date := fmt.Sprintf("From: %s <%s>", h.AuthorName, h.AuthorEmail), "Date: "+h.Date.Format(time.RFC3339)
	return append([]string{author, date}, strings.Split(h.Message(), "\n")...)
}

// differ finds the runs in which two lists of lines differ, by a longest common subsequence. The lists are those of one
// file in one patch, at most 600 lines, so that the quadratic table is small.
func differ(patch, path string, a, b []string) (list []Difference) {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	a, b = a[head:], b[head:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	common := make([][]int, len(a)+1) // common[i][j]: of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	d := Difference{Patch: patch, Path: path, Here: []string{}, There: []string{}}
	end := func() {
		if len(d.Here)+len(d.There) > 0 {
			d.Digest = d.digest()
			list = append(list, d)
			d = Difference{Patch: patch, Path: path, Here: []string{}, There: []string{}}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			end()
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			d.Here = append(d.Here, strings.TrimSuffix(a[i], "\n"))
			i++
		default:
			d.There = append(d.There, strings.TrimSuffix(b[j], "\n"))
			j++
		}
	}
	end()
	return list
}

func (d Difference) digest() string {
	text := strings.Join([]string{d.Patch, d.Path, strings.Join(d.Here, "\n"), strings.Join(d.There, "\n")}, "\x00")
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12]
}

// Text shows the difference with the lines of both sides; here and there are the names of the two baselines.
func (d Difference) Text(here, there string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%s)", cmp.Or(d.Patch, "the series"), d.Path, d.Digest)
	for _, side := range []struct {
		name  string
		lines []string
	}{{here, d.Here}, {there, d.There}} {
		for _, line := range side.lines {
			fmt.Fprintf(&b, "\n    %s %s", side.name, line)
		}
	}
	return b.String()
}
