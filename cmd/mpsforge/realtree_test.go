package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/gittest"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// peakLimit is the most memory that lint, apply and status may use on the real tree, in KiB.
const peakLimit = 100 << 10

// realTree gives a fresh work tree of PyTorch 2.6.0, whose source is fetched once into the cache. It skips by name when
// no mirror serves it.
func realTree(t *testing.T) (dir string, series *patches.Series) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIP real tree: -short")
	}
	cache := require.One(cacheDir())(t)
	source, series := hosttest.Tree(t, cache)
	dir = filepath.Join(t.TempDir(), "tree")
	gitIn(t, ".", "clone", "-q", "--shared", "--no-checkout", source, dir)
	gitIn(t, dir, "checkout", "-q", "--detach", series.Baseline.Commit)
	return dir, series
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return someone(t, dir).Git(args...)
}

// someone is a repository where the committer has a name, whatever the user's configuration.
func someone(t testing.TB, dir string) gittest.Repo {
	return gittest.Repo{T: t, Dir: dir, Config: []string{"user.name=a", "user.email=a@example.invalid"}}
}

// TestRealTreeGetsTheTreeOfGitAm runs the commands on PyTorch itself: the tree after apply is that of git am, the memory
// stays small, and after unapply nothing is left.
func TestRealTreeGetsTheTreeOfGitAm(t *testing.T) {
	dir, series := realTree(t)
	binary := filepath.Join(t.TempDir(), "mpsforge")
	if output, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	mpsforge := func(args ...string) map[string]any {
		t.Helper()
		command := exec.Command(binary, append(args, "--json")...)
		var stderr bytes.Buffer
		command.Stderr = &stderr
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", command, err, stderr.String())
		}
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok && usage.Maxrss > peakLimit {
			t.Errorf("%s used %d KiB of memory, the limit is %d", args[0], usage.Maxrss, peakLimit)
		}
		var outcome map[string]any
		if err := json.Unmarshal(output, &outcome); err != nil {
			t.Fatalf("%s --json: %v\n%s", args[0], err, output)
		}
		return outcome
	}
	for _, patch := range series.Patches {
		mail := filepath.Join(t.TempDir(), patch.Name)
		require.NoError(t, os.WriteFile(mail, patch.Raw, 0o644))
		gitIn(t, dir, "am", "-q", "--keep-cr", "--keep-non-patch", mail)
	}
	want := gitIn(t, dir, "rev-parse", "HEAD^{tree}")
	gitIn(t, dir, "reset", "-q", "--hard", series.Baseline.Commit)

	mpsforge("lint")
	mpsforge("apply", "--baseline", "v2.6.0", "--checkout", dir)
	if got := gitIn(t, dir, "rev-parse", "HEAD^{tree}"); got != want {
		t.Errorf("the tree after apply is %s, git am makes %s", got, want)
	}
	status := mpsforge("status", "--checkout", dir)
	require.Equal(t, status["message"], "applied", "status after apply")
	require.Equal(t, gitIn(t, dir, "status", "--porcelain"), "", "git finds changes after apply")
	mpsforge("unapply", "--checkout", dir)
	require.Equal(t, gitIn(t, dir, "rev-parse", "HEAD"), series.Baseline.Commit, "HEAD after unapply")
	require.Equal(t, gitIn(t, dir, "status", "--porcelain"), "", "git finds changes after unapply")
}
