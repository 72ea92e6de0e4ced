package ci

import (
	"context"
	"fmt"

	"mpsforge/fork"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// Status is how a series compares with upstream.
type Status struct {
	Checkout string        `json:"checkout"`
	Baseline string        `json:"baseline"`
	Onto     string        `json:"onto"`  // commit
	Limit    int           `json:"limit"` // changed lines that upstream allows a pull request
	Patches  []PatchStatus `json:"patches"`
}

// PatchStatus is one patch.
type PatchStatus struct {
	fork.PortedPatch
	Lines     int                 `json:"lines"`
	TooLarge  bool                `json:"too_large"`
	Upstream  string              `json:"upstream_status"` // its trailer
	Conflicts []fork.PortConflict `json:"conflicts,omitempty"`
}

// GetStatus carries the series onto a commit and reports the outcome for each patch. Nothing but objects is written.
func GetStatus(ctx context.Context, checkout *fork.Checkout, series *patches.Series, onto string, sink events.Sink) (*Status, error) {
	only, err := wanted(series)
	if err != nil {
		return nil, err
	}
	stack, err := checkout.Stack(ctx, series, onto, only, sink)
	if err != nil {
		return nil, err
	}
	gate, err := readGate(ctx, checkout, stack.Onto)
	if err != nil {
		return nil, err
	}
	status := &Status{Checkout: checkout.Dir(), Baseline: series.Baseline.Name, Onto: stack.Onto, Limit: gate.limit, Patches: []PatchStatus{}}
	for i, layer := range stack.Layers {
		one := PatchStatus{PortedPatch: layer.PortedPatch, Lines: gate.lines(layer.Patch), Upstream: upstreamStatus(series.Patches[i])}
		one.TooLarge = one.Lines > gate.limit
		if layer.Outcome == fork.PortConflicts {
			one.Conflicts = stack.Conflicts
		}
		status.Patches = append(status.Patches, one)
	}
	return status, nil
}

// String is the patch on one line.
func (s PatchStatus) String() string {
	size := fmt.Sprintf("%d lines", s.Lines)
	if s.TooLarge {
		size += ", too large"
	}
	return fmt.Sprintf("%-28s %-18s %-16s %s", s.Name, s.Outcome, size, s.Upstream)
}
