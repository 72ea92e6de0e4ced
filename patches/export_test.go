package patches

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"mpsforge/internal/require"
)

// replaced gives n lines, of which some are replaced.
func replaced(n int, others map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if text, ok := others[i]; ok {
			b.WriteString(text)
		} else {
			b.WriteString("line " + strings.Repeat("x", i) + "\n")
		}
	}
	return b.String()
}

func parsed(t *testing.T, text string) *Patch {
	t.Helper()
	return require.One(Parse("p", []byte(text)))(t)
}

// A change is present when its new side is in the file at whatever line, and its old side nowhere.
func TestPresent(t *testing.T) {
	old := replaced(40, nil)
	new := replaced(40, map[int]string{20: "changed\n"})
	removed := replaced(40, map[int]string{20: ""})
	appended := old + "the end\n"
	for _, c := range []struct {
		name    string
		patch   string
		content string
		want    bool
	}{
		{"the change as it is", changed("f", old, new), new, true},
		{"the change further down", changed("f", old, new), "above\n" + new, true},
		{"the file as it was", changed("f", old, new), old, false},
		{"the change and, elsewhere, what it changes", changed("f", old, new), new + old, false},
		{"other context", changed("f", old, new), replaced(40, map[int]string{20: "changed\n", 21: "other\n"}), false},
		{"a removal", changed("f", old, removed), removed, true},
		{"a removal not made", changed("f", old, removed), old, false},
		{"an appended line", changed("f", old, appended), appended, true},
		{"an appended line not there", changed("f", old, appended), old, false},
		{"a created file", created("f", "a\nb\n"), "a\nb\n", true},
		{"another file at the place of a created one", created("f", "a\nb\n"), "a\nb\nc\n", false},
		{"a deleted file that is there", deleted("f", "a\nb\n"), "a\nb\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, parsed(t, good(c.patch)).Files[0].Present([]byte(c.content)), c.want, "present")
		})
	}
	if !parsed(t, good(deleted("f", "a\n"))).Files[0].Present(nil) || parsed(t, good(created("f", "a\n"))).Files[0].Present(nil) {
		t.Error("an absent file is what a deletion leaves, and not what a creation leaves")
	}
}

// Compare distinguishes changes of content from those that only follow other changes.
func TestCompareTellsContentFromWhatFollows(t *testing.T) {
	old, new := replaced(40, nil), replaced(40, map[int]string{20: "changed\n"})
	patch := parsed(t, good(changed("f", old, new)))
	for _, c := range []struct {
		name  string
		other string
		want  Degree
	}{
		{"itself", good(changed("f", old, new)), DegreeNone},
		{"a line far away differs", good(changed("f", "other\n"+old[len("line x\n"):], "other\n"+new[len("line x\n"):])), DegreeIndex},
		{"a line above", good(changed("f", "above\n"+old, "above\n"+new)), DegreePlaces},
		{"a context line", good(changed("f", strings.Replace(old, "x\nchanged", "y\nchanged", 1), strings.Replace(new, strings.Repeat("x", 19)+"\n",
			"y\n", 1))), DegreeContent},
		{"another line", good(changed("f", old, replaced(40, map[int]string{20: "changed again\n"}))), DegreeContent},
		{"a second file", good(changed("f", old, new), created("g", "g\n")), DegreeContent},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, Compare(patch, parsed(t, c.other)).Diff, c.want)
		})
	}
	context := replaced(40, map[int]string{19: "other\n"})
	other := strings.Replace(context, "line "+strings.Repeat("x", 20)+"\n", "changed\n", 1)
	if got := Compare(patch, parsed(t, good(changed("f", context, other)))); got.Diff != DegreeContext {
		t.Errorf("another context line is %s", got.Diff)
	}
	if got := Compare(patch, parsed(t, mailed("[MPS] Fix it otherwise", goodBody, changed("f", old, new)))); !slices.Equal(got.Header,
		[]string{"subject"}) || got.Diff != DegreeNone {
		t.Errorf("another subject: %+v", got)
	}
}

// Format makes what Parse reads, and refuses what a mail would not keep.
func TestFormat(t *testing.T) {
	date := time.Date(2026, 11, 21, 10, 11, 12, 0, time.FixedZone("", 19800))
	diff := []byte(created("f", "a\n"))
	for _, c := range []struct{ name, message, refused string }{
		{"a whole message", "[MPS] Fix it\n\nA body.\n\n  indented\n\nUpstream-Status: Pending\n", ""},
		{"a subject alone", "[MPS] Fix it\n", ""},
		{"white space at the ends", "[MPS] Fix it  \n\n\n\nA body. \n\n\n\nMore.\n\n\n", ""},
		{"characters beyond ASCII", "[MPS] Größe\n\nünïcode\n", ""},
		{"two blanks in the subject", "[MPS] Fix  it\n", "cannot keep its subject"},
		{"a reply mark", "Re: [MPS] Fix it\n", "cannot keep its subject"},
		{"a line that cuts", "[MPS] Fix it\n\nA body.\n---\nMore.\n", "git am would drop this text"},
		{"no text", "\n", "the subject is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Format("p", NewHeader("Ada", "ada@example.invalid", date, c.message), diff)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("error %v, want %q", err, c.refused)
				}
				return
			}
			require.NoError(t, err)
			if !p.Header.Date.Equal(date) || p.Header.AuthorName != "Ada" {
				t.Errorf("header %+v", p.Header)
			}
		})
	}
}

func TestSlug(t *testing.T) {
	for subject, want := range map[string]string{
		"[MPS] Add an allocator of worker-stream slots": "add-allocator-of-worker-stream-slots",
		"[MPS] 3 things": "things",
		"[MPS] Größe":    "gr-e",
		"[MPS] --":       "patch",
		"No tag":         "no-tag",
		"[MPS] Change a stream's command buffer and encoder only on its queue": "change-stream-s-command-buffer-and",
	} {
		if got := Slug(subject); got != want || CheckName(got) != nil {
			t.Errorf("%q becomes %q (%v), want %q", subject, got, CheckName(got), want)
		}
	}
}

// A rewrite that is cut off anywhere leaves the old files, or is finished by the next look.
func TestRewriteIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		require.File(t, filepath.Join(dir, name), text)
	}
	files := func() string {
		var b bytes.Buffer
		entries := require.One(os.ReadDir(dir))(t)
		for _, entry := range entries {
			content, _ := os.ReadFile(filepath.Join(dir, entry.Name()))
			b.WriteString(entry.Name() + "=" + string(content) + " ")
		}
		return b.String()
	}
	put("a", "1")
	put("b", "1")
	put("c", "1")
	changed, err := Rewrite(dir, map[string][]byte{"a": []byte("1"), "b": []byte("2"), "d": []byte("2")}, []string{"c", "never"})
	if err != nil || !slices.Equal(changed, []string{"b", "d", "c"}) {
		t.Fatalf("changed %v, %v", changed, err)
	}
	require.Equal(t, files(), "a=1 b=2 d=2 ", "files")
	put(".prepared/a", "torn")
	require.One(FinishRewrite(dir))(t)
	if changed, err := Rewrite(dir, map[string][]byte{"a": []byte("3")}, nil); err != nil || !slices.Equal(changed, []string{"a"}) {
		t.Errorf("after one that was not committed: %v, %v", changed, err)
	}
	put(".pending/a", "4") // b was moved, and c removed, before the kill
	put(".pending/.removed", "c\nd")
	if finished, err := FinishRewrite(dir); err != nil || !finished {
		t.Errorf("finish: %v, %v", finished, err)
	}
	require.Equal(t, files(), "a=4 b=2 ", "files")
}

// The order of the series file is the new one; comments stay with the names they were at.
func TestSeriesTextKeepsComments(t *testing.T) {
	old := "# head\n\na.patch\n# of b\nb.patch # inline\nc.patch\n# tail\n"
	require.Equal(t, seriesText(old, []string{"b", "new", "a"}), "# head\n\n# of b\nb.patch # inline\nnew.patch\na.patch\n# tail\n")
	require.Equal(t, seriesText(old, []string{"a", "b", "c"}), old, "the same names change it")
}

// Two series are held against each other line by line; context may differ, every other difference needs a reason.
func TestLintCompare(t *testing.T) {
	one, two := replaced(40, nil), "above\n"+replaced(40, map[int]string{18: "another context\n"})
	patch := func(old, line string) string {
		return good(changed("f", old, strings.Replace(old, "line "+strings.Repeat("x", 20)+"\n", line, 1)))
	}
	both := func(a, b, reasons string) fstest.MapFS {
		fsys := fstest.MapFS{}
		for name, from := range map[string]fstest.MapFS{"v1.0.0": fixture(map[string]string{"f": one}, "p", a),
			DefaultBaseline: fixture(map[string]string{"f": two}, "p", b)} {
			for file, content := range from {
				fsys[strings.Replace(file, "v1.0.0", name, 1)] = content
			}
		}
		if reasons != "" {
			fsys["v1.0.0/differences.json"] = &fstest.MapFile{Data: []byte(reasons)}
		}
		return fsys
	}
	compare := func(fsys fstest.MapFS) *CompareResult {
		t.Helper()
		return require.One(LintCompare(fsys, "v1.0.0"))(t)
	}
	if result := compare(both(patch(one, "new\n"), patch(two, "new\n"), "")); len(result.Differences) != 0 || result.Patches != 1 {
		t.Errorf("the same change in other context: %+v", result)
	}
	differing := compare(both(patch(one, "new\nmore\n"), patch(two, "new\n"), ""))
	if len(differing.Differences) != 1 || !slices.Equal(differing.Differences[0].Here, []string{"+more"}) || len(differing.Findings) != 1 {
		t.Fatalf("one line more: %+v", differing)
	}
	digest := differing.Differences[0].Digest
	reason := func(text string) string {
		return `[{"patch": "p", "path": "f", "digest": "` + digest + `", "reason": "` + text + `"}]`
	}
	if result := compare(both(patch(one, "new\nmore\n"), patch(two, "new\n"), reason("so it is"))); len(result.Findings) != 0 ||
		result.Differences[0].Reason != "so it is" {
		t.Errorf("explained: %+v", result)
	}
	for name, fsys := range map[string]fstest.MapFS{
		"an empty reason": both(patch(one, "new\nmore\n"), patch(two, "new\n"), reason("")),
		"other lines":     both(patch(one, "new\nyet more\n"), patch(two, "new\n"), reason("so it is")),
		"a stale reason":  both(patch(one, "new\n"), patch(two, "new\n"), reason("so it is")),
		"another date": both(patch(one, "new\n"), strings.Replace(patch(two, "new\n"), "\nDate: ", "\nDate: Mon, 3 Jan 2000 00:00:00 +0000\nX-Was: ",
			1), ""),
		"another message": both(mailed("[MPS] Fix", goodBody, changed("f", one, one+"a\n")), good(changed("f", two, two+"a\n")), ""),
	} {
		if result := compare(fsys); len(result.Findings) == 0 {
			t.Errorf("%s is not a finding: %+v", name, result)
		}
	}
}

// A series that somebody sends may hold the folder of a rewrite: finishing that must not remove files elsewhere.
func TestRewriteRemovesOnlyItsOwnFiles(t *testing.T) {
	for _, name := range []string{"../mine", "..", "sub/mine", "/mine"} {
		outer := t.TempDir()
		pending := filepath.Join(outer, "v1", pendingDir)
		require.NoError(t, errors.Join(os.MkdirAll(pending, 0o755), os.MkdirAll(filepath.Join(outer, "v1", "sub"), 0o755),
			os.WriteFile(filepath.Join(outer, "mine"), nil, 0o644), os.WriteFile(filepath.Join(outer, "v1", "sub", "mine"), nil, 0o644),
			os.WriteFile(filepath.Join(pending, removedFile), []byte(name), 0o644)))
		if _, err := FinishRewrite(filepath.Join(outer, "v1")); err == nil {
			t.Errorf("%q is accepted", name)
		}
		for _, path := range []string{"mine", "v1/sub/mine"} {
			if _, err := os.Lstat(filepath.Join(outer, path)); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}
