// Package gittest gives tests a git repository, in which git's own program runs. What reads repositories without it is in fork/git, not here.
package gittest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// A Repo is a folder with a repository. Without Env, git has the user's configuration.
type Repo struct {
	T      testing.TB
	Dir    string
	Config []string // for each command, such as core.quotepath=off
	Env    []string // for each command
}

// New makes an empty repository, where commits have the same author, and the same date of the author, on each machine.
func New(t testing.TB, config ...string) Repo {
	t.Helper()
	r := Repo{t, t.TempDir(), config, []string{"LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_AUTHOR_NAME=Ada Lovelace", "GIT_AUTHOR_EMAIL=ada@example.invalid", "GIT_AUTHOR_DATE=2026-11-21T10:11:12 +0530",
		"GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.invalid"}}
	r.Git("init", "-q", "-b", "main")
	return r
}

// Run gives git's standard output, and an error that holds what it wrote to the other.
func (r Repo) Run(stdin []byte, args ...string) ([]byte, error) {
	all := []string{"-C", r.Dir}
	for _, setting := range r.Config {
		all = append(all, "-c", setting)
	}
	command := exec.Command("git", append(all, args...)...)
	command.Stdin, command.Env = bytes.NewReader(stdin), append(os.Environ(), r.Env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%v: %w\n%s%s", command, err, output, &stderr)
	}
	return output, err
}

// Raw is git's standard output; an error ends the test.
func (r Repo) Raw(stdin []byte, args ...string) []byte {
	r.T.Helper()
	return require.One(r.Run(stdin, args...))(r.T)
}

// Git is Raw without white space around it.
func (r Repo) Git(args ...string) string {
	r.T.Helper()
	return strings.TrimSpace(string(r.Raw(nil, args...)))
}

// Path is a file's.
func (r Repo) Path(name string) string { return filepath.Join(r.Dir, filepath.FromSlash(name)) }

// Write writes a file with its folders.
func (r Repo) Write(name, content string) {
	r.T.Helper()
	require.File(r.T, r.Path(name), content)
}

// Read reads a file.
func (r Repo) Read(name string) string {
	r.T.Helper()
	return string(require.One(os.ReadFile(r.Path(name)))(r.T))
}

// Commit commits everything that is there, and gives the commit.
func (r Repo) Commit(message string) string {
	r.T.Helper()
	r.Git("add", "-A", "-f")
	r.Git("commit", "-q", "--allow-empty", "-m", message)
	return r.Git("rev-parse", "HEAD")
}

// CherryPick picks a commit. Where that conflicts, it is undone, and these are the paths.
func (r Repo) CherryPick(commit string) (conflicts []string) {
	r.T.Helper()
	_, err := r.Run(nil, "cherry-pick", "--allow-empty", "--keep-redundant-commits", commit)
	if err == nil {
		return nil
	}
	if conflicts = strings.Fields(r.Git("diff", "--name-only", "--diff-filter=U")); len(conflicts) == 0 {
		r.T.Fatal(err)
	}
	r.Git("cherry-pick", "--abort")
	return conflicts
}
