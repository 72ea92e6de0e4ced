package patches

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// NewHeader makes the header of a commit's patch. What a mail cannot carry shows in Format.
func NewHeader(name, email string, date time.Time, message string) Header {
	subject, body, _ := strings.Cut(strings.Trim(message, "\n"), "\n")
	h := Header{AuthorName: name, AuthorEmail: email, Date: date, Subject: strings.TrimRight(subject, " \t\r")}
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	h.setBody(lines, 0)
	return h
}

// Format makes a patch file of a header and of the diff that git prints with full blob ids. It is read back: a patch
// that git am would not make the same commit of, or that has no canonical form, is an error.
func Format(name string, h Header, diff []byte) (*Patch, error) {
	fail := func(why string, args ...any) error {
		return fmt.Errorf("make patch %s of the commit %q: %w", name, h.Subject, fmt.Errorf(why, args...))
	}
	var b bytes.Buffer
	writeMail(&b, h)
	b.Write(diff)
	p, err := Parse(name, b.Bytes())
	if err != nil {
		return nil, fail("%w; reword the commit (git commit --amend, or git rebase -i)", err)
	}
	was, is := h.identity(), p.Header.identity()
	for i, what := range headerFields {
		if was[i] != is[i] {
			return nil, fail("a mail cannot keep its %s: %q would become %q; change the commit (git commit --amend, or git rebase -i)", what, was[i], is[i])
		}
	}
	canonical, err := Canonical(p)
	if err != nil {
		return nil, fail("%w; a series holds text changes only", err)
	}
	if !bytes.Equal(canonical, p.Raw) {
		return nil, fail("git's diff is not in canonical form; this is a bug in mpsforge: please report it with the output of git version")
	}
	return p, nil
}

// headerFields names what identity gives.
var headerFields = [...]string{"author", "address", "date", "subject", "message"}

// identity is what a commit and its mail must agree in.
func (h Header) identity() [5]string {
	return [5]string{h.AuthorName, h.AuthorEmail, h.Date.Format(mailDate), h.Subject, h.Body}
}

var (
	notSlug    = lazy(`[^a-z0-9]+`)
	subjectTag = lazy(`^\[[^\]]*\] *`)
)

// maxSlug is the longest name that Slug makes.
const maxSlug = 40

// Slug makes the name of a patch from a commit's subject: its tag and articles left out, cut at a word.
func Slug(subject string) string {
	text := strings.ToLower(subjectTag().ReplaceAllString(subject, ""))
	var words []string
	length := 0
	for _, word := range strings.Split(strings.Trim(notSlug().ReplaceAllString(text, "-"), "-"), "-") {
		switch {
		case word == "a" || word == "an" || word == "the" || word == "":
			continue
		case len(words) == 0 && strings.Trim(word, "0123456789") == "":
			continue // a name does not begin with a number
		}
		if length += len(word) + 1; length > maxSlug+1 && len(words) > 0 {
			break
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return "patch"
	}
	return strings.Join(words, "-")
}

// CheckName refuses what a series file cannot list.
func CheckName(name string) error {
	if _, faults := parseSeries(name + suffix); len(faults) > 0 {
		return fmt.Errorf("%s; %s", faults[0].why, faults[0].do)
	}
	return nil
}
