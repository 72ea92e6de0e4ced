package patches

import (
	"errors"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// What could be read in two ways is refused, and the error names the line.
func TestParseRefuses(t *testing.T) {
	const head = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: a <a@b>\nDate: Sat, 21 Nov 2026 04:34:43 " +
		"+0000\nSubject: [MPS] S\n\n"
	diff := created("f", "x\ny\n") // eight lines
	for name, c := range map[string]struct {
		raw  string
		line int
		why  string
	}{
		"nothing":               {"", 1, "not the From line"},
		"a bare diff":           {diff, 1, "not the From line"},
		"no blank line":         {strings.TrimSuffix(head, "\n"), 4, "ends within its headers"},
		"no diff":               {head + "body\n", 6, "no diff"},
		"no Date":               {strings.Replace(head, "Date", "Other", 1) + diff, 1, "no date header"},
		"bad Date":              {strings.Replace(head, "Nov", "Foo", 1) + diff, 3, "Date header"},
		"endless subject":       {strings.Replace(head, "[MPS] S", strings.Repeat("x\n ", 6000), 1) + diff, 5004, "over 10000 bytes"},
		"bad From":              {strings.Replace(head, "<a@b>", "", 1) + diff, 2, "no <address>"},
		"two subjects":          {strings.Replace(head, "Date: ", "Subject: x\nDate: ", 1) + diff, 5, "second Subject"},
		"header with CR LF":     {strings.ReplaceAll(head, "\n", "\r\n") + diff, 1, "not the From line"},
		"base64 body":           {strings.Replace(head, "\n\n", "\nContent-Transfer-Encoding: base64\n\n", 1) + diff, 5, "base64"},
		"Latin-1 body":          {strings.Replace(head, "\n\n", "\nContent-Type: text/plain; charset=ISO-8859-1\n\n", 1) + diff, 5, "content type"},
		"body not UTF-8":        {head + "\xff\n\n" + diff, 6, "not UTF-8"},
		"prose diff --git":      {head + "Body.\ndiff --git breaks the mail\n\n" + diff, 7, "start of a diff"},
		"prose Index:":          {head + "Body.\nIndex: of things\n\n" + diff, 7, "start of a diff"},
		"prose --- name":        {head + "Body.\n--- a/name\n\n" + diff, 7, "start of a diff"},
		"prose after ---":       {head + "Body.\n---\nfor the reviewer\n" + diff, 8, "drop this text"},
		"in-body header":        {head + "From: me <m@e>\n\n" + diff, 6, "mail header"},
		"second mail":           {head + "Body.\n\n" + diff + head + diff, 16, "second mail"},
		"second mail in prose":  {head + "Body.\n" + head + diff, 7, "second mail"},
		"trailing prose":        {head + diff + "and so on\n", 14, "text after the diff"},
		"prose between diffs":   {head + diff + "and\n" + created("g", "x\n"), 14, "text after the diff"},
		"hunk too short":        {head + strings.Replace(diff, "+1,2", "+1,3", 1), 13, "ends within the hunk"},
		"hunk too long":         {head + strings.Replace(diff, "+1,2", "+1", 1), 13, "text after the diff"},
		"bad hunk header":       {head + strings.Replace(diff, "-0,0", "-0;0", 1), 11, "not a hunk header"},
		"stray line in a hunk":  {head + strings.Replace(diff, "+y", "y", 1), 13, "not a line of the hunk"},
		"hunk without context":  {head + changedBy("@@ -3,0 +4 @@\n+x\n"), 10, "without context"},
		"hunk at line 0":        {head + changedBy("@@ -0,1 +1 @@\n-x\n+y\n"), 10, "line 0"},
		"hunk changes nothing":  {head + changedBy("@@ -1 +1 @@\n x\n"), 10, "changes nothing"},
		"hunks out of order":    {head + changedBy("@@ -9 +9 @@\n-x\n+y\n@@ -1 +1 @@\n-x\n+y\n"), 13, "not below"},
		"new numbers off":       {head + changedBy("@@ -1 +1,2 @@\n x\n+y\n@@ -9 +9 @@\n-x\n+y\n"), 13, "it is 10"},
		"early no-newline mark": {head + changedBy("@@ -1,2 +1,2 @@\n-x\n\\ No newline at end of file\n+y\n z\n"), 12, "misplaced"},
		"one file twice":        {head + diff + diff, 14, "second diff of f"},
		"new file with old":     {head + strings.Replace(diff, "@@ -0,0 +1,2 @@\n+x\n", "@@ -1 +1,2 @@\n x\n", 1), 6, "cannot be read"},
		"nothing changes":       {head + "diff --git a/f b/f\nold mode 100644\n", 6, "changes nothing"},
		"new and deleted":       {head + "diff --git a/f b/f\nnew file mode 100644\ndeleted file mode 100644\n", 6, "creates and deletes"},
		"names do not agree": {head + strings.Replace(changedBy("@@ -1 +1 @@\n-x\n+y\n"), "--- a/f\n+++ b/f", "--- a/g\n+++ b/g", 1), 6,
			"do not agree"},
		"no prefixes":                {head + strings.NewReplacer("a/f", "f", "b/f", "f").Replace(diff), 6, "do not agree"},
		"name with a slash too many": {head + strings.NewReplacer("a/f", "a//f", "b/f", "b//f").Replace(diff), 6, "cannot be read"},
		"huge hunk numbers":          {head + changedBy("@@ -1,99999999999999999999 +1 @@\n-x\n"), 10, "not a hunk header"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("p", []byte(c.raw))
			var fault *ParseError
			if !errors.As(err, &fault) {
				t.Fatalf("error is %v, want a *ParseError", err)
			}
			if fault.Line != c.line || !strings.Contains(fault.Why, c.why) || fault.Do == "" {
				t.Errorf("%v; want line %d and %q", err, c.line, c.why)
			}
		})
	}
}

// changedBy is the diff of a file f with these hunks; its first hunk is line 5.
func changedBy(hunks string) string {
	return "diff --git a/f b/f\nindex " + zeroID + ".." + zeroID + " 100644\n--- a/f\n+++ b/f\n" + hunks
}

// A parsed patch knows its trailers, and the line of every hunk.
func TestParseKeepsLines(t *testing.T) {
	p := require.One(Parse("p", []byte(good(created("f", "x\n"), changed("g", numbered(20), strings.Replace(numbered(20), "line 10", "new", 1))))))(t)
	lines := strings.Split(string(p.Raw), "\n")
	for _, f := range p.Files {
		if !strings.HasPrefix(lines[f.Line-1], "diff --git a/"+f.Path()) || !strings.HasPrefix(lines[f.HunkLines[0]-1], "@@ ") {
			t.Errorf("%s: lines %d and %v", f.Path(), f.Line, f.HunkLines)
		}
	}
	for _, tr := range p.Header.Trailers {
		require.Equal(t, lines[tr.Line-1], tr.Key+": "+tr.Value, "trailer", tr, "is not line")
	}
	if got := p.Header.Values("Scenario"); len(got) != 1 || got[0] != "slot-conformance" {
		t.Errorf("Scenario: %q", got)
	}
	require.Equal(t, p.Changed(), 3, "changed lines")
}

// FuzzParse: no input makes Parse, Canonical or Apply panic, and canonical form is stable.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good(created("f", "x\n"))))
	f.Add([]byte(good(deleted("f", "x\n"))))
	f.Add([]byte(good(changed("a b", numbered(20), strings.Replace(numbered(20), "line 10", "new", 1)))))
	f.Add([]byte(mailed("[MPS] Größe", "Body.\n\nScenario: x",
		changedBy("@@ -1 +1 @@ int f()\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"))))
	f.Add([]byte(good("diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n", "diff --git a/c b/c\nold mode 100644\nnew mode 100755\n")))
	f.Add([]byte(good("diff --git a/b b/b\nindex 1..2\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n")))
	f.Add([]byte(good("diff --git \"a/t\\tb\" \"b/t\\tb\"\nnew file mode 100644\nindex " + zeroID + "..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := Parse("p", raw)
		if err != nil {
			var fault *ParseError
			if !errors.As(err, &fault) || fault.Line < 1 {
				t.Fatalf("not a *ParseError with a line: %v", err)
			}
			return
		}
		for _, file := range p.Files {
			var old []byte
			if !file.IsNew {
				old = []byte{}
				for _, h := range file.TextFragments {
					old = append(old, strings.Join(oldSide(h), "")...)
				}
			}
			_, _ = file.Apply(old)
			_ = CheckPath(file.Path())
		}
		canon, err := Canonical(p)
		if err != nil {
			return
		}
		again, err := fix(canon)
		if err != nil {
			t.Fatalf("canonical form does not parse: %v\n%s", err, canon)
		}
		if string(again) != string(canon) {
			t.Fatalf("canonical form is not stable:\n%q\n%q", canon, again)
		}
	})
}

// A person given on the command line must not write into a mail's header, nor look like somebody else.
func TestParseAuthor(t *testing.T) {
	for text, want := range map[string]string{
		"Ada Lovelace <ada@example.org>": "Ada Lovelace|ada@example.org",
		"Zoë <zoe@example.org>":          "Zoë|zoe@example.org",
		"Ada\nBcc: x <ada@example.org>":  "",
		"Ada\r <ada@example.org>":        "",
		"Ada\x1b[1m <ada@example.org>":   "",
		"Ada \u202e <ada@example.org>":   "",
		"Ada \xff <ada@example.org>":     "",
		"Ada":                            "",
		"<ada@example.org>":              "",
		"Ada <ada>":                      "",
		"Ada <ada@>":                     "",
		"Ada <a b@example.org>":          "",
		"a@b <ada@example.org>":          "",
	} {
		name, email, err := ParseAuthor(text)
		if got := name + "|" + email; (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
