package patches

import (
	"errors"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// one parses the only file of a patch.
func one(t *testing.T, diff string) *File {
	t.Helper()
	p := require.One(Parse("stream-slots", []byte(good(diff))))(t)
	return p.Files[0]
}

// A conflict says what is where, and whether the change is there already or only elsewhere.
func TestApplyConflicts(t *testing.T) {
	base := numbered(20)
	fixed := strings.Replace(base, "line 10\n", "new\n", 1)
	change := changed("f", base, fixed)
	for name, c := range map[string]struct {
		diff string
		old  []byte
		want ConflictError
		text string
	}{
		"another line there": {change, []byte(strings.Replace(base, "line 9\n", "other\n", 1)),
			ConflictError{Hunk: 1, Line: 9, Expected: `"line 9"`, Found: `"other"`}, "port the patch"},
		"there already": {change, []byte(fixed),
			ConflictError{Hunk: 1, Line: 10, Expected: `"line 10"`, Found: `"new"`, Already: true}, "there already"},
		"moved down": {change, []byte("one\ntwo\n" + base),
			ConflictError{Hunk: 1, Line: 7, Expected: `"line 7"`, Found: `"line 5"`, Offset: 2}, "offset of +2"},
		"file too short": {change, []byte(numbered(8)),
			ConflictError{Hunk: 1, Line: 9, Expected: `"line 9"`, Found: "the end of the file"}, ""},
		"no file": {change, nil, ConflictError{Line: 1, Expected: "a file", Found: "no file"}, ""},
		"newline differs": {changed("f", "x\n", "y\n"), []byte("x"),
			ConflictError{Hunk: 1, Line: 1, Expected: `"x"`, Found: `"x" without a newline`}, ""},
		"file goes on": {changed("f", numbered(3), numbered(3)+"x\n"), []byte(numbered(3) + "more\n"),
			ConflictError{Hunk: 1, Line: 4, Expected: "the end of the file", Found: `"more"`}, ""},
		"file to create exists": {created("f", "x\n"), []byte("y\n"), ConflictError{Line: 1, Expected: "no file", Found: "a file"}, ""},
		"file was created before": {created("f", "x\n"), []byte("x\n"), ConflictError{Line: 1, Expected: "no file", Found: "a file", Already: true},
			"there already"},
		"file was deleted before": {deleted("f", "x\n"), nil, ConflictError{Line: 1, Expected: "a file", Found: "no file", Already: true}, "there already"},
		"deleted file goes on":    {deleted("f", "x\n"), []byte("x\ny\n"), ConflictError{Hunk: 1, Line: 2, Expected: "the end of the file", Found: `"y"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := one(t, c.diff)
			_, err := f.Apply(c.old)
			var got *ConflictError
			if !errors.As(err, &got) {
				t.Fatalf("error is %v, want a *ConflictError", err)
			}
			c.want.Patch, c.want.Path, c.want.PatchLine = "stream-slots", "f", f.Line
			if c.want.Hunk > 0 {
				c.want.PatchLine = f.HunkLines[c.want.Hunk-1]
			}
			require.Equal(t, *got, c.want)
			for _, part := range []string{"stream-slots", "f", c.want.Expected, c.want.Found, c.text} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the message %q does not say %q", err, part)
				}
			}
		})
	}
}

// A deleted file has no content; an emptied one has empty content.
func TestApplyTellsDeletedFromEmpty(t *testing.T) {
	if got, err := one(t, deleted("f", "x\n")).Apply([]byte("x\n")); err != nil || got != nil {
		t.Errorf("deleted: %q, %v", got, err)
	}
	emptied := "diff --git a/f b/f\nindex " + blobID([]byte("x\n")) + ".." + blobID(nil) + " 100644\n--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-x\n"
	if got, err := one(t, emptied).Apply([]byte("x\n")); err != nil || got == nil || len(got) > 0 {
		t.Errorf("emptied: %q, %v", got, err)
	}
}
