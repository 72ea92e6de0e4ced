package git

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// FetchTag gets one tag without history from a remote repository, unless it is here already. Git's progress goes to
// progress, in its own words.
func (r *Repository) FetchTag(ctx context.Context, url, ref string, progress io.Writer) error {
	if _, err := r.ResolveCommit(ctx, ref); err == nil {
		return nil
	}
	command := r.command("fetch", "--progress", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", url, ref+":"+ref)
	command.Stderr = progress
	if _, err := runCommand(ctx, command); err != nil {
		return fmt.Errorf("fetch %s from %s: %w", ref, url, err)
	}
	// Submodules with relative addresses are found through the remote that the work tree names.
	if _, err := runCommand(ctx, r.command("config", "remote.origin.url", url)); err != nil {
		return fmt.Errorf("record the remote %s: %w", url, err)
	}
	return nil
}

// FetchCommit gets one commit without history from a repository. No ref is made.
func (r *Repository) FetchCommit(ctx context.Context, from, commit string, progress io.Writer) error {
	command := r.command("-c", "protocol.version=2", "fetch", "--progress", "--depth=1", "--no-tags", "--no-write-fetch-head",
		"--no-recurse-submodules", "--", from, commit)
	command.Stderr = progress
	if _, err := runCommand(ctx, command); err != nil {
		return fmt.Errorf("fetch %s from %s: %w", commit, from, err)
	}
	return nil
}

// ResolveCommit gives the commit that a revision names.
func (r *Repository) ResolveCommit(ctx context.Context, revision string) (string, error) {
	output, err := runCommand(ctx, r.command("rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}"))
	if err != nil {
		return "", fmt.Errorf("find %s: %w", revision, err)
	}
	return strings.TrimSpace(string(output)), nil
}

// CheckOut makes the work tree what ref is, overwriting what is there: for repositories that this program made. A
// branch becomes the current one, any other ref detaches HEAD.
func (r *Repository) CheckOut(ctx context.Context, ref string, progress io.Writer) error {
	args := []string{"checkout", "--progress", "--force"}
	if branch, isBranch := strings.CutPrefix(ref, "refs/heads/"); isBranch {
		args = append(args, branch)
	} else {
		args = append(args, "--detach", ref)
	}
	command := r.command(args...)
	command.Stderr = progress
	if _, err := runCommand(ctx, command); err != nil {
		return fmt.Errorf("check out %s into %s: %w", ref, r.WorkTree, err)
	}
	return nil
}

// UpdateSubmodules gets all submodules, without history.
func (r *Repository) UpdateSubmodules(ctx context.Context, progress io.Writer) error {
	command := r.command("submodule", "update", "--init", "--recursive", "--depth=1", "--jobs=4", "--progress")
	command.Stderr = progress
	if _, err := runCommand(ctx, command); err != nil {
		return fmt.Errorf("get the submodules of %s: %w", r.WorkTree, err)
	}
	return nil
}

// CloneShared makes a repository in dir that reads this one's objects where they are, and has no work tree yet. This one
// is not written to.
func (r *Repository) CloneShared(ctx context.Context, dir string) (*Repository, error) {
	if _, err := runCommand(ctx, newCommand("", "clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--template=", "--", r.WorkTree, dir)); err != nil {
		return nil, fmt.Errorf("clone %s: %w", r.WorkTree, err)
	}
	return Open(ctx, dir, nil)
}
