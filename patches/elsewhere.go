package patches

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Fate says how a hunk fits another version's file.
type Fate string

const (
	FateApplies   Fate = "applies"              // as git apply would: all its lines are there, at whatever line
	FateOwn       Fate = "own file"             // in a file that the series itself makes, and that the version does not have
	FatePresent   Fate = "already there"        // what it makes is there, and what it was made from is not
	FateConflicts Fate = "conflicts"            // neither
	FateBuilds    Fate = "builds on a conflict" // it does not apply, and needs lines of an earlier hunk that does not either
	FateAbsent    Fate = "no such file"         // the version has no such file
	FateUnseen    Fate = "not to be seen"       // the file's text is not at hand
)

// HunkFate is one hunk of a series on another version's files.
type HunkFate struct {
	Patch     string `json:"patch"`
	Path      string `json:"path"`
	Hunk      int    `json:"hunk"`       // in its file, from 1
	PatchLine int    `json:"patch_line"` // of its @@ line in the patch file
	Fate      Fate   `json:"fate"`
	// Missing is, of a hunk that conflicts, the first of its lines that the file has nowhere; empty if it has them all, but not together.
	Missing string `json:"missing,omitempty"`
}

// Elsewhere tries each hunk of the series on another version's files, patch after patch: what applies is there for the hunks that
// follow. read gives a file's content, nil for one that the version does not have; seen is false where nobody can say.
func (s *Series) Elsewhere(read func(path string) (content []byte, seen bool, err error)) ([]HunkFate, error) {
	e := elsewhere{files: map[string]*otherFile{}, read: read, fates: []HunkFate{}}
	for _, patch := range s.Patches {
		for _, file := range patch.Files {
			if err := e.try(file); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", patch.Name, file.Path(), err)
			}
		}
	}
	return e.fates, nil
}

type elsewhere struct {
	files map[string]*otherFile
	read  func(path string) ([]byte, bool, error)
	fates []HunkFate
}

// otherFile is the other version's file with the hunks that have applied so far.
type otherFile struct {
	lines        []string
	exists, seen bool
	own          bool // the series has made it
	// from has, for each line of the file that the series makes of its own version's, the number of the hunk in fates that made the
	// line, from 1; 0 for the version's own.
	from []int
}

func (e *elsewhere) file(path string) (*otherFile, error) {
	if known := e.files[path]; known != nil {
		return known, nil
	}
	content, seen, err := e.read(path)
	if err != nil {
		return nil, err
	}
	e.files[path] = &otherFile{lines: slices.Collect(strings.Lines(string(content))), exists: content != nil, seen: seen}
	return e.files[path], nil
}

func (e *elsewhere) try(f *File) error {
	old, new := f.names()
	file, err := e.file(old)
	if err != nil {
		return err
	}
	if new != old { // renamed
		e.files[new] = file
		delete(e.files, old)
	}
	existed := file.exists
	for i, h := range f.TextFragments {
		fate := HunkFate{Patch: f.Patch, Path: f.Path(), Hunk: i + 1, PatchLine: f.HunkLines[i]}
		at, before, after := place(file.lines, oldSide(h), h), oldSide(h), newSide(h)
		builds := e.builds(file, h)
		switch {
		case !file.seen:
			fate.Fate = FateUnseen
		case f.IsNew && !existed || !f.IsNew && existed && at >= 0:
			file.own = file.own || f.IsNew
			if fate.Fate = FateApplies; file.own {
				fate.Fate = FateOwn
			}
			file.lines, file.exists = slices.Replace(file.lines, max(at, 0), max(at, 0)+len(before), after...), !f.IsDelete
		case f.IsNew && slices.Equal(file.lines, after), f.IsDelete && !existed, !f.IsNew && existed && place(file.lines, after, h) >= 0:
			fate.Fate = FatePresent
		case builds:
			fate.Fate = FateBuilds
		case !existed:
			fate.Fate = FateAbsent
		default:
			fate.Fate = FateConflicts
			for _, line := range before {
				if !slices.Contains(file.lines, line) {
					fate.Missing = strings.TrimSpace(line)
					break
				}
			}
		}
		e.fates = append(e.fates, fate)
		file.follow(h, len(e.fates))
	}
	return nil
}

// builds reports whether a hunk needs lines of a hunk that does not apply.
func (e *elsewhere) builds(file *otherFile, h *gitdiff.TextFragment) bool {
	at := int(h.NewPosition) - 1 // the hunks before it in this patch are in from
	for _, l := range h.Lines {
		if !l.Old() {
			continue
		}
		if at >= 0 && at < len(file.from) && file.from[at] > 0 {
			switch e.fates[file.from[at]-1].Fate {
			case FateConflicts, FateBuilds, FateAbsent:
				return true
			}
		}
		at++
	}
	return false
}

// follow notes which lines a hunk makes. The line after one that it takes away counts as made by it, too.
func (o *otherFile) follow(h *gitdiff.TextFragment, number int) {
	at := max(int(h.NewPosition)-1, 0)
	for _, l := range h.Lines {
		if missing := at + 2 - len(o.from); missing > 0 {
			o.from = append(o.from, make([]int, missing)...)
		}
		switch l.Op {
		case gitdiff.OpAdd:
			o.from = slices.Insert(o.from, at, number)
			at++
		case gitdiff.OpDelete:
			o.from = slices.Delete(o.from, at, at+1)
			o.from[at] = number
		default:
			at++
		}
	}
}

// place finds where git apply would take a side of a hunk to be, nearest to the line that it names; -1 if nowhere. A hunk of the file's first
// line must be at its beginning, and one without context after it at its end.
func place(lines, side []string, h *gitdiff.TextFragment) int {
	best, near := -1, int(h.NewPosition)-1
	for at := 0; at+len(side) <= len(lines); at++ {
		if at > 0 && h.OldPosition <= 1 || h.TrailingContext == 0 && at+len(side) < len(lines) {
			continue
		}
		if slices.Equal(lines[at:at+len(side)], side) && (best < 0 || abs(at-near) < abs(best-near)) {
			best = at
		}
	}
	return best
}
