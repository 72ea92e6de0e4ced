package fork

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"mpsforge/fork/git"
	"mpsforge/patches"
)

// stateSchema is the version of state.json. It rises when an older mpsforge could misread the file.
const stateSchema = 1

// stateFile is the one file in the tree of a state commit.
const stateFile = "state.json"

// State is what mpsforge has recorded about one work tree. It lives in a commit on a ref of its own, never in a loose
// file, so that an update is atomic; the state before is that commit's parent.
type State struct {
	Schema   int    `json:"schema"`
	Worktree string `json:"worktree"` // name of the work tree it belongs to; linked work trees share refs
	Baseline string `json:"baseline"`
	Base     string `json:"base"` // commit id of the baseline in this repository
	// Proof says how the base is known to be the baseline, in words for people.
	Proof   string    `json:"proof"`
	Source  string    `json:"source"`  // where the tree came from
	Applied []Applied `json:"applied"` // in order
	// Head is the commit that HEAD was left at: the base or the last applied patch's commit.
	Head string `json:"head"`
	// Entries are the files that the series touches, as Head has them: a status then needs no tree. May be empty.
	Entries map[string]git.Entry `json:"entries"`
	Pending *Pending             `json:"pending,omitempty"`
	Port    *Port                `json:"port,omitempty"`
}

// Applied is one patch of the series as a commit.
type Applied struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of the patch file
	Commit string `json:"commit"`
	// Paths are the files that the patch touches, both names of a renamed one.
	Paths []string `json:"paths"`
	// Exported reports that the patch file was written by export from this commit.
	Exported bool `json:"exported,omitempty"`
}

// Pending is a change that was begun. It is recorded before the work tree is touched and replaced, together with the
// move of HEAD, when all is done; finding it later means that a run was cut off in between.
type Pending struct {
	Command string `json:"command"` // "apply", "unapply" or "fetch"
	To      string `json:"to"`      // commit that HEAD is to move to; empty for a fetch
	// Applied is the list of patches once To is reached.
	Applied []Applied `json:"applied"`
}

// ErrStateUnreadable is returned, wrapped, when the state ref does not hold what this version wrote.
var ErrStateUnreadable = errors.New("the recorded state cannot be read")

// loadState finds the state of this work tree among the state commits of the repository; nil when there is none.
func loadState(ctx context.Context, repository *git.Repository, objects *git.Objects) (*State, string, error) {
	for _, id := range repository.StateIDs {
		data, err := objects.FileAt(ctx, id, stateFile)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %s: %w", ErrStateUnreadable, id, err)
		}
		state, err := decodeState(data, repository.WorktreeID)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %s of commit %s: %w", ErrStateUnreadable, stateFile, id, err)
		}
		if state != nil {
			return state, id, nil
		}
	}
	return nil, git.NoObject, nil
}

// decodeState reads what addState wrote; nil where it is another work tree's. Whoever made the checkout may have written it, and ids
// and paths become arguments of git and files that are looked at: they must be what they are called.
func decodeState(data []byte, worktree string) (*State, error) {
	var state State
	if err := json.Unmarshal(data, &state); err != nil {
		return nil, err
	}
	if state.Worktree != worktree {
		return nil, nil
	}
	if state.Schema != stateSchema {
		return nil, fmt.Errorf("it has schema %d, this mpsforge reads %d; use the mpsforge that wrote it", state.Schema, stateSchema)
	}
	commits := []string{state.Base, state.Head}
	applied := slices.Clone(state.Applied)
	var paths []string
	if state.Pending != nil {
		commits, applied = append(commits, state.Pending.To), append(applied, state.Pending.Applied...)
	}
	if port := state.Port; port != nil {
		commits = append(commits, port.Target)
		for _, done := range port.Done {
			commits = append(commits, done.Commit)
		}
	}
	for _, patch := range applied {
		commits, paths = append(commits, patch.Commit), append(paths, patch.Paths...)
	}
	for path, entry := range state.Entries {
		commits, paths = append(commits, entry.ID), append(paths, path)
	}
	for _, id := range commits {
		if id != "" && !objectID.MatchString(id) {
			return nil, fmt.Errorf("%.80q is not the id of an object", id)
		}
	}
	for _, path := range paths {
		if err := patches.CheckPath(path); err != nil {
			return nil, err
		}
	}
	return &state, nil
}

var objectID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// addState makes the commit that holds a state. Its parents keep the former state, the base and the patched commits
// from being collected as garbage.
func addState(ctx context.Context, objects *git.Objects, state *State, former string) (string, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(state); err != nil {
		return "", fmt.Errorf("write state: %w", err)
	}
	blob, err := objects.AddBlob(data.Bytes())
	if err != nil {
		return "", err
	}
	tree, err := objects.EditTree(ctx, "", map[string]git.Entry{stateFile: {Mode: git.ModeFile, ID: blob}})
	if err != nil {
		return "", err
	}
	commit := git.Commit{Tree: tree, Message: "mpsforge state\n",
		Author: git.Signature{Name: "mpsforge", Email: "mpsforge@example.invalid", When: time.Now()}}
	parents := []string{former, state.Base, state.Head}
	if state.Pending != nil {
		parents = append(parents, state.Pending.To)
	}
	if state.Port != nil {
		parents = append(parents, state.Port.Target, state.Port.head())
	}
	seen := map[string]bool{git.NoObject: true, "": true}
	for _, parent := range parents {
		if !seen[parent] {
			commit.Parents = append(commit.Parents, parent)
			seen[parent] = true
		}
	}
	return objects.AddCommit(commit)
}

// noteEntries fills in Entries for the given paths and those of the applied patches.
func (c *Checkout) noteEntries(ctx context.Context, state *State, paths []string) error {
	head, err := c.objects.Commit(ctx, state.Head)
	if err != nil {
		return err
	}
	state.Entries = map[string]git.Entry{}
	for _, applied := range state.Applied {
		paths = append(paths, applied.Paths...)
	}
	for _, path := range paths {
		if state.Entries[path], _, err = c.objects.Find(ctx, head.Tree, path); err != nil {
			return err
		}
	}
	return nil
}

// record writes a state and moves the state ref to it, after HEAD when head is not empty. These are two transactions because git moves
// the refs of one transaction one after the other: killed in between, it would leave a record that hides the open change.
func (c *Checkout) record(ctx context.Context, reason string, state *State, head string) (err error) {
	id, err := addState(ctx, c.objects, state, c.stateID)
	if err != nil {
		return err
	}
	if err := c.objects.Flush(); err != nil {
		return err
	}
	refs := c.refs
	if refs == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		if refs, err = c.repository.StartRefs("mpsforge " + reason); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, refs.Close()) }()
	}
	if head != "" && head != c.repository.Head {
		if err = refs.Update(git.RefUpdate{Name: "HEAD", New: head, Old: c.repository.Head}); err == nil {
			c.repository.Head = head
		}
	}
	if err == nil {
		err = refs.Update(git.RefUpdate{Name: c.repository.StateRef(), New: id, Old: c.stateID})
	}
	if err != nil {
		c.refs = nil // its process has ended; what undoes the change takes a new one
		return errors.Join(err, c.locked())
	}
	c.state, c.stateID = state, id
	return nil
}
