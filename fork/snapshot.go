package fork

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/git"
	"mpsforge/patches"
)

// snapshotPaths are what a host build takes of a checkout, and the tests that the series adds. A tree that is only a part
// of PyTorch's may lack what follows the first two.
var snapshotPaths = []string{"aten/src/ATen", "torchgen", "version.txt", "caffe2/core", "torch/csrc/mps", "torch/mps", "torch/library.py",
	"test/test_mps_parallel.py", "test/test_mps_streams.py"}

// Snapshot is a commit's sources, as far as a host build needs them, in a folder of their own.
type Snapshot struct {
	Dir    string
	Commit string
	Tree   string
	// Patches are those of the series that the commit holds.
	Patches []string
	// LeftOut are the others: the one that was named, and those that do not apply without it.
	LeftOut []string
}

// Stock gives the sources of the base commit.
func (c *Checkout) Stock(ctx context.Context, cache string) (*Snapshot, error) {
	base, _ := c.Base()
	return c.snapshot(ctx, &Snapshot{Commit: base}, cache)
}

// Patched gives the sources with the whole series applied to the base, whatever the work tree holds.
func (c *Checkout) Patched(ctx context.Context, series *patches.Series, cache string) (*Snapshot, error) {
	return c.Without(ctx, series, "", cache)
}

// Without gives the sources with the series but for one patch, and but for those that do not apply without it. Lines
// that only moved are no reason: patches are merged, not applied strictly, once one is left out.
func (c *Checkout) Without(ctx context.Context, series *patches.Series, name, cache string) (*Snapshot, error) {
	return c.leaveOut(ctx, series, name, cache, c.transplant)
}

// Before gives the sources with the patches that come before one in the series.
func (c *Checkout) Before(ctx context.Context, series *patches.Series, name, cache string) (*Snapshot, error) {
	return c.leaveOut(ctx, series, name, cache, func(context.Context, string, string, string) (string, error) { return "", nil })
}

// leaveOut gives the sources with the series but for one patch. Each that follows is put on by put, which gives an empty
// commit to leave it out, too.
func (c *Checkout) leaveOut(ctx context.Context, series *patches.Series, name, cache string, put func(ctx context.Context, onto, parent,
	commit string) (string, error)) (*Snapshot, error) {
	base, _ := c.Base()
	s := &Snapshot{Commit: base}
	parent := base // with all patches so far
	for _, patch := range series.Patches {
		commit, err := c.commitPatch(ctx, parent, patch)
		if err != nil {
			return nil, err
		}
		switch {
		case patch.Name == name:
			s.LeftOut = append(s.LeftOut, patch.Name)
		case len(s.LeftOut) == 0:
			s.Commit, s.Patches = commit, append(s.Patches, patch.Name)
		default:
			merged, err := put(ctx, s.Commit, parent, commit)
			if err != nil {
				return nil, fmt.Errorf("patch %s without %s: %w", patch.Name, name, err)
			}
			if merged == "" {
				s.LeftOut = append(s.LeftOut, patch.Name)
			} else {
				s.Commit, s.Patches = merged, append(s.Patches, patch.Name)
			}
		}
		parent = commit
	}
	if err := c.objects.Flush(); err != nil {
		return nil, err
	}
	return c.snapshot(ctx, s, cache)
}

// transplant puts what commit changed on parent onto another commit, and gives the result; empty when they conflict.
func (c *Checkout) transplant(ctx context.Context, onto, parent, commit string) (string, error) {
	merge, err := c.merge(ctx, onto, parent, commit)
	if err != nil || len(merge.Conflicts) > 0 {
		return "", err
	}
	ours, err := c.objects.Commit(ctx, onto)
	if err != nil {
		return "", err
	}
	return c.objects.AddCommit(git.Commit{Tree: merge.Tree, Parents: []string{onto}, Message: "merged\n", Author: ours.Author})
}

// merge merges what commit changed on parent into another commit.
func (c *Checkout) merge(ctx context.Context, onto, parent, commit string) (*git.Merge, error) {
	ours, err := c.objects.Commit(ctx, onto)
	if err != nil {
		return nil, err
	}
	// git 2.38 takes no base by name: with the patch's parent as parent, the common ancestor is the right one.
	side, err := c.objects.AddCommit(git.Commit{Tree: ours.Tree, Parents: []string{parent}, Message: "beside\n", Author: ours.Author})
	if err != nil {
		return nil, err
	}
	if err := c.objects.Flush(); err != nil {
		return nil, err
	}
	return c.repository.MergeTree(ctx, side, commit)
}

func (c *Checkout) snapshot(ctx context.Context, s *Snapshot, cache string) (*Snapshot, error) {
	commit, err := c.objects.Commit(ctx, s.Commit)
	if err != nil {
		return nil, err
	}
	s.Tree = commit.Tree
	s.Dir, err = c.exported(ctx, s.Commit, s.Tree, snapshotPaths, snapshotPaths[:2], cache)
	return s, err
}

// Files gives those of the base commit's files and folders that it has, as they are there, in a folder of the cache.
func (c *Checkout) Files(ctx context.Context, paths []string, cache string) (dir string, err error) {
	base, _ := c.Base()
	commit, err := c.objects.Commit(ctx, base)
	if err != nil {
		return "", err
	}
	return c.exported(ctx, base, commit.Tree, paths, nil, cache)
}

// exported gives a folder in the cache with the paths of a commit that it has; without a needed one it fails.
func (c *Checkout) exported(ctx context.Context, commit, tree string, paths, needed []string, cache string) (dir string, err error) {
	// What an earlier version took of the same tree must not be found.
	kind := sha256.Sum256([]byte(strings.Join(paths, " ")))
	dir = filepath.Join(cache, "snapshots", hex.EncodeToString(kind[:4]), tree)
	if builds.Exists(dir) {
		return dir, nil
	}
	existing, err := c.repository.Existing(ctx, commit, paths)
	if err != nil {
		return "", fmt.Errorf("sources of %s: %w", commit, err)
	}
	for _, path := range needed {
		if !slices.Contains(existing, path) {
			return "", fmt.Errorf("commit %s has no %s: a build needs a PyTorch tree, or the part of one that the MPS backend is", commit, path)
		}
	}
	return dir, builds.MakeFolder(dir, func(made string) error {
		if len(existing) == 0 { // git takes that for all of them
			return nil
		}
		if err := c.repository.Export(ctx, commit, existing, made); err != nil {
			return fmt.Errorf("sources of %s: %w", commit, err)
		}
		return nil
	})
}
