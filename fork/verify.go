package fork

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
			exact.Deviations = append(exact.Deviations, fmt.Sprintf("the recorded base %s is not the baseline: %d known files differ", c.state.Base, len(differing)))
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
		exact.Deviations = append(exact.Deviations, fmt.Sprintf("the tree of HEAD is %s, the baseline with the series is %s: %s", exact.HeadTree, expected.Tree, hint))
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

// RecordBaseline takes the facts of the baseline from the checkout's base commit: digests of the paths that had some,
// of those that the series touches and of the extra ones.
func (c *Checkout) RecordBaseline(ctx context.Context, series *patches.Series, extra []string) (patches.Baseline, patches.Digests, error) {
	if c.state == nil || c.state.Base == "" {
		return patches.Baseline{}, patches.Digests{}, fmt.Errorf("%w: no base is recorded in %s; mpsforge fetch records one", ErrWrongBaseline, c.Dir())
	}
	base, err := c.objects.Commit(ctx, c.state.Base)
	if err != nil {
		return patches.Baseline{}, patches.Digests{}, err
	}
	identity := series.Baseline
	identity.Commit, identity.Tree = c.state.Base, base.Tree
	digests, err := series.Digests()
	if err != nil {
		return patches.Baseline{}, patches.Digests{}, err
	}
	for _, file := range digests.Files {
		extra = append(extra, file.Path)
	}
	extra = append(extra, series.Baseline.Absent...)
	return patches.RecordBaseline(identity, series.TouchedPaths(), extra, func(path string) (string, []byte, error) {
		if err := patches.CheckPath(path); err != nil {
			return "", nil, err
		}
		entry, _, err := c.objects.Find(ctx, base.Tree, path)
		if err != nil {
			return "", nil, err
		}
		if entry.Mode != git.ModeFile && entry.Mode != git.ModeExecutable {
			return "", nil, fmt.Errorf("%s is not a file of %s: %w", path, c.state.Base, fs.ErrNotExist)
		}
		content, err := c.objects.Blob(ctx, entry.ID)
		return entry.Mode, content, err
	})
}
