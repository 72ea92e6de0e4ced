package patches

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// ConflictError is a file that a change does not apply to.
type ConflictError struct {
	Patch, Path     string
	Hunk            int // the first that does not apply, from 1; 0 if the file as a whole does not fit
	PatchLine       int // of the hunk in the patch file
	Line            int // in the file, from 1
	Expected, Found string
	Already         bool // the file has the whole change: the reverse applies
	Offset          int  // the hunk is this many lines further down (up, if negative); 0: nowhere
}

func (e *ConflictError) Error() string {
	at := e.Path
	if e.Hunk > 0 {
		at = fmt.Sprintf("%s: hunk %d (line %d of the patch)", e.Path, e.Hunk, e.PatchLine)
	}
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d ", e.Line)
	}
	s := fmt.Sprintf("%s: %s does not apply: %sshould be %s, found %s", e.Patch, at, where, e.Expected, e.Found)
	switch {
	case e.Already:
		return s + "; the change is there already: leave this patch out, or unapply it first"
	case e.Offset != 0:
		return fmt.Sprintf("%s; the hunk would apply at an offset of %+d lines, which mpsforge does not do: port the patch", s, e.Offset)
	default:
		return s + "; restore the file to the baseline, or port the patch"
	}
}

// Apply returns the file's content after the change. old is nil for an absent file, and not nil for an empty one; the
// result is nil for a deleted file. Application is strict: no fuzz, no offset. What does not apply is a *ConflictError.
func (f *File) Apply(old []byte) ([]byte, error) {
	fail := func(err error) error { return fmt.Errorf("%s: %s: %w", f.Patch, f.Path(), err) }
	switch {
	case f.IsBinary && f.BinaryFragment == nil:
		return nil, fail(errors.New("the patch says only that a binary file changed, not how; write it with git format-patch --binary"))
	case f.IsNew && old != nil:
		c := f.conflict(0, 1, "no file", "a file")
		new, err := f.Apply(nil)
		c.Already = err == nil && bytes.Equal(new, old)
		return nil, c
	case !f.IsNew && old == nil:
		c := f.conflict(0, 1, "a file", "no file")
		c.Already = f.IsDelete
		return nil, c
	}
	if id := blobID(old); f.IsBinary && !f.IsNew && id != f.OldID {
		return nil, f.conflict(0, 1, "the content of blob "+f.OldID, "that of blob "+id)
	}
	lines := slices.Collect(strings.Lines(string(old)))
	for i, h := range f.TextFragments {
		if k, line := mismatch(lines, h, int(h.OldPosition)); k >= 0 {
			c := f.conflict(i+1, line, "the end of the file", "the end of the file")
			if k < len(h.Lines) {
				c.Expected = shown(h.Lines[k].Line)
			}
			if line <= len(lines) {
				c.Found = shown(lines[line-1])
			}
			c.Already = f.reverseApplies(lines)
			if at := nearest(lines, oldSide(h), int(h.OldPosition)-1); at >= 0 {
				c.Offset = at - (int(h.OldPosition) - 1)
			}
			return nil, c
		}
	}
	if f.IsDelete && !f.IsBinary && len(f.TextFragments) == 0 && len(old) > 0 {
		return nil, f.conflict(0, 1, "the end of the file", shown(lines[0]))
	}
	var new bytes.Buffer
	if err := gitdiff.Apply(&new, bytes.NewReader(old), f.File); err != nil {
		return nil, fail(err) // every conflict is found above
	}
	if f.IsDelete {
		return nil, nil
	}
	return append([]byte{}, new.Bytes()...), nil
}

func (f *File) conflict(hunk, line int, expected, found string) *ConflictError {
	c := &ConflictError{Patch: f.Patch, Path: f.Path(), Hunk: hunk, Line: line, Expected: expected, Found: found, PatchLine: f.Line}
	if hunk > 0 {
		c.PatchLine = f.HunkLines[hunk-1]
	}
	return c
}

// reverseApplies reports whether every hunk's new side is at its new place.
func (f *File) reverseApplies(lines []string) bool {
	if f.IsDelete {
		return false // there is a file
	}
	for _, h := range f.TextFragments {
		start, side := max(int(h.NewPosition)-1, 0), newSide(h)
		if start+len(side) > len(lines) || !slices.Equal(lines[start:start+len(side)], side) {
			return false
		}
	}
	return true
}

// mismatch compares the old side of a hunk with the lines from line position (from 1) on. k is the index of the first
// hunk line that differs, and line the number of the file's; k is -1 if all agree, and len(h.Lines) if the file goes
// on where a hunk without trailing context must be its end (git apply holds to that as well).
func mismatch(lines []string, h *gitdiff.TextFragment, position int) (k, line int) {
	line = max(position, 1)
	for k, l := range h.Lines {
		if !l.Old() {
			continue
		}
		if line > len(lines) || lines[line-1] != l.Line {
			return k, min(line, len(lines)+1)
		}
		line++
	}
	if h.TrailingContext == 0 && line <= len(lines) {
		return len(h.Lines), line
	}
	return -1, line
}

// nearest finds where side is in lines, nearest to index near; -1 if nowhere.
func nearest(lines, side []string, near int) int {
	best := -1
	for at := 0; len(side) > 0 && at+len(side) <= len(lines); at++ {
		if slices.Equal(lines[at:at+len(side)], side) && (best < 0 || abs(at-near) < abs(best-near)) {
			best = at
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

func oldSide(h *gitdiff.TextFragment) []string { return side(h, gitdiff.Line.Old) }
func newSide(h *gitdiff.TextFragment) []string { return side(h, gitdiff.Line.New) }

func side(h *gitdiff.TextFragment, of func(gitdiff.Line) bool) (lines []string) {
	for _, l := range h.Lines {
		if of(l) {
			lines = append(lines, l.Line)
		}
	}
	return lines
}

// shown quotes a line for a message, cut to a length that fits one.
func shown(line string) string {
	line, ended := strings.CutSuffix(line, "\n")
	if len(line) > 120 {
		line = line[:120] + "..."
	}
	if !ended {
		return fmt.Sprintf("%q without a newline", line)
	}
	return fmt.Sprintf("%q", line)
}
