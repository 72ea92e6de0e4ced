package patches

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Canonical prints a patch as git format-patch -k --no-stat --no-signature --zero-commit --full-index does under
// core.quotepath=off. A patch is in canonical form if this equals Raw. What has no canonical form is an error: binary
// changes, copies, abbreviated blob ids.
func Canonical(p *Patch) ([]byte, error) {
	var b bytes.Buffer
	writeMail(&b, p.Header)
	// git writes files in the order of their names; Parse has made sure that none comes twice.
	inOrder := slices.SortedFunc(slices.Values(p.Files), func(a, b *File) int { return strings.Compare(a.Path(), b.Path()) })
	for _, f := range inOrder {
		if err := writeFile(&b, f); err != nil {
			return nil, fmt.Errorf("%s%s:%d: %s: no canonical form: %w", p.Name, suffix, f.Line, f.Path(), err)
		}
	}
	return b.Bytes(), nil
}

// fix brings a patch file into canonical form: it drops the diffstat, the signature and any [PATCH n/m], zeroes the
// From line and folds, encodes and spaces the header as git does.
func fix(raw []byte) ([]byte, error) {
	p, err := Parse("", raw)
	if err != nil {
		return nil, err
	}
	return Canonical(p)
}

// FixDir brings the patch files that a baseline's series below dir lists into canonical form and names those it
// rewrote. A file that cannot be read as a patch is left alone: Lint says what is wrong with it.
func FixDir(dir, baseline string) (rewritten []string, err error) {
	folder := os.DirFS(filepath.Join(dir, baseline))
	text, err := readFile(folder, seriesFile)
	if err != nil {
		return nil, fmt.Errorf("fix %s: read the series: %w", baseline, err)
	}
	entries, _ := parseSeries(string(text))
	for _, entry := range entries {
		path := filepath.Join(dir, baseline, entry.name+suffix)
		raw, err := readFile(folder, entry.name+suffix)
		if err != nil {
			return rewritten, fmt.Errorf("fix: %w", err)
		}
		fixed, err := fix(raw)
		if err != nil || bytes.Equal(fixed, raw) {
			continue
		}
		if err := os.WriteFile(path, fixed, 0o644); err != nil {
			return rewritten, fmt.Errorf("fix: %w", err)
		}
		rewritten = append(rewritten, path)
	}
	return rewritten, nil
}

// writeMail prints the mail's header and the message.
func writeMail(b *bytes.Buffer, h Header) {
	b.WriteString("From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: ")
	width := 78
	switch {
	case needsEncoding(h.AuthorName):
		b.WriteString(encodeWords(len("From: "), h.AuthorName, true))
		width = 76 // RFC 2047's limit for a line with an encoded word
	case strings.ContainsAny(h.AuthorName, `()<>[]:;@,."\`):
		b.WriteString(fold(len("From: "), `"`+strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(h.AuthorName)+`"`))
	default:
		b.WriteString(fold(len("From: "), h.AuthorName))
	}
	if line := b.Len() - 1 - bytes.LastIndexByte(b.Bytes(), '\n'); width < line+len(" <>")+len(h.AuthorEmail) {
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, " <%s>\nDate: %s\nSubject: ", h.AuthorEmail, h.Date.Format(mailDate))
	if needsEncoding(h.Subject) {
		b.WriteString(encodeWords(len("Subject: "), h.Subject, false))
	} else {
		b.WriteString(fold(len("Subject: "), h.Subject))
	}
	b.WriteByte('\n')
	if strings.ContainsFunc(h.Subject+h.Body, func(r rune) bool { return r > 126 || r == '\033' }) {
		b.WriteString("MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n")
	}
	b.WriteByte('\n')
	if h.Body != "" {
		b.WriteString(h.Body + "\n")
	}
	b.WriteByte('\n')
}

// fold breaks a header's text as git's strbuf_add_wrapped_text does, at 78 columns; column is where it starts.
func fold(column int, text string) string {
	var b strings.Builder
	for i, word := range strings.Split(text, " ") {
		if i > 0 {
			column++
		}
		if column+len(word) > 78 {
			b.WriteString("\n ")
			column = 1
		} else if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// needsEncoding is git's needs_rfc2047_encoding.
func needsEncoding(s string) bool {
	return strings.Contains(s, "=?") || strings.ContainsFunc(s, func(r rune) bool { return r > 127 || r == '\033' || r == '\n' })
}

// encodeWords is git's add_rfc2047: encoded words of whole characters, at most 76 columns a line.
func encodeWords(column int, s string, address bool) string {
	const open = "=?UTF-8?q?"
	var b strings.Builder
	b.WriteString(open)
	column += len(open)
	for _, r := range s {
		char := string(r)
		if len(char) > 1 || r <= ' ' || r == 127 || strings.ContainsRune("=?_", r) || address && !addressSafe(r) {
			char = fmt.Sprintf("%X", char)
			for i := 0; i < len(char); i += 3 {
				char = char[:i] + "=" + char[i:]
			}
		}
		if column+len(char)+len("?=") > 76 {
			b.WriteString("?=\n " + open)
			column = 1 + len(open)
		}
		b.WriteString(char)
		column += len(char)
	}
	return b.String() + "?="
}

func addressSafe(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!*+-/", r)
}

// writeFile prints the diff of one file.
func writeFile(b *bytes.Buffer, f *File) error {
	switch {
	case f.IsBinary:
		return errors.New("a binary change")
	case f.IsCopy:
		return errors.New("a copy")
	case f.OldOIDPrefix != f.OldID || f.NewOIDPrefix != f.NewID:
		return errors.New("abbreviated or damaged blob ids")
	case f.OldID == "" && (len(f.TextFragments) > 0 || f.IsNew || f.IsDelete):
		return errors.New("no index line with blob ids")
	}
	old, new := f.names()
	b.WriteString(f.gitLine(quote))
	mode := "" // at the end of the index line: unchanged
	switch {
	case f.IsNew:
		fmt.Fprintf(b, "new file mode %06o\n", uint32(f.NewMode))
	case f.IsDelete:
		fmt.Fprintf(b, "deleted file mode %06o\n", uint32(f.OldMode))
	case modeChanged(f.File):
		fmt.Fprintf(b, "old mode %06o\nnew mode %06o\n", uint32(f.OldMode), uint32(f.NewMode))
	default:
		mode = fmt.Sprintf(" %06o", uint32(f.OldMode))
	}
	if f.IsRename {
		fmt.Fprintf(b, "similarity index %d%%\nrename from %s\nrename to %s\n", f.Score, quote("", old), quote("", new))
	}
	if f.OldID != "" {
		fmt.Fprintf(b, "index %s..%s%s\n", f.OldID, f.NewID, mode)
	}
	if len(f.TextFragments) == 0 {
		return nil
	}
	oldLabel, newLabel := label("a/", old), label("b/", new)
	if f.IsNew {
		oldLabel = "/dev/null"
	} else if f.IsDelete {
		newLabel = "/dev/null"
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", oldLabel, newLabel)
	for _, h := range f.TextFragments {
		writeHunk(b, h)
	}
	return nil
}

// names gives the names before and after; a file that is created or deleted has one name.
func (f *File) names() (old, new string) {
	switch {
	case f.IsNew:
		return f.NewName, f.NewName
	case f.IsDelete:
		return f.OldName, f.OldName
	default:
		return f.OldName, f.NewName
	}
}

// gitLine is the "diff --git" line with names as quote writes them.
func (f *File) gitLine(quote func(prefix, name string) string) string {
	old, new := f.names()
	return diffGit + quote("a/", old) + " " + quote("b/", new) + "\n"
}

func modeChanged(f *gitdiff.File) bool { return f.NewMode != 0 && f.NewMode != f.OldMode }

func writeHunk(b *bytes.Buffer, h *gitdiff.TextFragment) {
	fmt.Fprintf(b, "@@ -%s +%s @@", span(h.OldPosition, h.OldLines), span(h.NewPosition, h.NewLines))
	if h.Comment != "" {
		b.WriteString(" " + h.Comment)
	}
	b.WriteByte('\n')
	for _, l := range h.Lines {
		b.WriteString(l.String())
		if l.NoEOL() {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// span is one side of a hunk header; git leaves out a count of one.
func span(pos, lines int64) string {
	if lines == 1 {
		return fmt.Sprint(pos)
	}
	return fmt.Sprintf("%d,%d", pos, lines)
}

// label is a name on a --- or +++ line; git ends one with a space in it by a tab.
func label(prefix, name string) string {
	l := quote(prefix, name)
	if strings.Contains(l, " ") {
		l += "\t"
	}
	return l
}

// quote writes a name as git does under core.quotepath=off: in C quotes if it has a control character, " or \.
func quote(prefix, name string) string { return cQuote(prefix, name, false) }

// quotePath is quote under core.quotepath=on, git's default: bytes beyond ASCII are escaped as well. Never canonical.
func quotePath(prefix, name string) string { return cQuote(prefix, name, true) }

func cQuote(prefix, name string, beyondASCII bool) string {
	var b strings.Builder
	quoted := false
	for _, c := range []byte(prefix + name) {
		if i := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); i >= 0 {
			b.WriteByte('\\')
			b.WriteByte(`abtnvfr"\`[i])
		} else if c < ' ' || c == 127 || beyondASCII && c > 127 {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
			continue
		}
		quoted = true
	}
	if quoted {
		return `"` + b.String() + `"`
	}
	return prefix + name
}

// Modes of files as git writes them; gitdiff gives the octal number as an os.FileMode.
const (
	modeFile       os.FileMode = 0o100644
	modeExecutable os.FileMode = 0o100755
	modeSymlink    os.FileMode = 0o120000
	modeSubmodule  os.FileMode = 0o160000
)

// fileType is what a mode of git's makes of a path: "a file", "a symbolic link" or "a submodule".
func fileType(mode os.FileMode) string {
	switch mode {
	case modeSymlink:
		return "a symbolic link"
	case modeSubmodule:
		return "a submodule"
	}
	return "a file"
}
