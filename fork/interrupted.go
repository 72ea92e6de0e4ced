package fork

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mpsforge/fork/git"
	"mpsforge/internal/fault"
	"mpsforge/patches"
)

// staging is the folder, inside that of the checkout, where a fetch makes .git before it is moved into its place, and
// where .git is removed. So a .git in its place is always a whole one with a record, and what a kill leaves here is of
// no use to anybody.
const staging = ".mpsforge-fetch"

// InterruptedError says that the last run on a checkout was cut off, and what to do about it. It is an ErrInterrupted.
type InterruptedError struct {
	Command  string // "apply", "unapply" or "fetch"
	Baseline string // empty when the fetch had recorded nothing yet
	Checkout string
}

// Next is the command that ends the interrupted run.
func (e *InterruptedError) Next() string {
	if e.Command != "fetch" {
		return CommandOn(e.Checkout, "recover")
	}
	if e.Baseline != "" {
		return CommandOn(e.Checkout, "fetch", "--baseline", e.Baseline)
	}
	return CommandOn(e.Checkout, "fetch")
}

func (e *InterruptedError) Error() string {
	if e.Command != "fetch" {
		return fmt.Sprintf("%v: a run of %s in %s was cut off; end it first: %s", ErrInterrupted, e.Command, e.Checkout, e.Next())
	}
	return fmt.Sprintf("%v: the fetch into %s was interrupted; go on with it: %s (with its --from or --url, if it had one), or remove what it "+
		"left: %s",
		ErrInterrupted, e.Checkout, e.Next(), CommandOn(e.Checkout, "recover"))
}

func (e *InterruptedError) Unwrap() error { return ErrInterrupted }

// Interrupted gives an *InterruptedError when the last run was cut off, else nil.
func (c *Checkout) Interrupted() error {
	if c.state == nil || c.state.Pending == nil {
		return nil
	}
	return &InterruptedError{Command: c.state.Pending.Command, Baseline: c.state.Baseline, Checkout: c.Dir()}
}

func (c *Checkout) fetching() bool {
	return c.state != nil && c.state.Pending != nil && c.state.Pending.Command == "fetch"
}

// leftUnmade reports whether a fetch into dir was cut off before it had made a repository.
func leftUnmade(dir string) bool {
	_, noGit := os.Lstat(filepath.Join(dir, ".git"))
	_, noStaging := os.Lstat(filepath.Join(dir, staging))
	return noGit != nil && noStaging == nil
}

// lockFolder keeps a second mpsforge from making or removing .git in dir at the same time. The kernel gives the lock
// back when the process dies. The error is an fs.ErrNotExist when dir is gone, or is another one since it was opened.
func lockFolder(dir string) (unlock func(), err error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the folder: %w", err)
	}
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("another mpsforge is changing it; wait until it ends: %w", err)
	case err == nil:
		err = stillAt(folder, dir)
	}
	if err != nil {
		folder.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { folder.Close() }, nil
}

// stillAt gives an error unless the open folder is what dir names.
func stillAt(folder *os.File, dir string) error {
	opened, err := folder.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(dir); err != nil || !os.SameFile(opened, now) {
		return errors.Join(err, fs.ErrNotExist)
	}
	return nil
}

// mostClaims is how often a folder is made that another run removes before it is locked.
const mostClaims = 100

// claim makes the folder, if it is not there, and locks it. made are the folders that had to be made, inner ones first: who holds the
// lock may remove them.
func claim(dir string) (made []string, unlock func(), err error) {
	for folder := filepath.Clean(dir); ; folder = filepath.Dir(folder) {
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, folder)
	}
	for range mostClaims { // another run that fails removes what it had made
		if err = os.MkdirAll(dir, 0o755); err != nil {
			err = fmt.Errorf("make %s: %w", dir, err)
		} else if unlock, err = lockFolder(dir); err == nil {
			return made, unlock, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) { // else they are of use to the other run
		removeEmpty(made)
	}
	return nil, nil, err
}

// ClearUnmade removes what a fetch left in dir that was cut off before it had made a repository, and says what it
// removed; empty when there was nothing. What has a repository is Checkout.Recover's to clear.
func ClearUnmade(dir string) (did string, err error) {
	if !leftUnmade(dir) {
		return "", nil
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := os.RemoveAll(filepath.Join(dir, staging)); err != nil {
		return "", fmt.Errorf("remove what the interrupted fetch left: %w", err)
	}
	_ = os.Remove(dir) // fails when something else is in it, and that stays
	return "removed what an interrupted fetch left in " + dir, nil
}

// begin makes the repository that is fetched into: whole and with its record, or not at all. The caller holds the folder's lock.
func begin(ctx context.Context, series *patches.Series, dir string) (checkout *Checkout, unlock func(), err error) {
	hidden, place := filepath.Join(dir, staging), filepath.Join(dir, ".git")
	moved := false
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(hidden))
		}
		if err != nil && moved {
			err = errors.Join(err, os.RemoveAll(place))
		}
	}()
	if err := errors.Join(os.RemoveAll(hidden), os.Mkdir(hidden, 0o755)); err != nil {
		return nil, nil, fmt.Errorf("make %s: %w", hidden, err)
	}
	if err := git.Init(ctx, hidden); err != nil {
		return nil, nil, err
	}
	first, err := Open(ctx, hidden, nil)
	if err != nil {
		return nil, nil, err
	}
	begun := &State{Schema: stateSchema, Worktree: first.repository.WorktreeID, Baseline: series.Baseline.Name,
		Applied: []Applied{}, Pending: &Pending{Command: "fetch", Applied: []Applied{}}}
	if err := errors.Join(first.record(ctx, "fetch: begin", begun, ""), first.Close()); err != nil {
		return nil, nil, err
	}
	if err := os.Rename(filepath.Join(hidden, ".git"), place); err != nil {
		return nil, nil, fmt.Errorf("make the repository: %w", err)
	}
	moved = true
	fault.Point()
	if err := os.RemoveAll(hidden); err != nil {
		return nil, nil, err
	}
	return openLocked(ctx, dir)
}

// removeEmpty removes folders, inner ones first, as far as nothing is in them.
func removeEmpty(folders []string) {
	for _, folder := range folders {
		_ = os.Remove(folder) // it fails when something is in it, which is then somebody else's
	}
}

// openLocked opens a checkout for a change.
func openLocked(ctx context.Context, dir string) (*Checkout, func(), error) {
	checkout, err := Open(ctx, dir, nil)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := checkout.lock(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, checkout.Close())
	}
	return checkout, unlock, nil
}

// discarded is what discard did.
type discarded struct {
	removed int      // files of the work tree
	kept    []string // files that are not as they were fetched
}

// discard removes what a fetch that did not end has left: the files of the work tree that are as they were fetched, or
// half written, the repository, and the folder, if nothing else is in it. The caller holds the locks of the folder and of the checkout.
func (c *Checkout) discard(ctx context.Context) (discarded, error) {
	var result discarded
	dir := c.Dir()
	reopened, err := git.Open(ctx, dir, nil) // HEAD may have moved since
	if err != nil {
		return result, err
	}
	commit, err := onlyCommit(ctx, reopened)
	if err != nil {
		return result, err
	}
	if commit != "" {
		if result.removed, err = c.removeFetched(ctx, commit); err != nil {
			return result, fmt.Errorf("remove what the fetch into %s left: %w", dir, err)
		}
	}
	hidden := filepath.Join(dir, staging)
	err = os.RemoveAll(hidden)
	if err == nil {
		err = os.Rename(filepath.Join(dir, ".git"), hidden) // a kill from here on leaves what the next fetch removes
	}
	fault.Point()
	if err := errors.Join(err, os.RemoveAll(hidden)); err != nil {
		return result, fmt.Errorf("remove the repository of the interrupted fetch: %w", err)
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			result.kept = append(result.kept, strings.TrimPrefix(path, dir+string(filepath.Separator)))
		}
		return err
	})
	if err != nil {
		return result, fmt.Errorf("look for what is left: %w", err)
	}
	removeEmpty(c.made)
	return result, nil
}

// onlyCommit gives the one commit of a repository that a fetch has made, "" for none yet. Whatever else is in it
// somebody has made since, and it must not be removed.
func onlyCommit(ctx context.Context, repository *git.Repository) (string, error) {
	refs, err := repository.AllRefs(ctx)
	if err != nil {
		return "", err
	}
	if repository.Head != "" {
		refs["HEAD"] = repository.Head
	}
	commit := ""
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fetched := name == "HEAD" || name == "refs/heads/"+importBranch || strings.HasPrefix(name, "refs/tags/")
		switch {
		case strings.HasPrefix(name, "refs/mpsforge/"):
		case fetched && (commit == "" || commit == refs[name]):
			commit = refs[name]
		default:
			return "", fmt.Errorf("%w: the fetch into %s was interrupted, and %s in its repository was not made by fetch; nothing was removed: "+
				"save what is yours and remove the folder",
				ErrInterrupted, repository.WorkTree, name)
		}
	}
	return commit, nil
}

// removeFetched removes the files of a commit from the work tree, and those of its submodules, and the folders that are
// empty then. A file that somebody changed stays.
func (c *Checkout) removeFetched(ctx context.Context, commit string) (removed int, err error) {
	fetched, err := c.objects.Commit(ctx, commit)
	if err != nil {
		return 0, err
	}
	entries, err := c.objects.Diff(ctx, "", fetched.Tree)
	if err != nil {
		return 0, err
	}
	var files []string
	folders := map[string]bool{}
	for _, entry := range entries {
		full := filepath.Join(c.Dir(), filepath.FromSlash(entry.Path))
		for folder := filepath.Dir(full); len(folder) > len(c.Dir()); folder = filepath.Dir(folder) {
			folders[folder] = true
		}
		if entry.New.Mode == git.ModeSubmodule {
			folders[full] = true
			count, err := removeSubmodule(ctx, full, entry.New.ID)
			if err != nil {
				return 0, err
			}
			removed += count
			continue
		}
		// Which files are the fetch's is found out before any is removed: .gitattributes is one of them.
		state, _, err := c.workFile(ctx, git.Change{Path: entry.Path, Old: entry.New, New: entry.New}, nil)
		if err != nil {
			return 0, err
		}
		if state != isOther {
			files = append(files, filepath.FromSlash(entry.Path))
		}
	}
	// A folder that became a link since must not lead the removal elsewhere.
	root, err := os.OpenRoot(c.Dir())
	if err != nil {
		return 0, err
	}
	defer root.Close()
	for _, file := range files {
		switch err := root.Remove(file); {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return removed, err
		}
	}
	inner := slices.SortedFunc(maps.Keys(folders), func(a, b string) int { return len(b) - len(a) })
	removeEmpty(inner)
	return removed, nil
}

// removeSubmodule removes the files of a submodule, if it was fetched.
func removeSubmodule(ctx context.Context, dir, commit string) (int, error) {
	link := filepath.Join(dir, ".git")
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() { // not a link to a repository inside .git
		return 0, nil
	}
	repository, err := git.Open(ctx, dir, nil)
	if errors.Is(err, git.ErrNotRepository) && ctx.Err() == nil {
		return 0, os.Remove(link) // a kill came before it was cloned
	}
	if err != nil {
		return 0, err
	}
	sub := &Checkout{repository: repository, objects: repository.Objects()}
	defer sub.Close()
	removed := 0
	if _, err := repository.ResolveCommit(ctx, commit); err == nil { // else a kill came before it was fetched
		if removed, err = sub.removeFetched(ctx, commit); err != nil {
			return removed, err
		}
	}
	return removed, os.Remove(link)
}
