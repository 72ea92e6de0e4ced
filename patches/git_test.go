package patches

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/gittest"
	"mpsforge/internal/require"
)

// These tests hold the parser, the printer and Apply against the real git.

// repo is a scratch repository.
type repo struct{ gittest.Repo }

func newRepo(t *testing.T) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := repo{gittest.New(t, "core.quotepath=off", "core.autocrlf=false", "core.safecrlf=false")}
	r.Git("commit", "-q", "--allow-empty", "-m", "root")
	return r
}

// commit commits everything and exports the commit under the pinned options.
func (r repo) commit(message string, options ...string) []byte {
	r.T.Helper()
	r.Git("add", "-A")
	r.Raw([]byte(message), "commit", "-q", "--allow-empty-message", "--cleanup=strip", "-F", "-")
	args := append([]string{"format-patch", "-k", "--no-stat", "--no-signature", "--zero-commit", "--full-index", "--binary", "-1", "--stdout"}, options...)
	return r.Raw(nil, args...)
}

// content is a file's content in a commit, nil if it is not there.
func (r repo) content(commit, name string) []byte {
	out, err := r.Run(nil, "show", commit+":"+name)
	if err != nil {
		return nil
	}
	return append([]byte{}, out...)
}

// check holds one exported HEAD commit against the package: canonical form, result of Apply, and what git am makes of it.
func (r repo) check(raw []byte) {
	t := r.T
	t.Helper()
	p, err := Parse("p", raw)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, raw)
	}
	if canon, err := Canonical(p); err != nil || !bytes.Equal(canon, raw) {
		t.Errorf("canonical form: %v\n%s\nbut git writes\n%s", err, canon, raw)
	}
	for _, f := range p.Files {
		var old []byte
		if !f.IsNew {
			old = r.content("HEAD~", f.OldName)
		}
		got, err := f.Apply(old)
		if err != nil {
			t.Errorf("apply: %v", err)
		}
		if want := r.content("HEAD", f.Path()); !bytes.Equal(got, want) {
			t.Errorf("%s becomes %q, with git %q", f.Path(), got, want)
		}
		if f.NewID != "" && !f.IsDelete && blobID(got) != f.NewID {
			t.Errorf("%s becomes blob %s, the patch says %s", f.Path(), blobID(got), f.NewID)
		}
	}
	tree := r.Git("rev-parse", "HEAD^{tree}")
	r.Git("checkout", "-q", "-f", "--detach", "HEAD~")
	defer r.Git("checkout", "-q", "-f", "main")
	r.Raw(raw, "am", "-q", "--keep-cr", "--keep-non-patch")
	_, message, _ := strings.Cut(string(r.Raw(nil, "cat-file", "commit", "HEAD")), "\n\n")
	if message != p.Header.Message() {
		t.Errorf("message %q, git am makes %q", p.Header.Message(), message)
	}
	if who := r.Git("log", "-1", "--format=%an <%ae> %aI"); strings.TrimSpace(who) !=
		fmt.Sprintf("%s <%s> %s", p.Header.AuthorName, p.Header.AuthorEmail, p.Header.Date.Format("2006-01-02T15:04:05-07:00")) {
		t.Errorf("author and date %+v, git am makes %q", p.Header, who)
	}
	if am := r.Git("rev-parse", "HEAD^{tree}"); am != tree {
		t.Errorf("git am makes tree %s, the commit has %s", am, tree)
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// Every kind of change that git can write comes out of the printer as git writes it.
func TestCanonicalIsWhatGitWrites(t *testing.T) {
	for name, step := range map[string]struct{ before, after func(repo) }{
		"add":                 {nil, func(r repo) { r.Write("dir/a.h", numbered(5)) }},
		"add empty file":      {nil, func(r repo) { r.Write("empty", "") }},
		"add one line":        {nil, func(r repo) { r.Write("a", "x\n") }},
		"add without newline": {nil, func(r repo) { r.Write("a", "x\ny") }},
		"delete":              {func(r repo) { r.Write("a", numbered(3)) }, func(r repo) { os.Remove(r.Dir + "/a") }},
		"delete empty file":   {func(r repo) { r.Write("a", ""); r.Write("b", "") }, func(r repo) { os.Remove(r.Dir + "/a") }},
		"rename":              {func(r repo) { r.Write("a", numbered(9)) }, func(r repo) { r.Git("mv", "a", "b c") }},
		"rename and change": {func(r repo) { r.Write("a", numbered(20)) }, func(r repo) {
			r.Git("mv", "a", "d-e.txt")
			r.Write("d-e.txt", numbered(20)+"x\n")
		}},
		"mode":            {func(r repo) { r.Write("a", "x\n") }, func(r repo) { os.Chmod(r.Dir+"/a", 0o755) }},
		"mode and change": {func(r repo) { r.Write("a", "x\n") }, func(r repo) { r.Write("a", "y\n"); os.Chmod(r.Dir+"/a", 0o755) }},
		"one-line ranges": {func(r repo) { r.Write("a", "x\n") }, func(r repo) { r.Write("a", "y\n") }},
		"empty a file":    {func(r repo) { r.Write("a", "x\ny\n") }, func(r repo) { r.Write("a", "") }},
		"fill a file":     {func(r repo) { r.Write("a", "") }, func(r repo) { r.Write("a", "x\ny\n") }},
		"lose newline":    {func(r repo) { r.Write("a", "x\ny\n") }, func(r repo) { r.Write("a", "x\ny") }},
		"gain newline":    {func(r repo) { r.Write("a", "x\ny") }, func(r repo) { r.Write("a", "x\ny\n") }},
		"keep no newline": {func(r repo) { r.Write("a", "x\ny\nz") }, func(r repo) { r.Write("a", "X\ny\nz") }},
		"CRLF content":    {func(r repo) { r.Write("a", "x\r\ny\r\n") }, func(r repo) { r.Write("a", "x\r\nz\r\n") }},
		"odd names": {nil, func(r repo) {
			for _, name := range []string{"with space", "ümlaut", "ta\tb", `quo"te`, `back\slash dir/f`, "bell\a", "del\x7f", " lead"} {
				r.Write(name, name+"\n")
			}
		}},
		"odd names changed": {func(r repo) { r.Write("with space", "1\n"); r.Write("ta\tb c", "1\n") },
			func(r repo) { r.Write("with space", "2\n"); r.Write("ta\tb c", "2\n") }},
		"headings": {func(r repo) { r.Write("a", "int main() {\n"+numbered(40)) },
			func(r repo) { r.Write("a", "int main() {\n"+strings.Replace(numbered(40), "line 30", "new", 1)) }},
		"a heading cut behind a blank": {func(r repo) { r.Write("a", "int f("+strings.Repeat("x", 73)+" b) {\n"+numbered(40)) },
			func(r repo) {
				r.Write("a", "int f("+strings.Repeat("x", 73)+" b) {\n"+strings.Replace(numbered(40), "line 30", "new", 1))
			}},
		"order of names": {nil, func(r repo) { r.Write("a/b", "1\n"); r.Write("a.b", "2\n"); r.Write("a0", "3\n") }},
		"dashes":         {func(r repo) { r.Write("a", "-- \n- x\n++ y\n") }, func(r repo) { r.Write("a", "++ z\n") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			if step.before != nil {
				step.before(r)
				r.commit("before")
			}
			step.after(r)
			r.check(r.commit("[MPS] " + name + "\n\nThe body.\n\nScenario: " + name))
		})
	}
}

// Subjects and authors are folded and encoded as git does, and come back as git am reads them.
func TestHeadersAreWhatGitWrites(t *testing.T) {
	r := newRepo(t)
	for i, message := range []string{
		"[MPS] Short",
		"[MPS] A subject of exactly as many characters as upstream allows us to use",
		"[MPS] " + strings.Repeat("many words of a subject ", 9),
		"[MPS] " + strings.Repeat("x", 100),
		strings.Repeat("x", 100),
		"[MPS] Ströme für Threads, überall und in jedem Aufruf, auch wenn es lang wird",
		"[MPS] " + strings.Repeat("日本語", 15),
		"[MPS] =?UTF-8?q?not encoded?= and _ under",
		"[MPS] emoji 🎉 = equals ? question",
		"[MPS][Inductor] two tags",
		"Re: [MPS] a reply",
		"[MPS]tight [brackets] later",
		"[MPS] Body in UTF-8\n\nGröße and 日本語.\n\nScenario: x",
		"[MPS] Indented and dashed body\n\n    indented\n- a list\n--\n---- more\nFrom here it goes\n\n\n\nafter blanks   \n\nFixes: #1\nScenario: " +
			"a\n  continued",
		"[MPS] No body but trailers\n\nScenario: x",
	} {
		r.Write("f", fmt.Sprint(i))
		raw := r.commit(message)
		t.Log(message)
		if strings.HasPrefix(message, "Re:") { // git drops the reply mark on the way, so it is not canonical
			if p, err := Parse("p", raw); err != nil || p.Header.Subject != "[MPS] a reply" {
				t.Errorf("reply mark: %v, %v", p, err)
			}
			continue
		}
		r.check(raw)
	}
}

// Authors that need quoting or encoding.
func TestAuthorsAreWhatGitWrites(t *testing.T) {
	for i, name := range []string{
		"Plain Name", "Dr. O'Neil, Jr", `Quoted "Nick" Name`, "Jörg Müller", "日本 太郎",
		"A Name of Some Sixty Bytes That Makes the Line Rather Long x", "Jörg with a Name of Sixty Bytes That Makes the Line Long x",
	} {
		r := newRepo(t)
		r.Env = append(r.Env, "GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL=somebody.with.a.long.address@subdomain.example.invalid")
		r.Write("f", fmt.Sprint(i))
		r.check(r.commit("[MPS] By " + name))
	}
}

// What git format-patch writes without the pinned options is not canonical, and Fix makes it so.
func TestFixMendsOtherOptions(t *testing.T) {
	r := newRepo(t)
	r.Write("a", numbered(3))
	r.Write("ümlaut", "x\n")
	want := r.commit("[MPS] Something\n\nBody.\n\nScenario: x")
	loose := string(r.Raw(nil, "-c", "core.quotepath=on", "format-patch", "--full-index", "--binary", "-n", "-1", "--stdout", "--stat", "--signature=2.39.5"))
	if loose == string(want) {
		t.Fatal("the options make no difference")
	}
	for _, raw := range []string{loose, string(want) + "\n\n", strings.TrimSuffix(string(want), "\n")} {
		if got, err := fix([]byte(raw)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("Fix: %v\n%s\nwant\n%s", err, got, want)
		}
	}
}

// Binary changes, copies and abbreviated ids are refused rather than printed.
func TestNoCanonicalForm(t *testing.T) {
	r := newRepo(t)
	r.Write("a", numbered(30))
	r.Write("bin", "\x00\x01\x02")
	binary := r.commit("[MPS] Binary")
	r.Write("copy", numbered(30))
	copied := r.commit("[MPS] Copy", "-C", "--find-copies-harder")
	r.Write("a", "short\n")
	r.commit("[MPS] Short ids")
	short := r.Raw(nil, "format-patch", "-k", "-1", "--stdout")
	for why, raw := range map[string][]byte{"a binary change": binary, "a copy": copied, "abbreviated": short} {
		if p, err := Parse("p", raw); err != nil {
			t.Errorf("%s: %v", why, err)
		} else if _, err := Canonical(p); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("Canonical says %v, not %q", err, why)
		}
	}
}

// A binary change applies to the very blob it was made from, and to nothing else. No second mail hides behind it.
func TestApplyBinary(t *testing.T) {
	r := newRepo(t)
	r.Write("bin", "\x00\x01\x02"+numbered(50))
	r.commit("before")
	r.Write("bin", "\x00\x03\x02"+numbered(51))
	raw := r.commit("[MPS] Binary")
	p := require.One(Parse("p", raw))(t)
	if got, err := p.Files[0].Apply(r.content("HEAD~", "bin")); err != nil || !bytes.Equal(got, r.content("HEAD", "bin")) {
		t.Errorf("becomes %q, %v", got, err)
	}
	var conflict *ConflictError
	if _, err := p.Files[0].Apply([]byte("\x00other")); !errors.As(err, &conflict) {
		t.Errorf("applies to another content: %v", err)
	}
	_, err := Parse("p", slices.Concat(raw, raw))
	require.Says(t, err, "second mail", "two mails")
}

// On random edits, and on random files near them, Apply and git apply agree: same result, or both refuse; git applied
// with an offset is where Apply refuses and says so.
func TestApplyAgreesWithGit(t *testing.T) {
	r := newRepo(t)
	rng := rand.New(rand.NewPCG(2, 91))
	edit := func(text string, times int) string {
		lines := strings.SplitAfter(text, "\n")
		for range times {
			switch i := rng.IntN(len(lines)); rng.IntN(4) {
			case 0:
				lines = append(lines[:i], append([]string{fmt.Sprintf("new %d\n", rng.IntN(5))}, lines[i:]...)...)
			case 1:
				lines[i] = "\n"
			case 2:
				lines = append(lines[:i], lines[min(i+1, len(lines)-1):]...)
			case 3:
				lines[len(lines)-1] = strings.Repeat("no newline", rng.IntN(2))
			}
		}
		return strings.Join(lines, "")
	}
	applied, refused, moved := 0, 0, 0
	rounds := 120
	if testing.Short() {
		rounds = 30
	}
	for range rounds {
		old := edit(numbered(rng.IntN(40)), 3)
		r.Write("f", old)
		if r.Git("status", "--porcelain") != "" {
			r.commit("old")
		}
		r.Write("f", edit(old, 1+rng.IntN(6)))
		if r.Git("status", "--porcelain") == "" {
			continue
		}
		raw := r.commit("[MPS] new")
		p, err := Parse("p", raw)
		if err != nil {
			t.Fatalf("%v in\n%s", err, raw)
		}
		if canon, err := Canonical(p); err != nil || !bytes.Equal(canon, raw) {
			t.Fatalf("canonical: %v\n%s\nwant\n%s", err, canon, raw)
		}
		target := edit(old, rng.IntN(3))
		r.Write("f", target)
		_, gitErr := r.Run(raw, "apply", "-v")
		want, _ := os.ReadFile(r.Dir + "/f")
		got, err := p.Files[0].Apply([]byte(target))
		switch {
		case err == nil && gitErr == nil && bytes.Equal(got, want):
			applied++
		case err != nil && gitErr != nil:
			refused++
		case err != nil && gitErr == nil:
			moved++ // git found an offset for some hunk
		default:
			t.Fatalf("Apply: %v %q\ngit: %v %q\ntarget %q\n%s", err, got, gitErr, want, target, raw)
		}
	}
	if applied < rounds/6 || refused < rounds/24 {
		t.Errorf("too few of a kind to mean much: %d applied, %d refused, %d only by git's offset", applied, refused, moved)
	}
	t.Logf("%d applied, %d refused, %d only by git's offset", applied, refused, moved)
}
