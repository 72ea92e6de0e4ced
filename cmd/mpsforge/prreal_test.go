package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/ci"
)

// TestRealTreeBecomesAStack makes the pull requests of PyTorch itself: the last branch has the tree that apply makes,
// the commits are by the author that was named, and HEAD stays where it is.
func TestRealTreeBecomesAStack(t *testing.T) {
	dir, series := realTree(t)
	t.Setenv("PATH", withoutLintrunner(t)) // upstream's linters take minutes, and install tools
	runInProcess[any](t, []int{exitOK}, "apply", "--baseline", "v2.6.0", "--checkout", dir)
	want, head := gitIn(t, dir, "rev-parse", "HEAD^{tree}"), gitIn(t, dir, "rev-parse", "HEAD")
	out := filepath.Join(t.TempDir(), "texts")

	made := runInProcess[ci.Prepared](t, []int{exitOK}, "pr", "--checkout", dir, "--issue", "1", "--out", out, "--author", "A. Person <a@example.org>").Result
	if len(made.Requests) != len(series.Patches) {
		t.Fatalf("pull requests: %d, patches: %d", len(made.Requests), len(series.Patches))
	}
	last := made.Requests[len(made.Requests)-1].Branch
	if got := gitIn(t, dir, "rev-parse", last+"^{tree}"); got != want {
		t.Errorf("%s has tree %s, apply makes %s", last, got, want)
	}
	if authors := gitIn(t, dir, "log", "--format=%an <%ae>", series.Baseline.Commit+".."+last); strings.Count(authors,
		"A. Person <a@example.org>") != len(series.Patches) {
		t.Errorf("authors:\n%s", authors)
	}

	if gitIn(t, dir, "rev-parse", "HEAD") != head || gitIn(t, dir, "status", "--porcelain") != "" {
		t.Error("pr touched HEAD or the work tree")
	}
	for _, patch := range runInProcess[ci.Status](t, []int{exitOK}, "pr", "status", "--checkout", dir, "--onto", series.Baseline.Commit).Result.Patches {
		if patch.TooLarge || patch.Outcome != "unchanged" {
			t.Errorf("%s", patch)
		}
	}
}

// withoutLintrunner is PATH without the folders that have lintrunner.
func withoutLintrunner(t *testing.T) string {
	t.Helper()
	var kept []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if found, err := filepath.Glob(filepath.Join(dir, "lintrunner")); err != nil || len(found) == 0 {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}
