package fork_test

import (
	"bytes"
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

// edit makes one random change of text, of the kinds that a series holds.
func edit(random *rand.Rand, r repo, n int) {
	names := slices.DeleteFunc(strings.Split(r.Git("ls-files"), "\n"), func(name string) bool {
		_, err := os.Stat(r.Path(name))
		return err != nil
	})
	name := names[random.IntN(len(names))]
	lines := strings.SplitAfter(r.Read(name), "\n")
	at := random.IntN(min(len(lines), 25)) // near each other, so that changes meet
	switch random.IntN(14) {
	case 0:
		r.Write(fmt.Sprintf("dir%d/new%d", random.IntN(2), n), strings.Repeat(fmt.Sprintf("new %d\n", n), 1+random.IntN(5)))
	case 1:
		if len(names) > 2 {
			os.Remove(r.Path(name))
		}
	case 2:
		require.NoError(r.T, os.Chmod(r.Path(name), 0o755))
	case 3, 4, 5, 6:
		r.Write(name, strings.Join(slices.Insert(lines, at, fmt.Sprintf("inserted %d\n", n)), ""))
	case 7, 8:
		r.Write(name, strings.Join(slices.Delete(lines, at, min(at+2, len(lines))), ""))
	default:
		lines[at] = fmt.Sprintf("changed %d\n", n)
		r.Write(name, strings.Join(lines, ""))
	}
}

// writeSeries makes the commits from base to HEAD a series in a folder, and gives it.
func writeSeries(t *testing.T, r repo, base, dir string) *patches.Series {
	t.Helper()
	name := filepath.Base(dir)
	empty := &patches.Series{Baseline: patches.Baseline{Schema: 1, Name: name, Tag: name, Commit: base, Absent: []string{}, Touched: map[string]*string{}}}
	require.One(r.open().Export(context.Background(), empty, fork.ExportOptions{Dir: dir}, events.Discard))(t)
	return require.One(patches.Load(os.DirFS(filepath.Dir(dir)), name))(t)
}

// cherryPick picks a commit and gives the tree; "" for a conflict, which is then undone.
func (r repo) cherryPick(commit string) string {
	r.T.Helper()
	if len(r.CherryPick(commit)) > 0 {
		return ""
	}
	return r.Git("rev-parse", "HEAD^{tree}")
}

// TestPortAgreesWithCherryPick carries random series over random histories, some of whose versions hold patches of the
// series, and holds every outcome against git cherry-pick and against what is known of the history.
func TestPortAgreesWithCherryPick(t *testing.T) {
	histories := 40
	if testing.Short() {
		histories = 6
	}
	seen := make(chan fork.PortOutcome, histories*8)
	t.Run("histories", func(t *testing.T) {
		for seed := range histories {
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				t.Parallel()
				portHistory(t, rand.New(rand.NewPCG(uint64(seed), 2)), seen)
			})
		}
	})
	close(seen)
	count := map[fork.PortOutcome]int{}
	for outcome := range seen {
		count[outcome]++
	}
	t.Log(count)
	for _, outcome := range []fork.PortOutcome{fork.PortUnchanged, fork.PortMoved, fork.PortMerged, fork.PortUpstream, fork.PortConflicts} {
		if count[outcome] == 0 && !testing.Short() {
			t.Errorf("no history led to the outcome %q", outcome)
		}
	}
}

func portHistory(t *testing.T, random *rand.Rand, seen chan<- fork.PortOutcome) {
	ctx := context.Background()
	upstream := repo{gittest.New(t)}
	for i := range 2 {
		var text strings.Builder
		for line := range 30 + random.IntN(30) {
			fmt.Fprintf(&text, "file %d line %d\n", i, line)
		}
		upstream.Write(fmt.Sprintf("dir%d/file%d", i%2, i), text.String())
	}
	base := upstream.Commit("base")
	var commits []string
	for i := range 5 {
		for j := range 1 + random.IntN(2) {
			edit(random, upstream, 10*i+j+100)
		}
		if upstream.Git("status", "--porcelain") != "" {
			commits = append(commits, upstream.Commit(fmt.Sprintf("[MPS] Change %d\n\nA body.\n\nUpstream-Status: Pending", i)))
		}
	}
	series := writeSeries(t, upstream, base, filepath.Join(t.TempDir(), "v2.9.1"))

	upstream.Git("checkout", "-q", "-b", "next", base)
	took := map[string]bool{} // commits that the version holds
	for i := range random.IntN(3) {
		edit(random, upstream, i)
		upstream.Commit("other work")
		if pick := commits[random.IntN(len(commits))]; random.IntN(2) == 0 && !took[pick] {
			took[pick] = upstream.cherryPick(pick) != ""
		}
	}
	target := upstream.Git("rev-parse", "HEAD")
	upstream.Git("checkout", "-q", "main")

	status := upstream.Git("status", "--porcelain", "--branch")
	dir := filepath.Join(t.TempDir(), "next")
	empty := &patches.Series{Baseline: patches.Baseline{Schema: 1, Name: "next", Tag: "next", Absent: []string{}, Touched: map[string]*string{}}}
	ported := require.One(upstream.open().Port(ctx, series, empty, fork.PortOptions{To: target, Dir: dir}, events.Discard))(t)
	if now := upstream.Git("status", "--porcelain", "--branch"); now != status {
		t.Errorf("the work tree was touched:\n%s\nwas\n%s", now, status)
	}

	oracle := upstream.clone(target)
	oracle.Git("fetch", "-q", upstream.Dir, "main")
	stopped := false
	for i, patch := range ported.Patches {
		seen <- patch.Outcome
		before := oracle.Git("rev-parse", "HEAD^{tree}")
		tree := ""
		if !stopped {
			tree = oracle.cherryPick(commits[i])
		}
		switch patch.Outcome {
		case fork.PortNotTried:
			if !stopped {
				t.Errorf("%s was not tried, but no patch before it conflicts", patch.Name)
			}
		case fork.PortConflicts:
			stopped = true
			require.Equal(t, tree, "", patch.Name, "conflicts, git cherry-pick makes tree")
			for _, conflict := range ported.Conflicts {
				if len(conflict.Regions) == 0 {
					t.Errorf("the conflict in %s shows no sides", conflict.Path)
				}
			}
		case fork.PortUpstream:
			if tree != "" && tree != before && !took[commits[i]] {
				t.Errorf("%s is said to be upstream, git cherry-pick changes the tree", patch.Name)
			}
			if tree != before { // what cherry-pick made does not count
				oracle.Git("reset", "-q", "--hard", map[bool]string{true: "HEAD~1", false: "HEAD"}[tree != ""])
			}
		default:
			got := upstream.Git("rev-parse", patch.Commit+"^{tree}")
			if len(patch.Present) == 0 && tree != got || tree != "" && tree != got {
				t.Errorf("%s is %s as tree %s, git cherry-pick makes %q", patch.Name, patch.Outcome, got, tree)
			}
			if tree == "" { // a conflict in a part that is upstream
				oracle.Git("fetch", "-q", upstream.Dir, patch.Commit)
				oracle.Git("reset", "-q", "--hard", patch.Commit)
			}
			if tree == before {
				t.Errorf("%s is %s, but git cherry-pick finds nothing to change", patch.Name, patch.Outcome)
			}
		}
	}
	if stopped {
		return
	}
	// What was written goes on there, gives the same trees, and comes back as the same files.
	fresh := upstream.clone(target)
	written := require.One(patches.Load(os.DirFS(filepath.Dir(dir)), "next"))(t)
	require.One(fresh.open().Apply(ctx, written, fork.Options{}, events.Discard))(t)
	for i, patch := range ported.Patches {
		if patch.Outcome == fork.PortUnchanged && !bytes.Equal(patchNamed(written, patch.Name).Raw, series.Patches[i].Raw) {
			t.Errorf("%s is said to be unchanged, but its file differs", patch.Name)
		}
	}
	exported, err := fresh.open().Export(ctx, written, fork.ExportOptions{Dir: dir, Check: true}, events.Discard)
	if err != nil || len(exported.Files) > 0 {
		t.Errorf("export after apply would change %v (%v)", exported, err)
	}
}

func patchNamed(series *patches.Series, name string) *patches.Patch {
	return series.Patches[slices.IndexFunc(series.Patches, func(p *patches.Patch) bool { return p.Name == name })]
}
