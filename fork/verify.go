package fork

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mpsforge/fork/git"
	"mpsforge/patches"
)

// Exactness is what CheckExact found: the checkout's identity, and every way in which it is not the baseline plus
// exactly the series.
type Exactness struct {
	BaseCommit, BaseTree, BaseProof string
	HeadCommit, HeadTree            string
	ExpectedTree                    string   // of the base with the series on it
	Deviations                      []string // sentences; empty when exact
}

// CheckExact applies the series to the base once more, in memory, and compares the result with HEAD, and HEAD with the
// index and all tracked files of the work tree.
func (c *Checkout) CheckExact(ctx context.Context, series *patches.Series) (*Exactness, error) {
	if err := c.ensureBase(ctx, series); err != nil {
		return nil, err
	}
	if err := c.Interrupted(); err != nil {
		return nil, err
	}
	base, err := c.objects.Commit(ctx, c.state.Base)
	if err != nil {
		return nil, err
	}
	exact := &Exactness{BaseCommit: c.state.Base, BaseTree: base.Tree, BaseProof: c.state.Proof}
	if exact.HeadCommit, exact.HeadTree, err = c.Head(ctx); err != nil {
		return nil, err
	}
	// The record says how the base was proven once; here it is proven again.
	if proof, err := c.identify(ctx, series, c.state.Base); err != nil {
		return nil, err
	} else if proof == "" {
		_, differing, err := c.compareDigests(ctx, series, c.state.Base)
		if err != nil {
			return nil, err
		}
		if len(differing) > 0 {
			exact.Deviations = append(exact.Deviations, fmt.Sprintf("the recorded base %s is not the baseline: %d known files differ", c.state.Base,
				len(differing)))
		}
	}
	head := c.state.Base
	for _, patch := range series.Patches {
		if head, err = c.commitPatch(ctx, head, patch); err != nil {
			return nil, err
		}
	}
	expected, err := c.objects.Commit(ctx, head)
	if err != nil {
		return nil, err
	}
	exact.ExpectedTree = expected.Tree
	if expected.Tree != exact.HeadTree {
		hint := "HEAD differs from both"
		if exact.HeadTree == base.Tree {
			hint = "HEAD is the baseline without patches; run mpsforge apply"
		}
		exact.Deviations = append(exact.Deviations, fmt.Sprintf("the tree of HEAD is %s, the baseline with the series is %s: %s", exact.HeadTree,
			expected.Tree, hint))
	}
	modified, err := c.repository.ModifiedFiles(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range modified {
		exact.Deviations = append(exact.Deviations, path+" in index or work tree differs from HEAD")
	}
	return exact, nil
}

// ExactFiles lists the files of a commit that are equal to the baseline's digests, and says whether the commit as a whole is the
// release's: then so is every other file.
func (c *Checkout) ExactFiles(ctx context.Context, series *patches.Series, id string) (exact []string, whole bool, err error) {
	proof, err := c.identify(ctx, series, id)
	if err != nil {
		return nil, false, err
	}
	commit, err := c.objects.Commit(ctx, id)
	if err != nil {
		return nil, false, err
	}
	digests, err := series.Digests()
	if err != nil {
		return nil, false, err
	}
	exact = []string{}
	for _, file := range digests.Files {
		entry, _, err := c.objects.Find(ctx, commit.Tree, file.Path)
		if err != nil {
			return nil, false, err
		}
		if entry.ID == file.Blob {
			exact = append(exact, file.Path)
		}
	}
	return exact, proof != "", nil
}

// WorkFile gives the bytes of a tracked file as the work tree has it and reports whether HEAD has the same, the filters
// that apply to its path (end of line and the like) considered.
func (c *Checkout) WorkFile(ctx context.Context, path string) (content []byte, asHead bool, err error) {
	content, err = os.ReadFile(filepath.Join(c.Dir(), filepath.FromSlash(path)))
	if err != nil {
		return nil, false, fmt.Errorf("read from the checkout: %w", err)
	}
	_, tree, err := c.Head(ctx)
	if err != nil || tree == "" {
		return content, false, err
	}
	entry, _, err := c.objects.Find(ctx, tree, path)
	if err != nil || entry == (git.Entry{}) {
		return content, false, err
	}
	state, _, err := c.workFile(ctx, git.Change{Path: path, Old: entry, New: entry}, nil)
	return content, state == isOld, err
}

// Ready reports whether the checkout's base is recorded or HEAD has a commit that may be one: nothing is left to fetch.
func (c *Checkout) Ready() bool {
	return !c.fetching() && c.repository.Head != ""
}

// BaselineFacts are what RecordBaseline takes of a baseline and of the series on it.
type BaselineFacts struct {
	Baseline patches.Baseline
	Digests  patches.Digests
	Blobs    patches.Blobs
}

// ErrNotExact is returned, wrapped, for a file of which nobody knows whether it is the baseline's.
var ErrNotExact = errors.New("the exact text is not known")

// RecordBaseline takes the facts of the baseline from the checkout's base commit: digests of the paths that had some,
// of those that the series touches and of the extra ones, and the blob ids that the patches give. Where that commit is known
// to be the baseline by digests alone, only what has digests is exact: anything else is an error that wraps ErrNotExact.
func (c *Checkout) RecordBaseline(ctx context.Context, series *patches.Series, extra []string) (*BaselineFacts, error) {
	if c.state == nil || c.state.Base == "" {
		return nil, fmt.Errorf("%w: no base is recorded in %s; mpsforge fetch records one", ErrWrongBaseline, c.Dir())
	}
	base, err := c.objects.Commit(ctx, c.state.Base)
	if err != nil {
		return nil, err
	}
	proof, err := c.identify(ctx, series, c.state.Base)
	if err != nil {
		return nil, err
	}
	byDigests := proof == "" && series.Baseline.Commit != ""
	identity := series.Baseline
	if !byDigests {
		identity.Commit, identity.Tree = c.state.Base, base.Tree
	}
	digests, err := series.Digests()
	if err != nil {
		return nil, err
	}
	blobs := map[string]string{} // that are known
	for _, file := range digests.Files {
		blobs[file.Path] = file.Blob
		extra = append(extra, file.Path)
	}
	extra = append(extra, series.Baseline.Absent...)
	facts := &BaselineFacts{}
	facts.Baseline, facts.Digests, err = patches.RecordBaseline(identity, series.TouchedPaths(), extra, func(path string) (string, []byte, error) {
		if err := patches.CheckPath(path); err != nil {
			return "", nil, err
		}
		entry, _, err := c.objects.Find(ctx, base.Tree, path)
		if err != nil {
			return "", nil, err
		}
		isFile := entry.Mode == git.ModeFile || entry.Mode == git.ModeExecutable
		if byDigests && (isFile && blobs[path] != entry.ID || !isFile && !slices.Contains(series.Baseline.Absent, path)) {
			return "", nil, fmt.Errorf("%w: commit %s is not that of %s, and %s is not among the files that the baseline has digests of; record it "+
				"from the release itself",
				ErrNotExact, c.state.Base, identity.Name, path)
		}
		if !isFile {
			return "", nil, fmt.Errorf("%s is not a file of %s: %w", path, c.state.Base, fs.ErrNotExist)
		}
		content, err := c.objects.Blob(ctx, entry.ID)
		return entry.Mode, content, err
	})
	if err != nil {
		return nil, err
	}
	now := *series
	now.Baseline = facts.Baseline
	facts.Blobs, err = c.recordBlobs(ctx, &now, facts.Digests, c.state.Base)
	return facts, err
}

// recordBlobs takes the blob ids that the patches give on a commit, of the files that the digests prove to be exact in it.
func (c *Checkout) recordBlobs(ctx context.Context, series *patches.Series, digests patches.Digests, commit string) (patches.Blobs, error) {
	base, err := c.objects.Commit(ctx, commit)
	if err != nil {
		return patches.Blobs{}, err
	}
	return patches.RecordBlobs(series, func(path string) ([]byte, error) {
		entry, _, err := c.objects.Find(ctx, base.Tree, path)
		if err != nil {
			return nil, err
		}
		exact := func(f patches.FileDigests) bool { return f.Path == path && f.Blob == entry.ID }
		if !slices.ContainsFunc(digests.Files, exact) {
			return nil, fmt.Errorf("%s of %s: %w", path, commit, fs.ErrNotExist)
		}
		return c.objects.Blob(ctx, entry.ID)
	})
}
