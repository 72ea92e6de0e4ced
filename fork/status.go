package fork

import (
	"context"
	"fmt"
	"sort"

	"mpsforge/fork/git"
	"mpsforge/patches"
)

// Condition is the state of a checkout as a whole.
type Condition string

// The conditions, from best to worst known.
const (
	AtBase        Condition = "base"           // the baseline, no patch
	PartlyApplied Condition = "partly applied" // some patches of the series, in order
	FullyApplied  Condition = "applied"        // the whole series
	Interrupted   Condition = "interrupted"    // a run was cut off
	Moved         Condition = "moved"          // HEAD is not where mpsforge left it
	Unknown       Condition = "unknown"        // nothing recorded, and not the baseline
)

// Status is what Checkout.Status found. Drift and Notes explain every deviation in words.
type Status struct {
	Checkout  string        `json:"checkout"`
	Condition Condition     `json:"condition"`
	Baseline  string        `json:"baseline"`
	Base      string        `json:"base,omitempty"`
	Proof     string        `json:"proof,omitempty"`
	Source    string        `json:"source,omitempty"`
	Head      string        `json:"head"`
	Patches   []PatchStatus `json:"patches"`
	Drift     []Drift       `json:"drift"`
	Notes     []string      `json:"notes"`
}

// PatchStatus is one patch of the series or of the checkout.
type PatchStatus struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Commit string `json:"commit,omitempty"`
}

// Applied lists the patches that the checkout holds, in order.
func (s *Status) Applied() []string {
	applied := []string{}
	for _, patch := range s.Patches {
		if patch.State != PatchNotApplied {
			applied = append(applied, patch.Name)
		}
	}
	return applied
}

// States of a patch.
const (
	PatchApplied    = "applied"
	PatchNotApplied = "not applied"
	PatchChanged    = "applied, but its file was changed since"
	PatchLeft       = "applied, but no longer in the series"
)

// Status compares the checkout with what is recorded and with the series. It writes nothing.
func (c *Checkout) Status(ctx context.Context, series *patches.Series) (*Status, error) {
	status := &Status{Checkout: c.Dir(), Head: c.repository.Head, Baseline: series.Baseline.Name, Patches: []PatchStatus{}, Drift: []Drift{}, Notes: []string{}}
	if err := c.Contradicts(ctx, series); err != nil {
		return nil, err
	}
	if operation := c.repository.OperationInProgress(); operation != "" {
		status.Notes = append(status.Notes, operation+" is under way (git status shows how to end it)")
	}
	for _, lock := range c.repository.Locks() {
		status.Notes = append(status.Notes, lock+" exists: a git command is running, or one was killed; if none is running: "+
			c.command("recover", "--remove-locks"))
	}
	if c.state == nil {
		proof, err := c.identify(ctx, series, c.repository.Head)
		if err != nil {
			return nil, err
		}
		if proof == "" {
			status.Condition = Unknown
			status.Notes = append(status.Notes, c.wrongBaseline(ctx, series).Error())
			return status, nil
		}
		if err := c.ensureBase(ctx, series); err != nil {
			return nil, err
		}
		status.Notes = append(status.Notes, "nothing is recorded yet; mpsforge apply will record it")
	}
	status.Baseline, status.Base, status.Proof, status.Source = c.state.Baseline, c.state.Base, c.state.Proof, c.state.Source
	if port := c.state.Port; port != nil {
		status.Notes = append(status.Notes,
			fmt.Sprintf("a port to %s is stopped at %s; fix the files below %s and run: %s, or give it up: %s",
				port.To, port.Stopped, c.fixDir(port.Stopped), c.command("port", "--continue"), c.command("port", "--abort")))
	}
	count := c.applied()
	c.patchStates(series, count, status)
	switch {
	case c.state.Pending != nil:
		status.Condition = Interrupted
		status.Notes = append(status.Notes, c.Interrupted().Error())
	case count < 0:
		status.Condition = Moved
		note, err := c.describeMove(ctx)
		if err != nil {
			return nil, err
		}
		status.Notes = append(status.Notes, note)
	case count == 0:
		status.Condition = AtBase
	case count < len(series.Patches):
		status.Condition = PartlyApplied
	default:
		status.Condition = FullyApplied
	}
	if c.repository.Head == "" {
		return status, nil
	}
	var err error
	status.Drift, err = c.touchedDrift(ctx, series)
	return status, err
}

func (c *Checkout) patchStates(series *patches.Series, count int, status *Status) {
	inSeries := map[string]bool{}
	for i, patch := range series.Patches {
		inSeries[patch.Name] = true
		state := PatchStatus{Name: patch.Name, State: PatchNotApplied}
		if i < len(c.state.Applied) && i < count && c.state.Applied[i].Name == patch.Name {
			state.State, state.Commit = PatchApplied, c.state.Applied[i].Commit
			if c.state.Applied[i].SHA256 != patch.SHA256 {
				state.State = PatchChanged
			}
		}
		status.Patches = append(status.Patches, state)
	}
	for i, applied := range c.state.Applied {
		if i < count && !inSeries[applied.Name] {
			status.Patches = append(status.Patches, PatchStatus{Name: applied.Name, State: PatchLeft, Commit: applied.Commit})
		}
	}
}

// ownCommits bounds how far back from HEAD the baseline, or the commit that mpsforge left, is looked for. A series may be as long.
const ownCommits = 1000

// describeMove says how HEAD lies to the commit that mpsforge left it at.
func (c *Checkout) describeMove(ctx context.Context) (string, error) {
	id := c.repository.Head
	for distance := 1; distance <= ownCommits; distance++ {
		commit, err := c.objects.Commit(ctx, id)
		if err != nil {
			return "", err
		}
		if len(commit.Parents) == 0 {
			break
		}
		if id = commit.Parents[0]; id == c.state.Head {
			return fmt.Sprintf("HEAD has commits on top of where mpsforge left it (%s): %d", c.state.Head, distance), nil
		}
	}
	return fmt.Sprintf("HEAD is %s; mpsforge left it at %s, which is not among the last %d commits", c.repository.Head, c.state.Head, ownCommits), nil
}

// touchedDrift compares every path that the series or the applied patches touch with HEAD.
func (c *Checkout) touchedDrift(ctx context.Context, series *patches.Series) ([]Drift, error) {
	touched := map[string]bool{}
	for _, path := range series.TouchedPaths() {
		touched[path] = true
	}
	for _, applied := range c.state.Applied {
		for _, path := range applied.Paths {
			touched[path] = true
		}
	}
	changes := make([]git.Change, 0, len(touched))
	for path := range touched {
		entry, known := c.state.Entries[path]
		if !known || c.repository.Head != c.state.Head {
			head, err := c.objects.Commit(ctx, c.repository.Head)
			if err != nil {
				return nil, err
			}
			if entry, _, err = c.objects.Find(ctx, head.Tree, path); err != nil {
				return nil, err
			}
		}
		changes = append(changes, git.Change{Path: path, Old: entry, New: entry})
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Path < changes[j].Path })
	drifts, err := c.drift(ctx, changes)
	if drifts == nil {
		drifts = []Drift{}
	}
	return drifts, err
}
