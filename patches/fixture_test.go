package patches

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"mpsforge/internal/require"
)

// A fixture is a small baseline in memory, and patches against it in canonical form made without git.

const goodBody = "The fault is here.\n\nUpstream-Status: Pending\nScenario: slot-conformance"

// mailed wraps diffs into a canonical mail.
func mailed(subject, body string, diffs ...string) string {
	var b bytes.Buffer
	h := Header{AuthorName: "mpsforge", AuthorEmail: "mpsforge@example.invalid", Subject: subject, Body: body}
	writeMail(&b, h)
	return b.String() + strings.Join(diffs, "")
}

func good(diffs ...string) string { return mailed("[MPS] Fix it", goodBody, diffs...) }

const zeroID = "0000000000000000000000000000000000000000"

func created(path, content string) string {
	n := strings.Count(content, "\n")
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\nindex %[2]s..%[3]s\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +%[4]s @@\n%[5]s",
		path, zeroID, blobID([]byte(content)), span(1, int64(n)), prefixed("+", strings.SplitAfter(content, "\n")))
}

func deleted(path, content string) string {
	n := strings.Count(content, "\n")
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\ndeleted file mode 100644\nindex %[2]s..%[3]s\n--- a/%[1]s\n+++ /dev/null\n@@ -%[4]s +0,0 @@\n%[5]s",
		path, blobID([]byte(content)), zeroID, span(1, int64(n)), prefixed("-", strings.SplitAfter(content, "\n")))
}

// changed is a diff of one hunk, from the first line that differs to the last.
func changed(path, old, new string) string {
	a, b := strings.SplitAfter(old, "\n"), strings.SplitAfter(new, "\n")
	a, b = a[:len(a)-1], b[:len(b)-1]
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	from, after := max(head-3, 0), min(tail, 3)
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nindex %[2]s..%[3]s 100644\n--- a/%[1]s\n+++ b/%[1]s\n@@ -%[4]s +%[5]s @@\n%[6]s%[7]s%[8]s%[9]s", path,
		blobID([]byte(old)), blobID([]byte(new)),
		span(int64(from+1), int64(len(a)-tail+after-from)), span(int64(from+1), int64(len(b)-tail+after-from)),
		prefixed(" ", a[from:head]), prefixed("-", a[head:len(a)-tail]), prefixed("+", b[head:len(b)-tail]),
		prefixed(" ", a[len(a)-tail:len(a)-tail+after]))
}

func prefixed(prefix string, lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if l != "" {
			b.WriteString(prefix + l)
		}
	}
	return b.String()
}

// fixture makes the file system of one baseline, v1.0.0, that has the given files, and knows the path "absent" not to
// exist. touched is taken from the patches; patches are name, text, name, text.
func fixture(tree map[string]string, patches ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	put := func(name string, text string) { fsys["v1.0.0/"+name] = &fstest.MapFile{Data: []byte(text)} }
	var touched, extra []string
	series := ""
	for i := 0; i < len(patches); i += 2 {
		put(patches[i]+".patch", patches[i+1])
		series += patches[i] + ".patch\n"
		if p, err := Parse("p", []byte(patches[i+1])); err == nil {
			for _, f := range p.Files {
				for _, path := range f.paths() {
					if _, ok := tree[path]; ok || f.IsNew {
						touched = append(touched, path)
					}
				}
			}
		}
	}
	put("series", series)
	for path := range tree {
		extra = append(extra, path)
	}
	slices.Sort(touched)
	b, d, err := RecordBaseline(Baseline{Name: "v1.0.0", Tag: "v1.0.0"}, slices.Compact(touched), append(extra, "absent"), reader(tree))
	if err != nil {
		panic(err) // reader gives no other error than fs.ErrNotExist
	}
	record(fsys, BaselineFile, b)
	record(fsys, digestsFile, d)
	if s, err := Load(fsys, "v1.0.0"); err == nil { // else lint has worse to say
		blobs, err := RecordBlobs(s, func(path string) ([]byte, error) {
			_, content, err := reader(tree)(path)
			return content, err
		})
		if err == nil { // else a hunk does not fit
			record(fsys, blobsFile, blobs)
		}
	}
	return fsys
}

// record puts a file that a command writes into the folder of a fixture's baseline.
func record(fsys fstest.MapFS, name string, content any) {
	text, err := FileText(name, content)
	if err != nil {
		panic(err) // all that the tests record can be written as JSON
	}
	fsys["v1.0.0/"+name] = &fstest.MapFile{Data: text}
}

// onePatch is a fixture whose series is the patch p.
func onePatch(t *testing.T) (fstest.MapFS, *Series) {
	t.Helper()
	fsys := fixture(tree, "p", good(changed("a.h", tree["a.h"], edited("line 10", "ten"))))
	series := require.One(Load(fsys, "v1.0.0"))(t)
	return fsys, series
}

// plantIn replaces what data must have.
func plantIn(t *testing.T, data []byte, old, with string) []byte {
	t.Helper()
	planted := bytes.Replace(data, []byte(old), []byte(with), 1)
	if bytes.Equal(planted, data) {
		t.Fatalf("nothing was planted for %q in %s", old, data)
	}
	return planted
}

// wantFinding wants one finding, or none where message is empty.
func wantFinding(t *testing.T, findings []LintFinding, severity Severity, message string) {
	t.Helper()
	if message == "" && len(findings) > 0 || message != "" && (len(findings) != 1 || findings[0].Severity != severity || findings[0].Message != message) {
		t.Errorf("%v, want %s %q", findings, severity, message)
	}
}
