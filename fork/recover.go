package fork

import (
	"context"
	"fmt"
	"os"
	"strings"

	"mpsforge/fork/git"
)

// Direction says how Recover ends an interrupted run.
type Direction int

// The directions. Automatic takes the one that loses nothing and refuses when there is none.
const (
	Automatic Direction = iota
	Finish
	RollBack
)

// Recovery is what Recover found and did.
type Recovery struct {
	Checkout string `json:"checkout"`
	Did      string `json:"did"` // a sentence; empty when there was nothing to do
}

// Recover ends a run that was cut off. Finish and RollBack overwrite what is in the files concerned, whatever it
// is. With removeLocks the locks that a killed git left are removed first: the caller must be sure that no git runs.
func (c *Checkout) Recover(ctx context.Context, direction Direction, removeLocks bool) (*Recovery, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c.fetching() {
		if direction == Finish {
			return nil, c.Interrupted() // it says how
		}
		sentence, err := c.clearFetch(ctx)
		return &Recovery{Checkout: c.Dir(), Did: sentence}, err
	}
	var did []string
	for _, lock := range c.repository.Locks() {
		if !removeLocks {
			break
		}
		if err := os.Remove(lock); err != nil {
			return nil, fmt.Errorf("remove git's lock: %w", err)
		}
		did = append(did, "removed "+lock)
	}
	sentence, err := c.endPending(ctx, direction, false)
	if err != nil {
		return nil, err
	}
	if sentence != "" {
		did = append(did, sentence)
	}
	return &Recovery{Checkout: c.Dir(), Did: strings.Join(did, "; ")}, nil
}

// clearFetch removes what a fetch left that did not end, and says what it removed. It looks again under the lock, which
// the caller holds: the fetch may have ended since.
func (c *Checkout) clearFetch(ctx context.Context) (string, error) {
	again, err := Open(ctx, c.Dir(), nil)
	if err != nil {
		return "", err
	}
	defer again.Close()
	if !again.fetching() {
		return "", nil
	}
	unlock, err := lockFolder(c.Dir())
	if err != nil {
		return "", err
	}
	defer unlock()
	again.made = []string{c.Dir()}
	done, err := again.discard(context.WithoutCancel(ctx))
	if err != nil {
		return "", err
	}
	sentence := fmt.Sprintf("removed what the interrupted fetch of %s left in %s: its repository, and %d files of the work tree", c.state.Baseline,
		c.Dir(), done.removed)
	if len(done.kept) > 0 {
		sentence += fmt.Sprintf("; kept %d files that were changed since, the first: %s", len(done.kept), done.kept[0])
	}
	return sentence, nil
}

// recoverPending ends an interrupted run before another change begins.
func (c *Checkout) recoverPending(ctx context.Context, check bool) (string, error) {
	if c.state == nil || c.state.Pending == nil {
		return "", nil
	}
	if c.fetching() {
		return "", c.Interrupted()
	}
	return c.endPending(ctx, Automatic, check)
}

// endPending finishes or undoes the pending change. With check it only says whether it could.
func (c *Checkout) endPending(ctx context.Context, direction Direction, check bool) (string, error) {
	if c.state == nil || c.state.Pending == nil {
		return "", nil
	}
	pending := c.state.Pending
	story := fmt.Sprintf("found an interrupted %s of %s", pending.Command, c.Dir())
	if err := c.locked(); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrInterrupted, story, err)
	}
	if c.repository.Head != c.state.Head && c.repository.Head != pending.To {
		if direction == Automatic {
			return "", fmt.Errorf("%w: %s, and HEAD was moved since, to %s; put it back (git reset --soft %s), or keep it and drop the record of "+
				"that run: %s",
				ErrForeign, story, c.repository.Head, c.state.Head, c.command("recover", "--rollback"))
		}
		if direction == Finish {
			return "", fmt.Errorf("%w: %s, and HEAD was moved since, to %s; only --rollback is possible, which leaves the files alone", ErrForeign,
				story, c.repository.Head)
		}
		before := *c.state
		before.Pending = nil
		return story + " and dropped its record; HEAD and files are as they were found", c.record(ctx, "recover", &before, "")
	}
	from, err := c.objects.Commit(ctx, c.state.Head)
	if err != nil {
		return "", err
	}
	to, err := c.objects.Commit(ctx, pending.To)
	if err != nil {
		return "", err
	}
	changes, err := c.objects.Diff(ctx, from.Tree, to.Tree)
	if err != nil {
		return "", err
	}
	begun, foreign, err := c.progress(ctx, changes)
	if err != nil {
		return "", err
	}
	if len(foreign) > 0 && direction == Automatic {
		var lines strings.Builder
		for _, drift := range foreign {
			lines.WriteString("\n  " + drift.String())
		}
		return "", fmt.Errorf("%w: %s, and files that it concerns were changed since:%s\nsave them if they are yours, then choose: %s, or "+
			"%s (both overwrite these files)",
			ErrInterrupted, story, lines.String(), c.command("recover", "--finish"), c.command("recover", "--rollback"))
	}
	if check {
		return story + "; a run without --check would fix it first", nil
	}
	ctx = context.WithoutCancel(ctx)
	moved := c.repository.Head != c.state.Head // all but the record was done
	if direction == Finish || direction == Automatic && (begun || moved) {
		if err := c.finishMove(ctx, pending.Command, changes); err != nil {
			return "", err
		}
		return story + " and finished it", nil
	}
	if direction == RollBack && (begun || moved || len(foreign) > 0) {
		if err := c.moveWorkTree(ctx, c.state.Head, changes); err != nil {
			return "", err
		}
	}
	if err := c.rollBack(ctx, pending.Command, changes); err != nil {
		return "", err
	}
	return story + " and rolled it back", nil
}

// progress reports whether the work tree or index has begun to change, and which paths hold what neither side has.
func (c *Checkout) progress(ctx context.Context, changes []git.Change) (begun bool, foreign []Drift, err error) {
	index, err := c.repository.IndexEntries(ctx, pathsOf(changes))
	if err != nil {
		return false, nil, err
	}
	removed := removedBy(changes)
	for _, change := range changes {
		inIndex, reason := indexState(index[change.Path], change)
		if inIndex == isOther {
			foreign = append(foreign, Drift{change.Path, reason})
			continue
		}
		onDisk, reason, err := c.workFile(ctx, change, removed)
		if err != nil {
			return false, nil, err
		}
		if onDisk == isOther {
			foreign = append(foreign, Drift{change.Path, reason})
		}
		begun = begun || inIndex != isOld || onDisk != isOld
	}
	return begun, foreign, nil
}
