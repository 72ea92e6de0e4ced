package git

import (
	"context"
	"fmt"
	"strings"

	"mpsforge/internal/run"
)

// Merge is what merging two commits gave.
type Merge struct {
	Tree      string // with conflict markers in the files that conflict
	Conflicts []Conflict
}

// Conflict is one path that could not be merged. The entries are zero on a side that lacks the file.
type Conflict struct {
	Path               string
	Base, Ours, Theirs Entry
}

// MergeTree merges two commits in the object store: nothing but objects is written. Conflict markers show the common
// ancestor as well, and the labels.
func (r *Repository) MergeTree(ctx context.Context, ours, theirs string) (*Merge, error) {
	command, remove, err := r.apart("-c", "merge.conflictStyle=diff3", "merge-tree", "--write-tree", "--no-messages", "-z", ours, theirs)
	if err != nil {
		return nil, err
	}
	defer remove()
	output, err := runCommand(ctx, command)
	if err != nil && run.ExitCode(err) != 1 { // 1: there are conflicts
		return nil, fmt.Errorf("merge %s and %s: %w", ours, theirs, err)
	}
	merge, err := parseMerge(string(output))
	if err != nil {
		return nil, fmt.Errorf("merge %s and %s: %w", ours, theirs, err)
	}
	return merge, nil
}

// parseMerge reads the form that git's manual gives under -z: the tree, then the conflicted entries.
func parseMerge(output string) (*Merge, error) {
	records := strings.Split(strings.TrimSuffix(output, "\x00"), "\x00")
	merge := &Merge{Tree: records[0]}
	if len(merge.Tree) != 40 {
		return nil, fmt.Errorf("git merge-tree printed %.80q", output)
	}
	for _, record := range records[1:] {
		meta, path, found := strings.Cut(record, "\t")
		var entry Entry
		var stage int
		if _, err := fmt.Sscanf(meta, "%s %s %d", &entry.Mode, &entry.ID, &stage); !found || err != nil || stage < 1 || stage > 3 {
			return nil, fmt.Errorf("git merge-tree printed %q", record)
		}
		if n := len(merge.Conflicts); n == 0 || merge.Conflicts[n-1].Path != path {
			merge.Conflicts = append(merge.Conflicts, Conflict{Path: path})
		}
		conflict := &merge.Conflicts[len(merge.Conflicts)-1]
		*[]*Entry{&conflict.Base, &conflict.Ours, &conflict.Theirs}[stage-1] = entry
	}
	return merge, nil
}
