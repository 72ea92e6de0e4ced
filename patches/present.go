package patches

import (
	"bytes"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Present reports whether a file has the whole change already: each hunk's new side is in it, in order and at
// whatever line, and its old side nowhere. content is nil for an absent file.
func (f *File) Present(content []byte) bool {
	switch {
	case f.IsBinary, f.IsRename, f.IsCopy:
		return false // no series holds them
	case f.IsDelete:
		return content == nil
	case content == nil:
		return false
	case f.IsNew:
		new, err := f.Apply(nil)
		return err == nil && bytes.Equal(new, content)
	}
	lines := slices.Collect(strings.Lines(string(content)))
	from := 0
	for _, h := range f.TextFragments {
		new := newSide(h)
		at := standsAt(lines, new, h, from)
		if at < 0 || standsAt(lines, oldSide(h), h, 0) >= 0 {
			return false
		}
		from = at + len(new)
	}
	return true
}

// standsAt finds where side is in lines, from an index on; -1 if nowhere. As in mismatch, a hunk with less than
// three lines of context begins or ends its file there.
func standsAt(lines, side []string, h *gitdiff.TextFragment, from int) int {
	for at := from; at+len(side) <= len(lines); at++ {
		if h.LeadingContext < 3 && at > 0 {
			break
		}
		if h.TrailingContext < 3 && at+len(side) != len(lines) {
			continue
		}
		if slices.Equal(lines[at:at+len(side)], side) {
			return at
		}
	}
	return -1
}
