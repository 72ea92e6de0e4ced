package patches

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// fileState is what is known of a file at some point of the series.
type fileState struct {
	absent  bool
	mode    os.FileMode
	blob    string
	digests []string // of the lines
	ended   bool     // the last line ends with a newline
	text    []byte   // the content, if a patch of the series made the file; else nil
	broken  string   // the patch whose hunks did not fit: from there on nothing is known
}

// files maps a path to its state; a path that is not in it is unknown.
type files map[string]*fileState

func newFiles(b Baseline, d Digests) files {
	fs := files{}
	for _, path := range b.Absent {
		fs[path] = &fileState{absent: true}
	}
	for path, blob := range b.Touched {
		if blob == nil {
			fs[path] = &fileState{absent: true}
		}
	}
	for _, f := range d.Files {
		mode, _ := strconv.ParseUint(f.Mode, 8, 32) // 0 is "unknown"
		fs[f.Path] = &fileState{mode: os.FileMode(mode), blob: f.Blob, digests: f.LineDigests, ended: f.EOFNewline}
	}
	return fs
}

// lintContext checks one file's change against the state that the earlier patches left, and moves that state on.
func (l *linter) lintContext(p *Patch, f *File) {
	if f.IsBinary || f.IsCopy {
		return
	}
	if l.unread != "" {
		l.unverified(p, f, "the earlier patch "+l.unread+" cannot be read")
		return
	}
	old := f.OldName
	if f.IsNew {
		old = f.NewName
	}
	state := l.files[old]
	switch {
	case state != nil && state.broken != "":
		l.unverified(p, f, "the file does not fit since the patch "+state.broken)
	case f.IsNew:
		l.lintNew(p, f, state)
	case state == nil:
		l.unverified(p, f, "the baseline has no digests of the file")
	default:
		l.lintOld(p, f, state)
	}
}

func (l *linter) unverified(p *Patch, f *File, why string) {
	l.result.Unverified += len(f.TextFragments)
	for i, line := range f.HunkLines {
		l.add(p.Name+suffix, line, RuleUnverified, SeverityUnverified, "record the baseline with this path",
			"hunk %d of %s is not checked: %s", i+1, f.Path(), why)
	}
}

// lintNew checks the creation of a file: its whole content is in the patch, so its blob id must be the real one.
func (l *linter) lintNew(p *Patch, f *File, state *fileState) {
	if state != nil && !state.absent {
		l.error(p, f.Line, RuleContext, "change the file instead", "creates %s, which exists already", f.Path())
		state.broken = p.Name
		return
	}
	content, err := f.Apply(nil)
	if err != nil {
		l.error(p, f.Line, RuleContext, "export the commit again", "%v", err)
		l.files[f.NewName] = &fileState{broken: p.Name}
		return
	}
	d := DigestFile(f.NewName, "", content)
	l.files[f.NewName] = &fileState{mode: f.NewMode, blob: d.Blob, digests: d.LineDigests, ended: d.EOFNewline, text: content}
	switch {
	case !l.checkIDs(p, f, strings.Repeat("0", 40), d.Blob):
	case state == nil:
		l.unverified(p, f, "whether the baseline has the path is not known")
	default:
		l.result.Verified += len(f.TextFragments)
	}
	l.lintHeadings(p, f, nil)
}

// lintOld checks a change, rename or deletion of a file whose lines are known by their digests.
func (l *linter) lintOld(p *Patch, f *File, state *fileState) {
	if state.absent {
		l.error(p, f.Line, RuleContext, "create the file, or take it from the baseline", "changes %s, which is absent at this point", f.OldName)
		state.broken = p.Name
		return
	}
	after := *state
	var ok bool
	after.digests, after.ended, ok = l.applyDigests(p, f, state)
	newID := "" // not computable from digests
	if ok && state.text != nil {
		content, err := f.Apply(state.text)
		if err != nil {
			l.error(p, f.Line, RuleContext, "export the commit again", "%v", err)
			ok = false
		}
		after.text, newID = content, blobID(content)
	}
	if f.IsDelete {
		newID = strings.Repeat("0", 40)
		if ok && len(after.digests) > 0 {
			l.error(p, f.Line, RuleContext, "export the commit again", "deletes %s but leaves %d of its lines", f.OldName, len(after.digests))
			ok = false
		}
	}
	if f.OldID != "" {
		ok = l.checkIDs(p, f, state.blob, newID) && ok
		after.blob = f.NewID
	}
	if f.OldMode != 0 && state.mode != 0 && f.OldMode != state.mode {
		l.error(p, f.Line, RuleContext, "export the commit again", "%s has mode %06o, the patch says %06o", f.OldName, uint32(state.mode), uint32(f.OldMode))
		ok = false
	}
	if f.NewMode != 0 {
		after.mode = f.NewMode
	}
	if f.IsDelete {
		after = fileState{absent: true}
	} else if f.NewName != f.OldName {
		if target := l.files[f.NewName]; target != nil && !target.absent {
			l.error(p, f.Line, RuleContext, "delete that file first", "renames %s to %s, which exists", f.OldName, f.NewName)
			ok = false
		}
		l.files[f.OldName] = &fileState{absent: true}
	}
	l.lintHeadings(p, f, state)
	if ok {
		l.result.Verified += len(f.TextFragments)
	} else {
		after.broken = p.Name
	}
	l.files[f.Path()] = &after
}

// checkIDs compares the index line with the blob ids that are known; "" is not known.
func (l *linter) checkIDs(p *Patch, f *File, old, new string) bool {
	ok := true
	if old != "" && f.OldID != "" && f.OldID != old {
		l.error(p, f.Line, RuleContext, "rebase the commit and export it again", "changes %s from blob %s, at this point it is %s", f.Path(), f.OldID, old)
		ok = false
	}
	if new != "" && f.NewID != "" && f.NewID != new {
		l.error(p, f.Line, RuleContext, "export the commit again", "says that %s becomes blob %s, it becomes %s", f.Path(), f.NewID, new)
		ok = false
	}
	return ok
}

// applyDigests applies the hunks to the digests of the lines, strictly, and reports the first line of each hunk that
// does not fit.
func (l *linter) applyDigests(p *Patch, f *File, state *fileState) (digests []string, ended, ok bool) {
	ended, ok = state.ended, true
	next := 0 // the first old line not yet taken over
	for i, h := range f.TextFragments {
		start := max(int(h.OldPosition)-1, 0)
		if k, message := misfit(state, h); message != "" {
			ok = false
			old := digestsOf(oldSide(h))
			do := "rebase the commit and export it again"
			if at := nearest(state.digests, old, start); at >= 0 && at != start {
				do = "the hunk would be at line " + strconv.Itoa(at+1) + "; " + do
			} else if at := nearest(state.digests, digestsOf(newSide(h)), start); at >= 0 && len(old) > 0 {
				do = "the change is there already; drop the hunk"
			}
			l.error(p, f.lineOf(i, k), RuleContext, do, "hunk %d of %s: %s", i+1, f.OldName, message)
			continue
		}
		if !ok {
			continue
		}
		digests = append(digests, state.digests[next:start]...)
		digests = append(digests, digestsOf(newSide(h))...)
		if next = start + int(h.OldLines); next == len(state.digests) {
			if new := newSide(h); len(new) > 0 {
				ended = strings.HasSuffix(new[len(new)-1], "\n")
			}
		}
	}
	if !ok {
		return nil, false, false
	}
	return append(digests, state.digests[next:]...), ended, true
}

// misfit says why a hunk is not at its line numbers, and at which of its lines; "" if it is.
func misfit(state *fileState, h *gitdiff.TextFragment) (k int, message string) {
	n, at := len(state.digests), max(int(h.OldPosition)-1, 0)
	if h.LeadingContext < 3 && at > 0 {
		return 0, "fewer than three lines of context before the change"
	}
	for k, line := range h.Lines {
		if !line.Old() {
			continue
		}
		switch {
		case at >= n:
			return k, "line " + strconv.Itoa(at+1) + " is beyond the end of the file, which has " + strconv.Itoa(n)
		case lineDigest(line.Line) != state.digests[at]:
			return k, "line " + strconv.Itoa(at+1) + " of the file is not " + shown(line.Line)
		case line.NoEOL() != (at == n-1 && !state.ended):
			return k, "line " + strconv.Itoa(at+1) + " of the file differs in its newline"
		}
		at++
	}
	if h.TrailingContext < 3 && at < n {
		return len(h.Lines) - 1, "fewer than three lines of context after the change, and the file has more"
	}
	return 0, ""
}

func digestsOf(lines []string) []string {
	digests := make([]string, len(lines))
	for i, line := range lines {
		digests[i] = lineDigest(line)
	}
	return digests
}

// lintHeadings checks that a hunk's heading is a line above it. Git cuts headings at 80 bytes, and strips a blank that it
// cut behind: a cut one has no digest.
func (l *linter) lintHeadings(p *Patch, f *File, state *fileState) {
	for i, h := range f.TextFragments {
		if h.Comment == "" || len(h.Comment) >= headingCut-1 {
			continue
		}
		var above []string
		if state != nil {
			above = state.digests[:min(max(int(h.OldPosition)-1, 0), len(state.digests))]
		}
		if !slices.Contains(above, lineDigest(h.Comment)) {
			l.error(p, f.HunkLines[i], RuleHeading, "export it without diff drivers (core.attributesFile, .gitattributes)",
				"the heading %q is not a line of %s above the hunk", h.Comment, f.Path())
		}
	}
}
