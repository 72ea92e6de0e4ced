package fork

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// Stack is a series as commits on a commit of the checkout. Nothing but objects was written for it.
type Stack struct {
	Onto      string         // commit
	Layers    []Layer        // in order, those that are not on the stack too
	Conflicts []PortConflict // those that the first layer with PortConflicts has
}

// Layer is one patch of a stack.
type Layer struct {
	PortedPatch
	Parent string         // of its commit
	Patch  *patches.Patch // as its commit has it; for a layer without a commit, the series' own
}

// Stack carries the series onto a commit, as Port does, and gives the commits. Empty means the base. Only names the
// patches to carry; empty means all.
func (c *Checkout) Stack(ctx context.Context, series *patches.Series, onto string, only []string, sink events.Sink) (*Stack, error) {
	if err := c.ensureBase(ctx, series); err != nil {
		return nil, err
	}
	if onto == "" {
		onto = c.state.Base
	} else if _, err := c.repository.ResolveCommit(ctx, onto); err != nil {
		return nil, fmt.Errorf("%w: %s is not in %s; get upstream's newest: git -C %s fetch --depth=1 https://github.com/pytorch/pytorch.git main, "+
			"and name it FETCH_HEAD: %w", ErrNoTarget, onto, c.Dir(), c.Dir(), err)
	}
	target := &patches.Series{Baseline: patches.Baseline{Schema: 1, Name: onto, Tag: onto}}
	ported, err := c.Port(ctx, series, target, PortOptions{To: onto, Only: only, Check: true}, sink)
	if err != nil {
		return nil, err
	}
	stack := &Stack{Onto: ported.Target, Conflicts: ported.Conflicts}
	parent, made := ported.Target, ported.made
	for i, patch := range ported.Patches {
		layer := Layer{PortedPatch: patch, Patch: series.Patches[i]}
		if patch.Commit != "" {
			layer.Parent, parent = parent, patch.Commit
			if len(made) > 0 {
				layer.Patch, made = made[0], made[1:]
			}
		}
		stack.Layers = append(stack.Layers, layer)
	}
	return stack, nil
}

// File gives the content of a file of a commit; nil if it has none there.
func (c *Checkout) File(ctx context.Context, commit, path string) ([]byte, error) {
	read, err := c.objects.Commit(ctx, commit)
	if err != nil {
		return nil, err
	}
	entry, _, err := c.objects.Find(ctx, read.Tree, path)
	if err != nil || entry.Mode != git.ModeFile && entry.Mode != git.ModeExecutable {
		return nil, err
	}
	content, err := c.objects.Blob(ctx, entry.ID)
	if content == nil {
		content = []byte{}
	}
	return content, err
}

// Scratch is a work tree of its own that reads the checkout's objects, for tools that need files on disk.
type Scratch struct {
	Dir        string
	repository *git.Repository
}

// NewScratch makes one in an empty folder. The checkout is not touched.
func (c *Checkout) NewScratch(ctx context.Context, dir string) (*Scratch, error) {
	repository, err := c.repository.CloneShared(ctx, dir)
	if err != nil {
		return nil, err
	}
	// What the user's tools put beside the sources, such as lintrunner's binaries, is the checkout's.
	const tools = ".lintbin"
	if _, err := os.Stat(filepath.Join(c.Dir(), tools)); err == nil {
		if err := os.Symlink(filepath.Join(c.Dir(), tools), filepath.Join(dir, tools)); err != nil {
			return nil, fmt.Errorf("make a scratch work tree: %w", err)
		}
	}
	return &Scratch{Dir: repository.WorkTree, repository: repository}, nil
}

// CheckOut makes the files those of a commit.
func (s *Scratch) CheckOut(ctx context.Context, commit string) error {
	return s.repository.CheckOut(ctx, commit, nil)
}

// ErrBranch is returned, wrapped, when branches cannot be made because of others.
var ErrBranch = errors.New("a branch is in the way")

// Branch is a branch to make.
type Branch struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
	Was    string `json:"was,omitempty"` // the commit that it was at; empty for a new one
}

// Branches are what MakeBranches found and did.
type Branches struct {
	Made  []Branch // new or moved
	Stale []string // others in the same folder
}

// MakeBranches points branches, which are in one folder, at commits: all of them or none. HEAD and the work tree stay as
// they are. One that is somewhere else is moved only with replace, and never if it is checked out. With check nothing is
// written.
func (c *Checkout) MakeBranches(ctx context.Context, folder string, wanted []Branch, replace, check bool) (*Branches, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	there, err := c.repository.Branches(ctx, folder)
	if err != nil {
		return nil, err
	}
	result := &Branches{Made: []Branch{}, Stale: []string{}}
	at := map[string]git.Branch{}
	for _, branch := range there {
		at[branch.Name] = branch
		result.Stale = append(result.Stale, branch.Name)
	}
	var updates []git.RefUpdate
	for _, branch := range wanted {
		was, exists := at[branch.Name]
		for _, other := range there {
			if strings.HasPrefix(branch.Name, other.Name+"/") || strings.HasPrefix(other.Name, branch.Name+"/") {
				return nil, fmt.Errorf("%w: %s of %s, and git cannot have %s beside it; rename it: git branch -m %s NAME", ErrBranch, other.Name,
					c.Dir(), branch.Name, other.Name)
			}
		}
		result.Stale = slices.DeleteFunc(result.Stale, func(name string) bool { return name == branch.Name })
		if exists && was.Commit == branch.Commit {
			continue
		}
		update := git.RefUpdate{Name: "refs/heads/" + branch.Name, New: branch.Commit, Old: git.NoObject}
		switch {
		case !exists:
		case was.WorkTree != "":
			return nil, fmt.Errorf("%w: %s is at %s and checked out in %s, so it cannot be moved to %s; check out another branch there", ErrBranch,
				branch.Name, was.Commit, was.WorkTree, branch.Commit)
		case !replace:
			return nil, fmt.Errorf("%w: %s of %s is at %s, the stack has %s; to discard what it has, use --replace", ErrBranch,
				branch.Name, c.Dir(), was.Commit, branch.Commit)
		default:
			branch.Was, update.Old = was.Commit, was.Commit
		}
		result.Made, updates = append(result.Made, branch), append(updates, update)
	}
	if check || len(updates) == 0 {
		return result, nil
	}
	return result, c.repository.UpdateRefs(ctx, "mpsforge pr", updates...)
}
