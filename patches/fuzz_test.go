package patches

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// FuzzApplyLikeGit: what Parse, CheckPath and Apply accept, git apply accepts as well, with the same result. Where only git accepts,
// it was read less strictly, or put at an offset: README's rule "strict patches". The one difference the other way is a line feed that
// the last line lacks, as mails come that somebody pasted: Parse adds it, and lint says that the form is not canonical.
func FuzzApplyLikeGit(f *testing.F) {
	if _, err := exec.LookPath("git"); err != nil {
		f.Skip("SKIP: git is not installed")
	}
	twenty := numbered(20)
	f.Add([]byte(changed("f", twenty, strings.Replace(twenty, "line 10", "new", 1))), []byte(twenty))
	f.Add([]byte(changed("f", twenty, strings.Replace(twenty, "line 10", "new", 1))), []byte("one more\n"+twenty))
	f.Add([]byte(created("f", "x\n")), []byte(""))
	f.Add([]byte(deleted("f", "x\n")), []byte("x\n"))
	f.Add([]byte(changedBy("@@ -1 +1 @@ int f()\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n")), []byte("x"))
	f.Add([]byte(changedBy("@@ -1,2 +1,3 @@\n x\n+y\n \n@@ -5,2 +6 @@\n-a\n b\n")), []byte("x\n\nc\nd\na\nb\n"))
	f.Add([]byte("diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"), []byte("x\n"))
	f.Add([]byte("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"), []byte("x\n"))
	f.Add([]byte("diff --git a/../f b/../f\n--- a/../f\n+++ b/../f\n@@ -1 +1 @@\n-x\n+y\n"), []byte("x\n"))
	f.Add([]byte("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-0\n+0"), []byte("0\n"))
	f.Fuzz(func(t *testing.T, raw, old []byte) {
		if len(raw) > 1<<16 || len(old) > 1<<16 {
			return
		}
		patch, err := ParseDiff("p", raw)
		if err != nil || len(patch.Files) != 1 || raw[len(raw)-1] != '\n' {
			return // whatever git does with it, it is not done
		}
		file := patch.Files[0]
		for _, name := range file.paths() {
			if name != "" && CheckPath(name) != nil || len(name) > 200 {
				return
			}
		}
		if file.IsNew {
			old = nil
		} else if old == nil {
			old = []byte{}
		}
		if file.OldMode == modeSymlink || file.OldMode == modeSubmodule || file.NewMode == modeSubmodule {
			return // the file made below is no link, and fork refuses submodules
		}
		got, err := file.Apply(old)
		if err != nil {
			return
		}
		dir := t.TempDir()
		if !file.IsNew {
			at := filepath.Join(dir, file.OldName)
			require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, old, 0o644)))
		}
		command := exec.Command("git", "apply", "--whitespace=nowarn", "-")
		command.Dir, command.Stdin = dir, bytes.NewReader(raw)
		command.Env = append(os.Environ(), "LC_ALL=C", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("Apply accepts what git apply refuses: %s\n%q\n%q", said, raw, old)
		}
		if file.IsDelete {
			if _, err := os.Lstat(filepath.Join(dir, file.OldName)); err == nil {
				t.Fatalf("git has not deleted %q", file.OldName)
			}
			return
		}
		at := filepath.Join(dir, file.NewName)
		if link, err := os.Readlink(at); err == nil {
			if link != string(got) {
				t.Fatalf("git makes a link to %q, Apply gives %q", link, got)
			}
			return
		}
		want, err := os.ReadFile(at)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("git apply makes %q (%v), Apply %q, of\n%q\n%q", want, err, got, raw, old)
		}
	})
}

// FuzzSeries: each entry of a series file is the name of one file in its folder, once.
func FuzzSeries(f *testing.F) {
	f.Add("stream-slots.patch\n# a comment\n\nfork-guard.patch # why\n")
	f.Add("../up.patch\n/abs.patch\na.patch -p0\n1-a.patch\na.patch\na.patch\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries, faults := parseSeries(text)
		seen := map[string]bool{}
		for _, e := range entries {
			if seen[e.name] || strings.ContainsAny(e.name, "/\\. \x00") || e.line < 1 {
				t.Errorf("entry %+v of %q", e, text)
			}
			seen[e.name] = true
		}
		for _, fault := range faults {
			if fault.line < 1 || fault.why == "" || fault.do == "" {
				t.Errorf("fault %+v of %q", fault, text)
			}
		}
	})
}
