package patches

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Patch is one patch file: one mail of git format-patch.
type Patch struct {
	Name   string // the file's name without .patch
	Raw    []byte
	SHA256 string // of Raw, in hex
	Header Header
	Files  []*File
}

// diff is the part of Raw behind the mail's header and message.
func (p *Patch) diff() []byte {
	if len(p.Files) == 0 {
		return nil
	}
	diff := p.Raw
	for range p.Files[0].Line - 1 {
		diff = diff[bytes.IndexByte(diff, '\n')+1:]
	}
	return diff
}

// Changed counts the lines that the patch adds and removes.
func (p *Patch) Changed() int {
	n := 0
	for _, f := range p.Files {
		n += f.Changed()
	}
	return n
}

// Paths lists the paths that the patch adds, changes, renames (both names) or deletes, sorted.
func (p *Patch) Paths() []string {
	paths := []string{}
	for _, f := range p.Files {
		paths = append(paths, f.paths()...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// File is the change of one file. The embedded gitdiff.File has the modes as git's octal numbers, not as bits of os.
type File struct {
	*gitdiff.File
	Patch        string // the name of the patch, for messages
	Line         int    // of the file's "diff --git" line in the patch file
	HunkLines    []int  // of each hunk's @@ line in the patch file; as many as TextFragments
	OldID, NewID string // full blob ids; all zeros where the file is absent, "" where the patch has no full id
}

// Path is the file's path after the change; for a deleted file, the one before.
func (f *File) Path() string {
	if f.IsDelete {
		return f.OldName
	}
	return f.NewName
}

// Changed counts the lines added and removed.
func (f *File) Changed() int {
	n := 0
	for _, h := range f.TextFragments {
		n += int(h.LinesAdded + h.LinesDeleted)
	}
	return n
}

// paths lists the names of the file before and after, once if they are the same.
func (f *File) paths() []string {
	old, new := f.names()
	return slices.Compact([]string{old, new})
}

// lineOf is the patch file's line of the k-th line of hunk i.
func (f *File) lineOf(i, k int) int {
	line := f.HunkLines[i] + 1 + k
	for _, l := range f.TextFragments[i].Lines[:k] {
		if l.NoEOL() {
			line++ // its "\ No newline at end of file"
		}
	}
	return line
}

// ParseError is a patch file that is not one mail with one git diff.
type ParseError struct {
	Patch   string
	Line    int
	Rule    string // RuleParse, or RuleMessage if the fault is in the message's prose
	Why, Do string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("%s%s:%d: %s; %s", e.Patch, suffix, e.Line, e.Why, e.Do)
}

// Parse reads one patch file. It takes what git am takes of the things that Fix can fix (a diffstat, a signature, a
// [PATCH n/m] prefix, an unzeroed From line) and refuses, with a *ParseError that names the line, what would be read
// in two ways: a second mail, prose where a diff belongs, hunks whose numbers do not add up.
func Parse(name string, raw []byte) (*Patch, error) {
	p := newParser(name, raw)
	header, next, err := parseMail(p)
	if err != nil {
		return nil, err
	}
	return p.parseFiles(next, &Patch{Name: name, Raw: raw, SHA256: fmt.Sprintf("%x", sha256.Sum256(raw)), Header: header})
}

// ParseDiff reads a git diff without a mail around it.
func ParseDiff(name string, raw []byte) (*Patch, error) {
	return newParser(name, raw).parseFiles(0, &Patch{Name: name, Raw: raw, SHA256: fmt.Sprintf("%x", sha256.Sum256(raw))})
}

func newParser(name string, raw []byte) *parser {
	p := &parser{name: name, lines: strings.SplitAfter(string(raw), "\n")}
	if last := len(p.lines) - 1; p.lines[last] == "" {
		p.lines = p.lines[:last]
	} else {
		p.lines[last] += "\n" // else go-gitdiff would take the last line for one without a newline
	}
	return p
}

// parseFiles reads the diffs from line next on, up to the end.
func (p *parser) parseFiles(next int, patch *Patch) (*Patch, error) {
	var err error
	seen := map[string]bool{}
	for p.diffStart(next) {
		var f *File
		if f, next, err = p.parseFile(next); err != nil {
			return nil, err
		}
		if seen[f.Path()] {
			return nil, p.fault(RuleParse, f.Line-1, "export the commit again", "a second diff of %s", f.Path())
		}
		seen[f.Path()] = true
		patch.Files = append(patch.Files, f)
	}
	if len(patch.Files) == 0 {
		return nil, p.fault(RuleParse, len(p.lines)-1, "export the commit again", "there is no diff")
	}
	if err := p.parseTail(next); err != nil {
		return nil, err
	}
	return patch, nil
}

// parser walks over the lines of a patch file. Before go-gitdiff sees a file's diff, it is cut out and its frame is
// checked here: gitdiff reads a whole mailbox as one patch, ignores prose between diffs and keeps no line numbers.
type parser struct {
	name  string
	lines []string
}

func (p *parser) line(i int) string {
	if i < len(p.lines) {
		return p.lines[i]
	}
	return ""
}

func (p *parser) fault(rule string, i int, do, why string, args ...any) error {
	return &ParseError{Patch: p.name, Line: max(i, 0) + 1, Rule: rule, Why: fmt.Sprintf(why, args...), Do: do}
}

const diffGit = "diff --git "

var (
	extended = lazy(
		`^(old mode|new mode|new file mode|deleted file mode|similarity index|dissimilarity index|rename from|rename to|copy from|copy to|index|---|\+\+\+) `)
	hunkRE   = lazy(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@( .*)?\n$`)
	binaryRE = lazy(`^(literal|delta) \d+\n$`)
	base85RE = lazy("^[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+\n$")
	fullID   = lazy(`^[0-9a-f]{40}$`)
)

// diffStart reports whether a file's diff starts on line i: prose that begins with "diff --git" has no header after it.
func (p *parser) diffStart(i int) bool {
	return strings.HasPrefix(p.line(i), diffGit) && extended().MatchString(p.line(i+1))
}

// parseFile reads the diff of one file, which starts on line i.
func (p *parser) parseFile(i int) (f *File, next int, err error) {
	start := i
	for i++; extended().MatchString(p.line(i)); i++ {
	}
	f = &File{Patch: p.name, Line: start + 1}
	end := i // of what gitdiff is to read
	binary := p.line(i) == "GIT binary patch\n" || strings.HasPrefix(p.line(i), "Binary files ")
	if binary { // Apply needs it; lint refuses it
		if i = p.scanBinary(i); p.line(i-1) == "\n" {
			end = i
		}
	}
	var old, shift int64 // the old line after the last hunk, and new minus old line numbers there
	for !binary && strings.HasPrefix(p.line(i), "@@") {
		f.HunkLines = append(f.HunkLines, i+1)
		if i, err = p.scanHunk(i, &old, &shift); err != nil {
			return nil, 0, err
		}
		end = i
	}
	files, pre, err := gitdiff.Parse(strings.NewReader(strings.Join(p.lines[start:end], "")))
	if err == nil && (len(files) != 1 || pre != "" || len(files[0].TextFragments) != len(f.HunkLines)) {
		err = fmt.Errorf("it is not the diff of one file")
	}
	if err != nil {
		return nil, 0, p.fault(RuleParse, start, "export the commit again", "the diff that starts here cannot be read: %v", err)
	}
	f.File = files[0]
	f.IsBinary = binary
	for _, mode := range []os.FileMode{f.OldMode, f.NewMode} {
		if mode != 0 && !slices.Contains([]os.FileMode{modeFile, modeExecutable, modeSymlink, modeSubmodule}, mode) {
			return nil, 0, p.fault(RuleParse, start, "use 100644 or 100755", "%s has mode %06o, which git gives to no file", f.Path(), uint32(mode))
		}
	}
	switch {
	case f.OldMode != 0 && f.NewMode != 0 && fileType(f.OldMode) != fileType(f.NewMode):
		return nil, 0, p.fault(RuleParse, start, "delete one and create the other", "%s is %s that becomes %s", f.Path(), fileType(f.OldMode),
			fileType(f.NewMode))
	case f.IsNew && f.IsDelete:
		return nil, 0, p.fault(RuleParse, start, "export the commit again", "the diff that starts here both creates and deletes")
	case f.gitLine(quote) != p.line(start) && f.gitLine(quotePath) != p.line(start),
		f.OldName != f.NewName && !f.IsNew && !f.IsDelete && !f.IsRename && !f.IsCopy:
		// gitdiff drops any first component, joins double slashes and takes a name from several lines
		return nil, 0, p.fault(RuleParse, start, "export it with the prefixes a/ and b/", "the names in the diff that starts here do not agree")
	case !binary && len(f.HunkLines) == 0 && !f.IsNew && !f.IsDelete && !f.IsRename && !f.IsCopy && !modeChanged(f.File):
		return nil, 0, p.fault(RuleParse, start, "export the commit again", "the diff that starts here changes nothing")
	}
	if fullID().MatchString(f.OldOIDPrefix) && fullID().MatchString(f.NewOIDPrefix) {
		f.OldID, f.NewID = f.OldOIDPrefix, f.NewOIDPrefix
	}
	return f, i, nil
}

// scanBinary passes over a binary change: one line that says so, or up to two blocks of data that a blank line ends.
// It stops at anything else, so that no prose and no second mail hides in it.
func (p *parser) scanBinary(i int) (next int) {
	i++
	for range 2 {
		if !binaryRE().MatchString(p.line(i)) {
			return i
		}
		for i++; base85RE().MatchString(p.line(i)); i++ {
		}
		if p.line(i) == "\n" {
			i++
		}
	}
	return i
}

// scanHunk checks the frame of the hunk whose @@ line is line i. It is stricter than git in what gitdiff and git would
// read differently: hunks without context, new line numbers that do not follow from the old, misplaced "\ No newline".
func (p *parser) scanHunk(i int, oldEnd, shift *int64) (next int, err error) {
	const do = "export the commit again"
	at := i
	m := hunkRE().FindStringSubmatch(p.line(i))
	if m == nil {
		return 0, p.fault(RuleParse, i, do, "not a hunk header")
	}
	oldPos, oldN, newPos, newN := number(m[1]), number(m[2]), number(m[3]), number(m[4])
	switch {
	case oldN == 0 && oldPos != 0 || newN == 0 && newPos != 0:
		return 0, p.fault(RuleParse, i, "export it with three lines of context", "a hunk without context")
	case oldN > 0 && oldPos == 0 || newN > 0 && newPos == 0:
		return 0, p.fault(RuleParse, i, do, "the hunk begins at line 0")
	case oldN > 0 && oldPos <= *oldEnd || oldN == 0 && *oldEnd > 0:
		return 0, p.fault(RuleParse, i, do, "the hunk is not below the one before it")
	case oldN > 0 && newN > 0 && newPos != oldPos+*shift:
		return 0, p.fault(RuleParse, i, do, "the hunk's new line number is %d, by the hunks before it it is %d", newPos, oldPos+*shift)
	}
	*oldEnd, *shift = max(oldPos+oldN-1, 1), *shift+newN-oldN
	changed := false
	for i++; oldN > 0 || newN > 0; i++ {
		line := p.line(i)
		if line == "" {
			return 0, p.fault(RuleParse, len(p.lines)-1, do, "the patch ends within the hunk of line %d", at+1)
		}
		ended := false // whether the line is the last of its side
		switch line[0] {
		case ' ', '\n':
			oldN, newN = oldN-1, newN-1
			ended = oldN == 0 && newN == 0
		case '-':
			oldN--
			ended, changed = oldN == 0, true
		case '+':
			newN--
			ended, changed = newN == 0, true
		default:
			return 0, p.fault(RuleParse, i, do, "not a line of the hunk of line %d", at+1)
		}
		if oldN < 0 || newN < 0 {
			return 0, p.fault(RuleParse, i, do, "the hunk of line %d has one line more than its header says", at+1)
		}
		if strings.HasPrefix(p.line(i+1), `\`) {
			if i++; !ended || len(p.line(i)) < 12 || p.line(i)[1] != ' ' {
				return 0, p.fault(RuleParse, i, do, "a misplaced \"no newline\" mark")
			}
		}
	}
	if !changed {
		return 0, p.fault(RuleParse, at, do, "the hunk changes nothing")
	}
	return i, nil
}

// number reads a number of a hunk header, at most nine digits; left out, it is 1.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 1
	}
	return n
}

// parseTail checks that nothing but a signature and blank lines follows the diff.
func (p *parser) parseTail(i int) error {
	if p.line(i) == "-- \n" {
		i++
		if strings.TrimSpace(p.line(i)) != "" && !strings.HasPrefix(p.line(i), "From ") {
			i++ // the version of git
		}
	}
	for ; i < len(p.lines); i++ {
		switch line := p.line(i); {
		case line == "\n":
		case strings.HasPrefix(line, "From "):
			return p.fault(RuleParse, i, "keep one mail per file", "a second mail begins here")
		default:
			return p.fault(RuleParse, i, "delete it, or move it into the message", "text after the diff")
		}
	}
	return nil
}
