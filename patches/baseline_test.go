package patches

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"mpsforge/internal/require"
)

// reader reads from a tree in memory, as RecordBaseline wants it.
func reader(tree map[string]string) func(string) (string, []byte, error) {
	return func(path string) (string, []byte, error) {
		text, ok := tree[path]
		if !ok {
			return "", nil, fs.ErrNotExist
		}
		return "100644", []byte(text), nil
	}
}

// The embedded baselines load and lint without an error.
func TestEmbeddedSeries(t *testing.T) {
	names, err := Baselines(Embedded())
	if err != nil || !slices.Equal(names, []string{"v2.6.0", "v2.9.1"}) {
		t.Fatalf("baselines %v, %v", names, err)
	}
	for _, name := range names {
		s := require.One(Load(Embedded(), name))(t)
		if s.Baseline.Name != name || s.Digest() == "" {
			t.Errorf("%s: %+v", name, s.Baseline)
		}
		result := require.One(Lint(Embedded(), name, nil))(t)
		for _, f := range result.Of(SeverityError) {
			t.Error(f)
		}
		if result.Verified+result.Unverified != result.Hunks {
			t.Errorf("%s: %d hunks, %d verified, %d unverified", name, result.Hunks, result.Verified, result.Unverified)
		}
		if result.Files != result.FilesExact || result.Files == 0 {
			t.Errorf("%s: the exact text of %d of %d files is known", name, result.FilesExact, result.Files)
		}
	}
	if licence, err := fs.ReadFile(Embedded(), "LICENSE"); err != nil || !bytes.Contains(licence, []byte("Redistributions of source code")) {
		t.Errorf("PyTorch's notice is not carried: %v", err)
	}
}

// What RecordBlobs does not know it does not record: neither the id of a file whose text is not at hand, nor what the
// index line says.
func TestRecordBlobs(t *testing.T) {
	change := changed("f", "a\nb\n", "a\nc\n")
	s := &Series{Baseline: Baseline{Tag: "v1"}}
	p := require.One(Parse("p", []byte(good(strings.Replace(change, blobID([]byte("a\nc\n")), strings.Repeat("1", 40), 1), changed("g", "x\n", "y\n"),
		created("new", "x\n")))))(t)
	s.Patches = []*Patch{p}
	read := reader(map[string]string{"f": "a\nb\n"})
	blobs := require.One(RecordBlobs(s, func(path string) ([]byte, error) { _, content, err := read(path); return content, err }))(t)
	if got := blobs.Patches["p"]; len(got) != 1 || got["f"] != blobID([]byte("a\nc\n")) {
		t.Errorf("recorded %v", got)
	}
}

// What FileText gives is what the files hold: reading and writing them again changes no byte.
func TestWriteIsStable(t *testing.T) {
	for _, name := range []string{"v2.6.0", "v2.9.1"} {
		s := require.One(Load(Embedded(), name))(t)
		for file, facts := range map[string]any{BaselineFile: s.Baseline, digestsFile: recordedDigests(t, s)} {
			want, err := fs.ReadFile(Embedded(), name+"/"+file)
			if errors.Is(err, fs.ErrNotExist) && file == digestsFile {
				continue // not recorded yet: its hunks count as unverified
			}
			got, failed := FileText(file, facts)
			if err := errors.Join(err, failed); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s/%s changes when written again (%v)", name, file, err)
			}
		}
	}
}

// The facts of a file: digests are of lines without their newline, and the last line may lack one.
func TestDigestFile(t *testing.T) {
	got := DigestFile("f", "100644", []byte("\nx"))
	if got.Lines != 2 || got.EOFNewline || got.Size != 2 || got.Blob != blobID([]byte("\nx")) {
		t.Errorf("%+v", got)
	}
	if got.LineDigests[0] != "e3b0c44298fc" || got.LineDigests[1] != lineDigest("x\n") {
		t.Errorf("digests %v", got.LineDigests)
	}
	if empty := DigestFile("f", "100644", nil); empty.Lines != 0 || !empty.EOFNewline {
		t.Errorf("empty: %+v", empty)
	}
	if id := blobID(nil); id != "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391" { // git's well-known empty blob
		t.Errorf("empty blob is %s", id)
	}
}

// Recording keeps what is absent apart from what cannot be read.
func TestRecordBaseline(t *testing.T) {
	b, d, err := RecordBaseline(Baseline{Name: "v1", Tag: "v1"}, []string{"new", "f"}, []string{"f", "g"}, reader(map[string]string{"f": "x\n", "g": "y\n"}))
	require.NoError(t, err)
	if blob := b.Touched["f"]; len(b.Touched) != 2 || b.Touched["new"] != nil || blob == nil || *blob != blobID([]byte("x\n")) {
		t.Errorf("touched %v", b.Touched)
	}
	if !slices.Equal(b.Absent, []string{"new"}) || len(d.Files) != 2 || d.Tag != "v1" {
		t.Errorf("absent %v, digests %+v", b.Absent, d)
	}
	broken := func(string) (string, []byte, error) { return "", nil, fs.ErrPermission }
	_, _, err = RecordBaseline(Baseline{}, []string{"f"}, nil, broken)
	require.Is(t, err, fs.ErrPermission, "an unreadable file gives")
}

// A series is identified by the names of its patches, what each changes, and their order; not by what their messages say.
func TestSeries(t *testing.T) {
	fsys := fixture(nil, "one", good(created("b", "x\n")), "two", good(created("a", "x\n")))
	fsys["v1.0.0/series"].Data = []byte("# heading\n\none.patch   # why\ntwo.patch\n")
	s := require.One(Load(fsys, "v1.0.0"))(t)
	require.Equal(t, s.TouchedPaths(), []string{"a", "b"}, "touched")
	slices.Reverse(s.Patches)
	if forward, err := Load(fsys, "v1.0.0"); err != nil || forward.Digest() == s.Digest() {
		t.Errorf("the order does not count: %v", err)
	}
	digest := func(old, new string) string {
		planted := maps.Clone(fsys)
		planted["v1.0.0/two.patch"] = &fstest.MapFile{Data: plantIn(t, fsys["v1.0.0/two.patch"].Data, old, new)}
		s := require.One(Load(planted, "v1.0.0"))(t)
		return s.Digest()
	}
	slices.Reverse(s.Patches)
	if digest("Subject: ", "Subject: Now ") != s.Digest() {
		t.Error("a message counts")
	}
	if digest("\n+x\n", "\n+y\n") == s.Digest() {
		t.Error("a line that is added does not count")
	}
}

// Load names the file and the line of what it cannot read.
func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fstest.MapFS)
		say    string
	}{
		"baseline outside": {nil, "is not the name of one"},
		"no such baseline": {nil, "there are: v1.0.0"},
		"missing patch":    {func(f fstest.MapFS) { delete(f, "v1.0.0/one.patch") }, "v1.0.0/series:1"},
		"damaged patch":    {func(f fstest.MapFS) { f["v1.0.0/one.patch"].Data = []byte("x") }, "one.patch:1"},
		"bad line":         {func(f fstest.MapFS) { f["v1.0.0/series"].Data = []byte("one.patch -R\n") }, "series:1"},
		"misspelt field":   {func(f fstest.MapFS) { f["v1.0.0/baseline.json"].Data = []byte(`{"schema":1,"nmae":"x"}`) }, "nmae"},
		"half a digest": {func(f fstest.MapFS) {
			f["v1.0.0/digests.json"].Data = []byte(`{"files":[{"path":"f","line_digests":["0123456789ab0"]}]}`)
		}, "13 hex digits"},
		"digests do not count": {func(f fstest.MapFS) { f["v1.0.0/digests.json"].Data = []byte(`{"files":[{"path":"f","lines":2}]}`) }, "2 lines"},
	} {
		fsys := fixture(nil, "one", good(created("b", "x\n")))
		baseline := "v1.0.0"
		switch name {
		case "baseline outside":
			baseline = "../v1.0.0"
		case "no such baseline":
			baseline = "v9"
		default:
			c.change(fsys)
		}
		s, err := Load(fsys, baseline)
		if err == nil {
			_, err = s.Digests()
		}
		require.Says(t, err, c.say, name)
	}
}

// Baselines come oldest first by number, not by letter.
func TestBaselinesOrder(t *testing.T) {
	fsys := fstest.MapFS{"v2.10.0/baseline.json": {}, "v2.9.1/baseline.json": {}, "v2.6.0/baseline.json": {}, "x/other": {}}
	if got, err := Baselines(fsys); err != nil || !slices.Equal(got, []string{"v2.6.0", "v2.9.1", "v2.10.0"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// Paths that lead out of the tree or into .git, also on file systems that fold case or drop characters.
func TestCheckPath(t *testing.T) {
	for _, bad := range []string{"", "/x", "../x", "a/../b", "a//b", "a/", "./a", ".git/config", "a/.GiT/x", ".git./x", ".git /x",
		"git~1/x", ".g\u200cit/config", `a\..\b`, "C:x", "a\nb", "a\xff",
		strings.Repeat("a", 256), strings.Repeat("a/", 500) + "b"} {
		if CheckPath(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, fine := range []string{"a", "aten/src/ATen/mps/MPSStream.h", ".gitignore", ".github/x.yml", "a b", "ümlaut", "a..b"} {
		if err := CheckPath(fine); err != nil {
			t.Error(err)
		}
	}
}

// A patch may not change where submodules come from; a fetched tree may say it.
func TestCheckChange(t *testing.T) {
	for _, bad := range []string{".gitmodules", ".GitModules", "../x"} {
		if CheckChange(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, fine := range []string{"third_party/x/.gitmodules", "aten/a.mm"} {
		if err := CheckChange(fine); err != nil {
			t.Error(err)
		}
	}
}

// The digests of a version can be read in a diff: at most 1,000 lines, and a row is of one file.
func TestDigestsAreShort(t *testing.T) {
	names := require.One(Baselines(Embedded()))(t)
	for _, name := range names {
		text := require.One(fs.ReadFile(Embedded(), name+"/"+digestsFile))(t)
		if lines := bytes.Count(text, []byte("\n")); lines > 1000 {
			t.Errorf("%s of %s has %d lines", digestsFile, name, lines)
		}
	}
}

func recordedDigests(t *testing.T, s *Series) Digests {
	t.Helper()
	return require.One(s.Digests())(t)
}

// README's figures of each version are those that lint counts.
func TestReadmeHasTheFiguresOfEachSeries(t *testing.T) {
	readme := require.One(os.ReadFile("README.md"))(t)
	names := require.One(Baselines(Embedded()))(t)
	for _, name := range names {
		result := require.One(Lint(Embedded(), name, nil))(t)
		if row := fmt.Sprintf("| %s | %d | %d | %d |\n", name, result.Total, result.Verified, result.FilesExact); !strings.Contains(string(readme), row) {
			t.Errorf("README.md lacks the row %s", row)
		}
	}
}
