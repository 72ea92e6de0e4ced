// Package fork is the PyTorch checkout: getting one, putting the series on it and taking it off as transactions, and
// reporting what state it is in.
//
// Fetch gets a checkout, Open opens one that is there. Apply and Unapply build the whole chain of commits in the object
// store, move the work tree once and then the branch; what fails before that has touched nothing, and Recover ends a run that
// was killed in between. Export turns the commits on top of the baseline into patch files again, Port carries the series to
// another version by three-way merges. What is refused, and why, is an error to test for with errors.Is. Everything
// that takes long reports to an events.Sink how far it is; events.Discard is one that does not listen.
//
// Objects are read and written through go-git's storer; index, work tree and refs belong to the git binary (package git).
package fork

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mpsforge/fork/git"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// Refusals, each wrapped in an error that says on what, why and what to do next.
var (
	ErrWrongBaseline = errors.New("the checkout is not at the baseline")
	ErrDirty         = errors.New("touched files have changes that are not from the series")
	ErrBusy          = errors.New("a git operation is in progress")
	ErrForeign       = errors.New("HEAD is not where mpsforge left it")
	ErrMoreApplied   = errors.New("the checkout has more patches than that")
	ErrSeriesChanged = errors.New("the applied patches are not those of the series")
	ErrInterrupted   = errors.New("an earlier run was interrupted")
)

// Checkout is a git work tree with what mpsforge recorded about it.
type Checkout struct {
	repository *git.Repository
	objects    *git.Objects
	state      *State // nil when nothing is recorded
	stateID    string
	refs       *git.Refs // while Apply or Unapply run
	made       []string  // folders that go with what a fetch made, if nothing else is in them, inner ones first
}

// CommandOn is a command line of mpsforge for the checkout in a folder, quoted where a shell needs it.
func CommandOn(dir string, words ...string) string {
	return run.Command{Name: "mpsforge", Args: append(words, "--checkout", dir)}.String()
}

// command is CommandOn for this checkout.
func (c *Checkout) command(words ...string) string { return CommandOn(c.Dir(), words...) }

// Open opens the work tree whose top is dir. Hint names paths that are likely to be asked about; a good hint saves a
// process. Close it after use.
func Open(ctx context.Context, dir string, hint []string) (*Checkout, error) {
	repository, err := git.Open(ctx, dir, hint)
	if errors.Is(err, git.ErrNotRepository) && leftUnmade(dir) {
		return nil, &InterruptedError{Command: "fetch", Checkout: dir}
	}
	if err != nil {
		return nil, err
	}
	checkout := &Checkout{repository: repository, objects: repository.Objects()}
	checkout.state, checkout.stateID, err = loadState(ctx, repository, checkout.objects)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open checkout %s: %w", dir, err), checkout.Close())
	}
	return checkout, nil
}

// lock keeps other runs of mpsforge from changing the checkout. What is known of it was read before, and another run may have ended
// in between: then all is read again.
func (c *Checkout) lock(ctx context.Context) (unlock func(), err error) {
	unlock, err = c.repository.Lock()
	if err != nil {
		return nil, err
	}
	moved, err := c.repository.Moved(ctx)
	if moved {
		var again *Checkout
		if again, err = Open(ctx, c.Dir(), nil); err == nil {
			err = c.Close()
			c.repository, c.objects, c.state, c.stateID = again.repository, again.objects, again.state, again.stateID
		}
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// Close releases the repository's files.
func (c *Checkout) Close() error { return c.objects.Close() }

// Dir is the absolute path of the work tree.
func (c *Checkout) Dir() string { return c.repository.WorkTree }

// Baseline is the name of the recorded baseline, or "".
func (c *Checkout) Baseline() string {
	if c.state == nil {
		return ""
	}
	return c.state.Baseline
}

// Head is the commit that HEAD is at and its tree; both are empty before the first commit.
func (c *Checkout) Head(ctx context.Context) (commit, tree string, err error) {
	if c.repository.Head == "" {
		return "", "", nil
	}
	head, err := c.objects.Commit(ctx, c.repository.Head)
	if err != nil {
		return "", "", fmt.Errorf("read HEAD of %s: %w", c.Dir(), err)
	}
	return c.repository.Head, head.Tree, nil
}

// Base is the baseline's commit in this repository and how it is known to be the baseline; empty when not recorded.
func (c *Checkout) Base() (commit, proof string) {
	if c.state == nil {
		return "", ""
	}
	return c.state.Base, c.state.Proof
}

// identify reports whether a commit is the baseline, exactly.
func (c *Checkout) identify(ctx context.Context, series *patches.Series, id string) (proof string, err error) {
	baseline := series.Baseline
	if id == "" {
		return "", fmt.Errorf("%w: %s has no commit yet; get another: mpsforge fetch --baseline %s --checkout NEW-FOLDER", ErrWrongBaseline, c.Dir(),
			baseline.Name)
	}
	if id == baseline.Commit {
		return "the commit is " + id, nil
	}
	commit, err := c.objects.Commit(ctx, id)
	if err != nil {
		return "", err
	}
	if baseline.Tree != "" && commit.Tree == baseline.Tree {
		return "the tree is " + commit.Tree, nil
	}
	return "", nil
}

// compareDigests compares the files that the baseline's digests know with those of a commit.
func (c *Checkout) compareDigests(ctx context.Context, series *patches.Series, id string) (same int, differing []string, err error) {
	commit, err := c.objects.Commit(ctx, id)
	if err != nil {
		return 0, nil, err
	}
	check := func(path, want string) error {
		entry, _, err := c.objects.Find(ctx, commit.Tree, path)
		if err != nil {
			return err
		}
		if entry.ID == want {
			same++
		} else {
			differing = append(differing, path)
		}
		return nil
	}
	digests, err := series.Digests()
	if err != nil {
		return 0, nil, err
	}
	if len(digests.Files) == 0 {
		return 0, nil, fmt.Errorf("%w: the baseline %s has no digests to compare with", ErrWrongBaseline, series.Baseline.Name)
	}
	for _, file := range digests.Files {
		if err := check(file.Path, file.Blob); err != nil {
			return 0, nil, err
		}
	}
	for _, path := range series.Baseline.Absent {
		if err := check(path, ""); err != nil {
			return 0, nil, err
		}
	}
	return same, differing, nil
}

// partProof says how a commit is known to be a baseline whose digests it all agrees with, absent paths counted.
func partProof(baseline patches.Baseline, same int) string {
	absent := len(baseline.Absent)
	return fmt.Sprintf("%d files are the release's, byte for byte, and %d paths are absent, as there; the rest of the tree is not compared",
		same-absent, absent)
}

// wrongBaseline says what a commit that is not the baseline looks like.
func (c *Checkout) wrongBaseline(ctx context.Context, series *patches.Series) error {
	baseline := series.Baseline
	if err := c.Contradicts(ctx, series); err != nil {
		return err
	}
	same, differing, err := c.compareDigests(ctx, series, c.repository.Head)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("HEAD of %s is %s, baseline %s is %s", c.Dir(), c.repository.Head, baseline.Name, baseline.Commit)
	if len(differing) == 0 && same > 0 {
		return fmt.Errorf("%w: %s\n%s; if it is the baseline, adopt it: %s",
			ErrWrongBaseline, text, partProof(baseline, same), c.command("fetch", "--baseline", baseline.Name, "--from", c.Dir()))
	}
	return fmt.Errorf("%w: %s\n%d of %d known files differ or are missing (the first: %s); check the baseline out, or get a new checkout: mpsforge "+
		"fetch --baseline %s --checkout NEW-FOLDER",
		ErrWrongBaseline, text, len(differing), same+len(differing), differing[0], baseline.Name)
}

// ensureBase makes sure that a state is there, recording the base when HEAD is the baseline. Nothing is written to the
// repository before the caller does.
func (c *Checkout) ensureBase(ctx context.Context, series *patches.Series) error {
	if c.state != nil {
		return c.Contradicts(ctx, series)
	}
	proof, err := c.identify(ctx, series, c.repository.Head)
	if err != nil {
		return err
	}
	if proof == "" {
		return c.wrongBaseline(ctx, series)
	}
	c.state = &State{Schema: stateSchema, Worktree: c.repository.WorktreeID, Baseline: series.Baseline.Name, Base: c.repository.Head,
		Proof: proof, Source: "the user's own checkout", Head: c.repository.Head, Applied: []Applied{}}
	return nil
}

// applied says how many patches of the recorded list HEAD has on it; -1 when HEAD is none of the commits known.
func (c *Checkout) applied() int {
	if c.repository.Head == c.state.Base {
		return 0
	}
	index := slices.IndexFunc(c.state.Applied, func(a Applied) bool { return a.Commit == c.repository.Head })
	if index < 0 {
		return -1
	}
	return index + 1
}

// fileState is how the file at a path compares with two entries it may be expected to be.
type fileState int

const (
	isOld   fileState = iota
	isNew             // and not equal to the old entry
	isTorn            // missing, or the beginning of the new or old content: what a killed git leaves
	isOther           // somebody else's content
)

// workFile compares a file of the work tree with the entries on both sides of a change. Removed holds the paths that
// the whole change takes away: a folder that holds nothing else counts as absent.
func (c *Checkout) workFile(ctx context.Context, change git.Change, removed map[string]bool) (fileState, string, error) {
	full := filepath.Join(c.Dir(), filepath.FromSlash(change.Path))
	for folder := filepath.Dir(full); len(folder) > len(c.Dir()); folder = filepath.Dir(folder) {
		info, err := os.Lstat(folder)
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			return isOther, "is below " + folder + ", which is a symbolic link", nil
		}
	}
	entry, content, err := readWorkFile(full)
	if err != nil {
		return isOther, "", err
	}
	if entry.Mode == git.ModeFolder {
		only, err := c.holdsOnly(full, removed)
		if err != nil {
			return isOther, "", err
		}
		if only {
			entry = git.Entry{}
		}
	}
	switch {
	case entry == change.Old:
		return isOld, "", nil
	case entry == change.New:
		return isNew, "", nil
	case entry == git.Entry{}:
		return isTorn, "is missing from the work tree", nil
	case entry.Mode == git.ModeFolder:
		return isOther, "is a folder", nil
	}
	if entry.Mode != git.ModeSymlink && (entry.Mode == change.Old.Mode || entry.Mode == change.New.Mode) {
		// Line-end conversion and other filters make the bytes on disk differ from the blob.
		filtered, err := c.repository.HashWorkFile(ctx, change.Path)
		if err != nil {
			return isOther, "", err
		}
		if filtered == change.Old.ID && entry.Mode == change.Old.Mode {
			return isOld, "", nil
		}
		if filtered == change.New.ID && entry.Mode == change.New.Mode {
			return isNew, "", nil
		}
	}
	for _, side := range []git.Entry{change.New, change.Old} {
		if side == (git.Entry{}) || side.Mode == git.ModeSubmodule {
			continue
		}
		whole, err := c.objects.Blob(ctx, side.ID)
		if err != nil {
			return isOther, "", err
		}
		if strings.HasPrefix(string(whole), string(content)) {
			return isTorn, "is modified in the work tree", nil
		}
	}
	if change.Old == (git.Entry{}) {
		return isOther, "is in the way: the series adds this file, and an untracked file has its name", nil
	}
	return isOther, "is modified in the work tree", nil
}

// holdsOnly reports whether every file below a folder is one of the given paths.
func (c *Checkout) holdsOnly(folder string, paths map[string]bool) (bool, error) {
	only := true
	err := filepath.WalkDir(folder, func(full string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(c.Dir(), full)
		if err == nil && !paths[filepath.ToSlash(name)] {
			only = false
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look into %s: %w", folder, err)
	}
	return only, nil
}

// removedBy lists the paths that changes take away.
func removedBy(changes []git.Change) map[string]bool {
	removed := map[string]bool{}
	for _, change := range changes {
		if change.New == (git.Entry{}) && change.Old != (git.Entry{}) {
			removed[change.Path] = true
		}
	}
	return removed
}

// readWorkFile gives the entry that a file of the work tree would have without filters, and its content.
func readWorkFile(full string) (git.Entry, []byte, error) {
	info, err := os.Lstat(full)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return git.Entry{}, nil, nil
	case err != nil:
		return git.Entry{}, nil, fmt.Errorf("look at %s: %w", full, err)
	case info.IsDir():
		return git.Entry{Mode: git.ModeFolder}, nil, nil
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(full)
		if err != nil {
			return git.Entry{}, nil, fmt.Errorf("look at %s: %w", full, err)
		}
		return git.Entry{Mode: git.ModeSymlink, ID: git.BlobID([]byte(target))}, []byte(target), nil
	case !info.Mode().IsRegular():
		return git.Entry{Mode: "special"}, nil, nil
	}
	content, err := os.ReadFile(full)
	if err != nil {
		return git.Entry{}, nil, fmt.Errorf("read %s: %w", full, err)
	}
	mode := git.ModeFile
	if info.Mode()&0o100 != 0 {
		mode = git.ModeExecutable
	}
	return git.Entry{Mode: mode, ID: git.BlobID(content)}, content, nil
}

// indexState compares what the index holds for a path with both sides of a change.
func indexState(entries []git.IndexEntry, change git.Change) (fileState, string) {
	if len(entries) > 1 || len(entries) == 1 && entries[0].Stage != 0 {
		return isOther, "has an unresolved conflict"
	}
	entry := git.Entry{}
	if len(entries) == 1 {
		entry = git.Entry{Mode: entries[0].Mode, ID: entries[0].ID}
	}
	switch entry {
	case change.Old:
		return isOld, ""
	case change.New:
		return isNew, ""
	}
	if entry == (git.Entry{}) {
		return isOther, "is removed from the index"
	}
	return isOther, "has staged changes"
}

// Drift is one path that is not what it should be.
type Drift struct {
	Path   string `json:"path"`
	Reason string `json:"reason"` // follows the path in a sentence
}

func (d Drift) String() string { return d.Path + " " + d.Reason }

// drift lists the changes whose old side is not what the index and the work tree hold.
func (c *Checkout) drift(ctx context.Context, changes []git.Change) ([]Drift, error) {
	index, err := c.repository.IndexEntries(ctx, pathsOf(changes))
	if err != nil {
		return nil, err
	}
	removed := removedBy(changes)
	var drifts []Drift
	for _, change := range changes {
		expectOld := git.Change{Path: change.Path, Old: change.Old, New: change.Old}
		if state, reason := indexState(index[change.Path], expectOld); state != isOld {
			drifts = append(drifts, Drift{change.Path, reason})
			continue
		}
		state, reason, err := c.workFile(ctx, expectOld, removed)
		if err != nil {
			return nil, err
		}
		if state != isOld {
			drifts = append(drifts, Drift{change.Path, reason})
		}
	}
	return drifts, nil
}
