package fork_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// repo is a git repository of a test.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) repo {
	t.Helper()
	r := repo{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	return r
}

// git runs git in the repository and gives its output without white space around it.
func (r repo) git(args ...string) string {
	r.t.Helper()
	command := exec.Command("git", args...)
	command.Dir = r.dir
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada Lovelace", "GIT_AUTHOR_EMAIL=ada@example.invalid", "GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.invalid")
	output, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

func (r repo) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

func (r repo) write(name, content string) {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
	require.NoError(r.t, os.WriteFile(r.path(name), []byte(content), 0o644))
}

func (r repo) read(name string) string {
	r.t.Helper()
	content, err := os.ReadFile(r.path(name))
	require.NoError(r.t, err)
	return string(content)
}

func (r repo) commit(message string) string {
	r.t.Helper()
	r.git("add", "-A", "-f")
	r.git("commit", "-q", "--allow-empty", "-m", message)
	return r.git("rev-parse", "HEAD")
}

// series turns the commits from base to HEAD into a series for that base.
func (r repo) series(base string) *patches.Series {
	r.t.Helper()
	out := r.t.TempDir()
	r.git("format-patch", "-q", "-k", "--no-stat", "--no-signature", "--zero-commit", "--full-index", "--binary", "-o", out, base+"..HEAD")
	files, err := filepath.Glob(filepath.Join(out, "*.patch"))
	require.NoError(r.t, err)
	slices.Sort(files)
	series := &patches.Series{Baseline: patches.Baseline{Name: "v2.9.1", Tag: "v2.9.1", Commit: base}}
	for i, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(r.t, err)
		patch, err := patches.Parse(fmt.Sprintf("patch-%c", 'a'+i), raw)
		if err != nil {
			r.t.Fatalf("parse %s: %v\n%s", file, err, raw)
		}
		series.Patches = append(series.Patches, patch)
	}
	return series
}

// clone makes a second work tree at a commit.
func (r repo) clone(at string) repo {
	r.t.Helper()
	other := repo{r.t, filepath.Join(r.t.TempDir(), "clone")}
	r.git("clone", "-q", "--no-local", ".", other.dir)
	other.git("checkout", "-q", "--detach", at)
	return other
}

func (r repo) open() *fork.Checkout {
	r.t.Helper()
	checkout, err := fork.Open(context.Background(), r.dir, nil)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { checkout.Close() })
	return checkout
}

func TestARunSeesWhatAnotherChangedSinceItOpenedTheCheckout(t *testing.T) {
	r := newRepo(t)
	r.write("greeting", "hello\n")
	base := r.commit("base")
	r.write("greeting", "hello, world\n")
	patched := r.commit("greet the world")
	series := r.series(base)
	r.git("reset", "-q", "--hard", base)
	first, second, third := r.open(), r.open(), r.open()
	require.One(first.Apply(t.Context(), series, fork.Options{}, nil))(t)
	if change, err := second.Apply(t.Context(), series, fork.Options{}, nil); err != nil || len(change.Patches) > 0 {
		t.Errorf("the second run: %+v, %v; want nothing to do", change, err)
	}
	if change, err := third.Unapply(t.Context(), series, fork.Options{}, nil); err != nil || len(change.Patches) != 1 {
		t.Errorf("a run in the other direction: %+v, %v; want one patch taken off", change, err)
	}
	if head := r.git("rev-parse", "HEAD"); head != base || patched == base {
		t.Errorf("HEAD is %s, want the base %s", head, base)
	}
}

// mutate makes one random change of the kinds that a patch can hold.
func mutate(random *rand.Rand, r repo, n int) {
	names := slices.DeleteFunc(strings.Split(r.git("-c", "core.quotepath=off", "ls-files"), "\n"), func(name string) bool {
		info, err := os.Lstat(r.path(name))
		return err != nil || !info.Mode().IsRegular()
	})
	pick := func() string { return names[random.IntN(len(names))] }
	lines := func(count int, end string) string {
		var b strings.Builder
		for i := range count {
			fmt.Fprintf(&b, "line %d of %d %d%s", i, n, random.IntN(100), end)
		}
		return b.String()
	}
	fresh := func(suffix string) string { return fmt.Sprintf("dir%d/%s%d", random.IntN(3), suffix, n) }
	kind := random.IntN(13)
	if len(names) < 3 {
		kind = 0
	}
	switch kind {
	case 0:
		r.write(fresh("new"), lines(1+random.IntN(40), "\n"))
	case 1:
		r.write(fresh("empty"), "")
	case 2:
		r.write(fresh("größe mit ünïcode "), lines(3, "\n"))
	case 3:
		r.write(fresh("crlf"), lines(5, "\r\n"))
	case 4:
		r.write(fresh("no-newline"), strings.TrimSuffix(lines(5, "\n"), "\n"))
	case 5:
		binary := make([]byte, 300)
		for i := range binary {
			binary[i] = byte(random.IntN(256))
		}
		r.write(fresh("binary"), "\x00"+string(binary))
	case 6:
		os.Remove(r.path(pick()))
	case 7:
		from := pick()
		to := fresh("renamed")
		r.write(to, r.read(from)+map[bool]string{true: "one line more\n", false: ""}[random.IntN(2) == 0])
		os.Remove(r.path(from))
	case 8:
		name := pick()
		info, err := os.Stat(r.path(name))
		require.NoError(r.t, err)
		require.NoError(r.t, os.Chmod(r.path(name), info.Mode()^0o111))
	case 9, 10, 11:
		name := pick()
		split := strings.SplitAfter(r.read(name), "\n")
		at := random.IntN(len(split))
		switch random.IntN(3) {
		case 0:
			split = slices.Insert(split, at, "inserted\n", "two\n")
		case 1:
			split = slices.Delete(split, at, at+1)
		default:
			split[at] = "changed " + split[at]
		}
		r.write(name, strings.Join(split, ""))
	case 12: // a file becomes a folder
		name := pick()
		os.Remove(r.path(name))
		r.write(name+"/inside", lines(4, "\n"))
	}
}

// TestApplyGivesTheTreesOfGitAm compares apply with git am over generated histories with every kind of change.
func TestApplyGivesTheTreesOfGitAm(t *testing.T) {
	histories := 40
	if testing.Short() {
		histories = 4
	}
	for seed := range histories {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			upstream := newRepo(t)
			for i := range 12 {
				mutate(random, upstream, i)
			}
			upstream.write("keep", "kept\n")
			base := upstream.commit("base")
			for i := range 5 {
				for j := range 4 {
					mutate(random, upstream, 100*i+j+50)
				}
				upstream.commit(fmt.Sprintf("[MPS] Change %d with ünïcode\n\nA body\nof two lines.\n\nUpstream-Status: Pending", i))
			}
			series := upstream.series(base)

			am := upstream.clone(base)
			for _, patch := range series.Patches {
				mail := filepath.Join(t.TempDir(), "mail")
				require.NoError(t, os.WriteFile(mail, patch.Raw, 0o644))
				am.git("am", "-q", "--keep-cr", "--keep-non-patch", mail)
			}
			ours := upstream.clone(base)
			require.One(ours.open().Apply(context.Background(), series, fork.Options{}, events.Discard))(t)
			format := "--format=%T %an <%ae> %aI %B"
			if want, got := am.git("log", format, base+"..HEAD"), ours.git("log", format, base+"..HEAD"); want != got {
				t.Errorf("commits differ\ngit am:\n%s\nmpsforge:\n%s", want, got)
			}
			require.Equal(t, ours.git("status", "--porcelain"), "", "the work tree is not clean after apply")
			ours.git("fsck", "--strict")
			require.One(ours.open().Unapply(context.Background(), series, fork.Options{}, events.Discard))(t)
			if head := ours.git("rev-parse", "HEAD"); head != base {
				t.Errorf("after unapply HEAD is %s, the base is %s", head, base)
			}
			require.Equal(t, ours.git("status", "--porcelain"), "", "the work tree is not clean after unapply")
		})
	}
}
