package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mpsforge/internal/run"
)

// apart prepares a git command that sees the repository's objects and nothing else of it: a folder of its own is used instead of
// the git directory, so that no configuration, attribute or replacement of the user, the system or the repository
// changes what it prints. The returned function removes the folder.
//
// Hunk headings depend on attributes: Apple's git takes the "objc" driver for .mm where others take none.
func (r *Repository) apart(args ...string) (run.Command, func(), error) {
	dir, err := os.MkdirTemp("", "mpsforge-git-")
	if err != nil {
		return run.Command{}, nil, fmt.Errorf("make a folder for git: %w", err)
	}
	remove := func() { os.RemoveAll(dir) }
	for _, folder := range []string{"objects", "refs"} { // git takes a folder without them for no repository
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, folder), 0o755))
	}
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o644)); err != nil {
		remove()
		return run.Command{}, nil, fmt.Errorf("make a folder for git: %w", err)
	}
	command := newCommand(dir, args...)
	command.Env = append(withoutConfiguration(command.Env), "GIT_DIR="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_OBJECT_DIRECTORY="+filepath.Join(r.CommonDir, "objects"))
	return command, remove, nil
}

// withoutConfiguration leaves out what configures git through the environment.
func withoutConfiguration(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		if !strings.HasPrefix(entry, "GIT_CONFIG_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// CommitPair is two commits to compare.
type CommitPair struct{ Old, New string }

// Diffs gives the diff of each pair of commits, in the one form that patch files have. It is shared between two
// processes when that pays for the start of the second.
func (r *Repository) Diffs(ctx context.Context, pairs []CommitPair) ([][]byte, error) {
	if len(pairs) < 4 {
		return r.diffs(ctx, pairs)
	}
	type half struct {
		diffs [][]byte
		err   error
	}
	other := make(chan half, 1)
	middle := len(pairs) / 2
	go func() {
		diffs, err := r.diffs(ctx, pairs[middle:])
		other <- half{diffs, err}
	}()
	diffs, err := r.diffs(ctx, pairs[:middle])
	rest := <-other
	return append(diffs, rest.diffs...), errors.Join(err, rest.err)
}

func (r *Repository) diffs(ctx context.Context, pairs []CommitPair) ([][]byte, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	command, remove, err := r.apart("diff-tree", "--stdin", "-r", "-p", "--full-index", "--no-renames", "--unified=3",
		"--inter-hunk-context=0", "--diff-algorithm=myers", "--indent-heuristic", "--no-ext-diff", "--no-textconv")
	if err != nil {
		return nil, err
	}
	defer remove()
	var in strings.Builder
	for _, pair := range pairs {
		fmt.Fprintf(&in, "%s %s\n", pair.New, pair.Old) // a commit and the parent to compare it with
	}
	command.Stdin = strings.NewReader(in.String())
	output, err := runCommand(ctx, command)
	if err != nil {
		return nil, fmt.Errorf("compare commits: %w", err)
	}
	// Each diff is headed by the commit's id, or missing with it when nothing differs; no line of a diff begins with one.
	diffs := make([][]byte, len(pairs))
	for i := len(pairs) - 1; i >= 0; i-- {
		head := []byte(pairs[i].New + "\n")
		at := bytes.LastIndex(output, append([]byte("\n"), head...)) + 1
		if at > 0 || bytes.HasPrefix(output, head) {
			diffs[i], output = output[at+len(head):], output[:at]
		}
	}
	if len(output) > 0 {
		return nil, fmt.Errorf("compare commits: git diff-tree printed %.80q first", output)
	}
	return diffs, nil
}
