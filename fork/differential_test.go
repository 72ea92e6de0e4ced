package fork_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork"
	"mpsforge/internal/events"
	"mpsforge/internal/gittest"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// repo is a git repository of a test.
type repo struct{ gittest.Repo }

// series turns the commits from base to HEAD into a series for that base.
func (r repo) series(base string) *patches.Series {
	r.T.Helper()
	out := r.T.TempDir()
	r.Git("format-patch", "-q", "-k", "--no-stat", "--no-signature", "--zero-commit", "--full-index", "--binary", "-o", out, base+"..HEAD")
	files := require.One(filepath.Glob(filepath.Join(out, "*.patch")))(r.T)
	slices.Sort(files)
	series := &patches.Series{Baseline: patches.Baseline{Name: "v2.9.1", Tag: "v2.9.1", Commit: base}}
	for i, file := range files {
		raw := require.One(os.ReadFile(file))(r.T)
		patch, err := patches.Parse(fmt.Sprintf("patch-%c", 'a'+i), raw)
		if err != nil {
			r.T.Fatalf("parse %s: %v\n%s", file, err, raw)
		}
		series.Patches = append(series.Patches, patch)
	}
	return series
}

// clone makes a second work tree at a commit.
func (r repo) clone(at string) repo {
	r.T.Helper()
	other := r
	other.Dir = filepath.Join(r.T.TempDir(), "clone")
	r.Git("clone", "-q", "--no-local", ".", other.Dir)
	other.Git("checkout", "-q", "--detach", at)
	return other
}

func (r repo) open() *fork.Checkout {
	r.T.Helper()
	checkout := require.One(fork.Open(context.Background(), r.Dir, nil))(r.T)
	r.T.Cleanup(func() { checkout.Close() })
	return checkout
}

func TestARunSeesWhatAnotherChangedSinceItOpenedTheCheckout(t *testing.T) {
	r := repo{gittest.New(t)}
	r.Write("greeting", "hello\n")
	base := r.Commit("base")
	r.Write("greeting", "hello, world\n")
	patched := r.Commit("greet the world")
	series := r.series(base)
	r.Git("reset", "-q", "--hard", base)
	first, second, third := r.open(), r.open(), r.open()
	require.One(first.Apply(t.Context(), series, fork.Options{}, nil))(t)
	if change, err := second.Apply(t.Context(), series, fork.Options{}, nil); err != nil || len(change.Patches) > 0 {
		t.Errorf("the second run: %+v, %v; want nothing to do", change, err)
	}
	if change, err := third.Unapply(t.Context(), series, fork.Options{}, nil); err != nil || len(change.Patches) != 1 {
		t.Errorf("a run in the other direction: %+v, %v; want one patch taken off", change, err)
	}
	if head := r.Git("rev-parse", "HEAD"); head != base || patched == base {
		t.Errorf("HEAD is %s, want the base %s", head, base)
	}
}

// mutate makes one random change of the kinds that a patch can hold.
func mutate(random *rand.Rand, r repo, n int) {
	names := slices.DeleteFunc(strings.Split(r.Git("-c", "core.quotepath=off", "ls-files"), "\n"), func(name string) bool {
		info, err := os.Lstat(r.Path(name))
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
		r.Write(fresh("new"), lines(1+random.IntN(40), "\n"))
	case 1:
		r.Write(fresh("empty"), "")
	case 2:
		r.Write(fresh("größe mit ünïcode "), lines(3, "\n"))
	case 3:
		r.Write(fresh("crlf"), lines(5, "\r\n"))
	case 4:
		r.Write(fresh("no-newline"), strings.TrimSuffix(lines(5, "\n"), "\n"))
	case 5:
		binary := make([]byte, 300)
		for i := range binary {
			binary[i] = byte(random.IntN(256))
		}
		r.Write(fresh("binary"), "\x00"+string(binary))
	case 6:
		os.Remove(r.Path(pick()))
	case 7:
		from := pick()
		to := fresh("renamed")
		r.Write(to, r.Read(from)+map[bool]string{true: "one line more\n", false: ""}[random.IntN(2) == 0])
		os.Remove(r.Path(from))
	case 8:
		name := pick()
		info := require.One(os.Stat(r.Path(name)))(r.T)
		require.NoError(r.T, os.Chmod(r.Path(name), info.Mode()^0o111))
	case 9, 10, 11:
		name := pick()
		split := strings.SplitAfter(r.Read(name), "\n")
		at := random.IntN(len(split))
		switch random.IntN(3) {
		case 0:
			split = slices.Insert(split, at, "inserted\n", "two\n")
		case 1:
			split = slices.Delete(split, at, at+1)
		default:
			split[at] = "changed " + split[at]
		}
		r.Write(name, strings.Join(split, ""))
	case 12: // a file becomes a folder
		name := pick()
		os.Remove(r.Path(name))
		r.Write(name+"/inside", lines(4, "\n"))
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
			upstream := repo{gittest.New(t)}
			for i := range 12 {
				mutate(random, upstream, i)
			}
			upstream.Write("keep", "kept\n")
			base := upstream.Commit("base")
			for i := range 5 {
				for j := range 4 {
					mutate(random, upstream, 100*i+j+50)
				}
				upstream.Commit(fmt.Sprintf("[MPS] Change %d with ünïcode\n\nA body\nof two lines.\n\nUpstream-Status: Pending", i))
			}
			series := upstream.series(base)

			am := upstream.clone(base)
			for _, patch := range series.Patches {
				mail := filepath.Join(t.TempDir(), "mail")
				require.NoError(t, os.WriteFile(mail, patch.Raw, 0o644))
				am.Git("am", "-q", "--keep-cr", "--keep-non-patch", mail)
			}
			ours := upstream.clone(base)
			require.One(ours.open().Apply(context.Background(), series, fork.Options{}, events.Discard))(t)
			format := "--format=%T %an <%ae> %aI %B"
			if want, got := am.Git("log", format, base+"..HEAD"), ours.Git("log", format, base+"..HEAD"); want != got {
				t.Errorf("commits differ\ngit am:\n%s\nmpsforge:\n%s", want, got)
			}
			require.Equal(t, ours.Git("status", "--porcelain"), "", "the work tree is not clean after apply")
			ours.Git("fsck", "--strict")
			require.One(ours.open().Unapply(context.Background(), series, fork.Options{}, events.Discard))(t)
			if head := ours.Git("rev-parse", "HEAD"); head != base {
				t.Errorf("after unapply HEAD is %s, the base is %s", head, base)
			}
			require.Equal(t, ours.Git("status", "--porcelain"), "", "the work tree is not clean after unapply")
		})
	}
}
