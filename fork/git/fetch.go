package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mpsforge/internal/run"
	"mpsforge/internal/words"
)

// Answers asks a repository for a ref. The error says in a few words why the answer is none.
func Answers(ctx context.Context, url, ref string, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := runCommand(limited, newCommand("", "ls-remote", "--exit-code", "--", url, ref))
	failure := (*run.Error)(nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("nothing came within %v", limit)
	case run.ExitCode(err) == 2: // git's exit code for an answer without the ref
		return fmt.Errorf("it has no %s", ref)
	case errors.As(err, &failure):
		for line := range strings.Lines(failure.Stderr) { // the first says why; advice follows
			if said, fatal := strings.CutPrefix(strings.TrimSpace(line), "fatal: "); fatal {
				return errors.New(said)
			}
		}
		return errors.New(cmp.Or(words.LastLines(failure.Stderr, 1), failure.Err.Error()))
	}
	return err
}

// Origin is the address that the repository was fetched from, or "".
func (r *Repository) Origin(ctx context.Context) (string, error) {
	output, err := runCommand(ctx, r.command("config", "--default=", "remote.origin.url"))
	if err != nil {
		return "", fmt.Errorf("read the address that %s was fetched from: %w", r.WorkTree, err)
	}
	return strings.TrimSpace(string(output)), nil
}

// Shallow lists the commits whose parents are not in the repository.
func (r *Repository) Shallow() ([]string, error) {
	data, err := os.ReadFile(filepath.Join(r.CommonDir, "shallow"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read where the history ends: %w", err)
	}
	return strings.Fields(string(data)), nil
}

// AllRefs gives each ref with the object that it leads to; a tag's is the commit.
func (r *Repository) AllRefs(ctx context.Context) (map[string]string, error) {
	output, err := runCommand(ctx, r.command("for-each-ref", "--format=%(refname) %(objectname) %(*objectname)"))
	if err != nil {
		return nil, fmt.Errorf("list the refs of %s: %w", r.WorkTree, err)
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		refs[fields[0]] = fields[len(fields)-1]
	}
	return refs, nil
}

// FetchTag gets one tag without history from a remote repository. Git's progress goes to progress, in its own words.
func (r *Repository) FetchTag(ctx context.Context, url, ref string, progress io.Writer) error {
	// Submodules with relative addresses are found through the remote that the work tree names. It is recorded first, so
	// that it is known whenever the tag is there.
	if _, err := runCommand(ctx, r.command("config", "remote.origin.url", url)); err != nil {
		return fmt.Errorf("record the remote %s: %w", url, err)
	}
	return r.report(ctx, progress, "fetch "+ref+" from "+url, "fetch", "--progress", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", url,
		ref+":"+ref)
}

// report runs a command of git's that says how far it is; what says in words what it does.
func (r *Repository) report(ctx context.Context, progress io.Writer, what string, args ...string) error {
	command := r.command(args...)
	command.Stderr = progress
	if _, err := runCommand(ctx, command); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// FetchCommit gets one commit without history from a repository. A ref, such as refs/heads/main, is made for it unless ref is empty.
func (r *Repository) FetchCommit(ctx context.Context, from, commit, ref string, progress io.Writer) error {
	what := commit
	if ref != "" {
		what += ":" + ref
	}
	return r.report(ctx, progress, "fetch "+commit+" from "+from, "-c", "protocol.version=2", "fetch", "--progress", "--depth=1", "--no-tags",
		"--no-write-fetch-head", "--update-head-ok", "--no-recurse-submodules", "--", from, what)
}

// ResolveCommit gives the commit that a revision names.
func (r *Repository) ResolveCommit(ctx context.Context, revision string) (string, error) {
	output, err := runCommand(ctx, r.command("rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}"))
	if failure := (*run.Error)(nil); errors.As(err, &failure) && failure.ExitCode == 1 && failure.Stderr == "" {
		return "", fmt.Errorf("no commit is called %s", revision)
	}
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
	return r.report(ctx, progress, "check out "+ref+" into "+r.WorkTree, args...)
}

// UpdateSubmodules gets all submodules, without history.
func (r *Repository) UpdateSubmodules(ctx context.Context, progress io.Writer) error {
	return r.report(ctx, progress, "get the submodules of "+r.WorkTree, "submodule", "update", "--init", "--recursive", "--depth=1", "--jobs=4",
		"--progress")
}

// CloneShared makes a repository in dir that reads this one's objects where they are, and has no work tree yet. This one
// is not written to.
func (r *Repository) CloneShared(ctx context.Context, dir string) (*Repository, error) {
	if _, err := runCommand(ctx, newCommand("", "clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--template=", "--", r.WorkTree,
		dir)); err != nil {
		return nil, fmt.Errorf("clone %s: %w", r.WorkTree, err)
	}
	return Open(ctx, dir, nil)
}
