package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork"
	"mpsforge/internal/apt"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// These tests run export and port on PyTorch itself.

// runInProcess runs one command line and decodes its result; fine are the exit codes that are right.
func runInProcess[T any](t *testing.T, fine []int, args ...string) (outcome struct {
	ExitCode int    `json:"exit_code"`
	Message  string `json:"message"`
	Result   T      `json:"result"`
}) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(context.Background(), append([]string{"mpsforge"}, append(args, "--json", "--quiet")...), streams{out: &stdout, err: &stderr})
	if err := json.Unmarshal(stdout.Bytes(), &outcome); err != nil || !slices.Contains(fine, code) {
		t.Fatalf("mpsforge %s: exit code %d, %v\n%s%s", strings.Join(args, " "), code, err, stdout.String(), stderr.String())
	}
	return outcome
}

// tree291 gives a fresh clone of the cache's tree of v2.9.1 with its base recorded. Not every machine can get one: GitHub alone has it.
func tree291(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIP v2.9.1: -short")
	}
	cache := require.One(cacheDir())(t)
	source := filepath.Join(cache, "trees", "v2.9.1")
	if _, err := os.Stat(filepath.Join(source, ".git")); err != nil {
		t.Skipf("SKIP v2.9.1: the cache has no tree of it (%v); mpsforge fetch --baseline v2.9.1 --checkout %s gets it from GitHub", err, source)
	}
	base := runInProcess[fork.Status](t, []int{exitOK}, "status", "--checkout", source).Result.Base
	return cloneAt(t, source, base, "v2.9.1")
}

// cloneAt gives a fresh clone of a checkout at a commit, recorded as the base of a baseline.
func cloneAt(t *testing.T, source, commit, baseline string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	gitIn(t, ".", "clone", "-q", "--shared", "--no-checkout", source, dir)
	gitIn(t, dir, "checkout", "-q", "--detach", commit)
	runInProcess[any](t, []int{exitOK}, "fetch", "--baseline", baseline, "--from", dir)
	return dir
}

// copySeries copies the folder of a baseline's patches, so that a test may write it.
func copySeries(t *testing.T, baseline string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), baseline)
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("../../patches", baseline))))
	return dir
}

// exported is what this test reads of a fork.Exported.
type exported struct {
	Files   []string `json:"files"`
	Patches []struct {
		Name  string
		Paths map[string]string // what changed, by file
	} `json:"patches"`
}

// exportsWhatWasApplied applies the series and exports it: no byte may change, the cumulative diff must be proven.
func exportsWhatWasApplied(t *testing.T, baseline, dir string) {
	out := copySeries(t, baseline)
	runInProcess[any](t, []int{exitOK}, "apply", "--baseline", baseline, "--checkout", dir)
	found := runInProcess[exported](t, []int{exitOK}, "export", "--checkout", dir, "--out", out).Result
	if len(found.Files) > 0 || len(found.Patches) == 0 {
		t.Errorf("export after apply changes %v, patches: %d", found.Files, len(found.Patches))
	}
	if len(gitIn(t, dir, "status", "--porcelain")) > 0 {
		t.Error("export touched the work tree")
	}
	found = runInProcess[exported](t, []int{exitOK}, "export", "--checkout", dir, "--out", out, "--cumulative").Result
	require.Equal(t, found.Files, []string{patches.CumulativeFile}, "export --cumulative changes")
	runInProcess[any](t, []int{exitOK}, "lint", "--patches", filepath.Dir(out))
}

func TestRealTreeExportsWhatWasApplied(t *testing.T) {
	t.Run("v2.6.0", func(t *testing.T) {
		dir, _ := realTree(t)
		exportsWhatWasApplied(t, "v2.6.0", dir)
	})
	t.Run("v2.9.1", func(t *testing.T) { exportsWhatWasApplied(t, "v2.9.1", tree291(t)) })
}

// TestRealTreesPortBetweenBaselines does what the how-to "Add a PyTorch version" says, in both directions: port, then
// apply what was written to the other version, edit the commits, and export. Conflicts are resolved, and commits edited, as the
// series of the other version has it: the result is that series, byte for byte.
func TestRealTreesPortBetweenBaselines(t *testing.T) {
	newer := tree291(t)
	older, _ := realTree(t)
	trees := map[string]string{"v2.6.0": older, "v2.9.1": newer}
	for baseline, dir := range trees {
		runInProcess[any](t, []int{exitOK}, "apply", "--baseline", baseline, "--checkout", dir)
	}
	for from, to := range map[string]string{"v2.6.0": "v2.9.1", "v2.9.1": "v2.6.0"} {
		t.Run(from+" to "+to, func(t *testing.T) { portsToTheSeries(t, trees[from], to, trees[to]) })
	}
}

func portsToTheSeries(t *testing.T, source, to, target string) {
	series := require.One(patches.Load(patches.Embedded(), to))(t)
	applied := runInProcess[fork.Status](t, []int{exitOK}, "status", "--checkout", target).Result
	commits := map[string]string{}
	for _, patch := range applied.Patches {
		commits[patch.Name] = patch.Commit
	}
	out := filepath.Join(t.TempDir(), to)
	ported := runInProcess[fork.Ported](t, []int{exitOK, exitConflict}, "port", "--checkout", source, "--to", to, "--from", target, "--out", out)
	files, places := 0, 0
	for ported.ExitCode == exitConflict {
		stopped := slices.IndexFunc(ported.Result.Patches, func(p fork.PortedPatch) bool { return p.Outcome == fork.PortConflicts })
		for _, conflict := range ported.Result.Conflicts {
			name := ported.Result.Patches[stopped].Name
			t.Logf("%s: conflict in %s: %s, places: %d", name, conflict.Path, conflict.Why, len(conflict.Regions))
			if len(conflict.Regions) == 0 {
				t.Errorf("%s: no side is shown", conflict.Path)
			}
			files, places = files+1, places+len(conflict.Regions)
			resolve(t, filepath.Join(ported.Result.Fix, conflict.Path), target, commits[name]+":"+conflict.Path)
		}
		ported = runInProcess[fork.Ported](t, []int{exitOK, exitConflict}, "port", "--checkout", source, "--continue")
	}
	outcomes := map[fork.PortOutcome]int{}
	for _, patch := range ported.Result.Patches {
		outcomes[patch.Outcome]++
	}
	t.Logf("outcomes: %v, files in conflict: %d, places: %d", outcomes, files, places)
	if status := runInProcess[fork.Status](t, []int{exitOK}, "status", "--checkout", source); status.Message != "applied" {
		t.Errorf("status after the port: %s", status.Message)
	}

	there := cloneAt(t, target, applied.Base, to)
	runInProcess[any](t, []int{exitOK}, "apply", "--baseline", to, "--checkout", there, "--patches", filepath.Dir(out))
	made := strings.Fields(gitIn(t, there, "rev-list", "--reverse", applied.Base+"..HEAD"))
	gitIn(t, there, "reset", "-q", "--hard", applied.Base)
	for i, patch := range series.Patches {
		gitIn(t, there, "read-tree", "-u", "--reset", commits[patch.Name]+"^{tree}")
		gitIn(t, there, "commit", "-q", "-C", made[i])
	}
	for _, patch := range runInProcess[exported](t, []int{exitOK}, "export", "--baseline", to, "--checkout", there, "--out", out).Result.Patches {
		if len(patch.Paths) > 0 {
			t.Logf("%s was edited after the port: %v", patch.Name, patch.Paths)
		}
	}
	names := []string{"series", "baseline.json", "digests.json", "blobs.json"}
	for _, patch := range series.Patches {
		names = append(names, patches.PatchFile(patch.Name))
	}
	for _, name := range names {
		got, gotErr := os.ReadFile(filepath.Join(out, name))
		want, err := os.ReadFile(filepath.Join("../../patches", to, name))
		if err := errors.Join(gotErr, err); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what patches/%s has (%v)", name, to, err)
		}
	}
	if written, err := os.ReadDir(out); err != nil || len(written) != len(names) {
		t.Errorf("written: %v (%v), wanted: %v", written, err, names)
	}
}

// resolve makes a file what an object of another checkout is, or removes it if there is none.
func resolve(t *testing.T, file, dir, object string) {
	t.Helper()
	err := os.Remove(file)
	if content, none := exec.Command("git", "-C", dir, "cat-file", "blob", object).Output(); err == nil && none == nil {
		err = os.WriteFile(file, content, 0o644)
	}
	require.NoError(t, err)
}

// debianTree gives a checkout of a PyTorch that Debian serves, kept in the cache, and its commit.
func debianTree(t *testing.T, name string, source patches.Source, from string) (dir, commit string) {
	t.Helper()
	cache := require.One(cacheDir())(t)
	series := &patches.Series{Baseline: patches.Baseline{Schema: 1, Name: name, Tag: name, Source: &source}}
	dir = fork.CachedTree(cache, name)
	fetched, err := fork.Fetch(context.Background(), series, fork.FetchOptions{Dir: dir, From: from, Cache: cache}, events.Discard)
	if errors.Is(err, fork.ErrEnvironment) || errors.Is(err, fork.ErrUnavailable) {
		t.Skipf("SKIP %s: Debian's source package of it is not available here: %v", name, err)
	}
	require.NoError(t, err)
	return dir, fetched.Base
}

// Debian bookworm has PyTorch 1.13.1, which lacks half of the files that the series changes: a hard case.
func TestRealTreePortsToBookworm(t *testing.T) {
	dir, series := realTree(t)
	from, commit := debianTree(t, "v1.13.1", patches.Source{Suite: "bookworm", Package: "pytorch", Version: "1.13.1+dfsg-4",
		File: "pytorch_1.13.1+dfsg.orig.tar.xz", SHA256: "d0355588b8528566d477e6ebf1b4d9d036a6fd75711339f66b27472ce5879dc7"}, "")
	portsLikeCherryPick(t, dir, series, from, commit)
}

// Debian's sid has the newest PyTorch of Debian, where a patch may be upstream already.
func TestRealTreePortsToSid(t *testing.T) {
	dir, series := realTree(t)
	cache := require.One(cacheDir())(t)
	ctx := context.Background()
	private := filepath.Join(cache, "debian", "sid")
	download := t.TempDir()
	require.NoError(t, os.MkdirAll(private, 0o755))
	suite, err := apt.Open(ctx, private, "sid")
	if err == nil {
		err = errors.Join(suite.Update(ctx), suite.Source(ctx, "pytorch", download))
	}
	if err != nil {
		t.Skipf("SKIP sid: its PyTorch is not available here: %v", err)
	}
	tarballs, err := filepath.Glob(filepath.Join(download, "pytorch_*.orig.tar.*"))
	if err != nil || len(tarballs) != 1 {
		t.Fatalf("apt downloaded %v (%v), want one tarball", tarballs, err)
	}
	content := require.One(os.ReadFile(tarballs[0]))(t)
	name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(tarballs[0]), "pytorch_"), "+")
	t.Logf("sid serves PyTorch %s", name)
	source := patches.Source{File: filepath.Base(tarballs[0]), SHA256: fmt.Sprintf("%x", sha256.Sum256(content))}
	from, commit := debianTree(t, "v"+name, source, tarballs[0])
	portsLikeCherryPick(t, dir, series, from, commit)
}

// portsLikeCherryPick ports the series from a tree to a commit of another and holds the report against git cherry-pick of
// the same commits: the same trees, or conflicts in the same files.
func portsLikeCherryPick(t *testing.T, dir string, series *patches.Series, from, commit string) {
	runInProcess[any](t, []int{exitOK}, "apply", "--baseline", "v2.6.0", "--checkout", dir)
	commits := strings.Fields(gitIn(t, dir, "rev-list", "--reverse", series.Baseline.Commit+"..HEAD"))
	out := filepath.Join(t.TempDir(), "ported")
	ported := runInProcess[fork.Ported](t, []int{exitOK, exitConflict}, "port", "--checkout", dir, "--to", commit, "--from", from, "--out", out).Result
	gitIn(t, dir, "checkout", "-q", "--detach", commit)
	for i, patch := range ported.Patches {
		t.Logf("%s: %s %v", patch.Name, patch.Outcome, patch.Present)
		before := gitIn(t, dir, "rev-parse", "HEAD^{tree}")
		switch patch.Outcome {
		case fork.PortNotTried:
		case fork.PortConflicts:
			unmerged := someone(t, dir).CherryPick(commits[i])
			var reported []string
			for _, conflict := range ported.Conflicts {
				t.Logf("  %s: %s", conflict.Path, conflict.Why)
				reported = append(reported, conflict.Path)
				if len(conflict.Regions) == 0 {
					t.Errorf("%s: no side is shown", conflict.Path)
				}
				if lacks := gitIn(t, dir, "ls-tree", "-r", commit, "--", conflict.Path) == ""; lacks != (conflict.Why == "the version has no such file") {
					t.Errorf("%s: %s, but that the version lacks it is %v", conflict.Path, conflict.Why, lacks)
				}
			}
			if !slices.Equal(unmerged, reported) {
				t.Errorf("%s conflicts in %v, git cherry-pick in %v", patch.Name, reported, unmerged)
			}
		case fork.PortUpstream:
			if unmerged := someone(t, dir).CherryPick(commits[i]); len(unmerged) == 0 && gitIn(t, dir, "rev-parse", "HEAD^{tree}") != before {
				t.Errorf("%s is said to be upstream, git cherry-pick changes the tree", patch.Name)
			}
		default:
			if unmerged := someone(t, dir).CherryPick(commits[i]); len(unmerged) > 0 {
				t.Errorf("%s is %s, git cherry-pick conflicts in %v", patch.Name, patch.Outcome, unmerged)
			} else if got, want := gitIn(t, dir, "rev-parse", patch.Commit+"^{tree}"), gitIn(t, dir, "rev-parse", "HEAD^{tree}"); got != want {
				t.Errorf("%s makes tree %s, git cherry-pick %s", patch.Name, got, want)
			}
		}
	}
}
