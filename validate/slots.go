package validate

import (
	"context"
	"fmt"
	"path/filepath"

	"mpsforge/reports"
)

// slotHeader is the slot allocator's path in a checkout.
const slotHeader = "aten/src/ATen/mps/MPSStreamSlots.h"

// conformanceStage checks the allocator that stands in the checkout's work tree, which is what a build would compile.
func (p *pipeline) conformanceStage(ctx context.Context, stage *reports.Stage) error {
	if p.Checkout == nil {
		return skipf("%s", p.NoCheckout)
	}
	_, asHead, err := p.Checkout.WorkFile(ctx, slotHeader)
	if err != nil {
		return fmt.Errorf("the checkout has no slot allocator (is the series applied?): %w", err)
	}
	if !asHead {
		return fmt.Errorf("%s of the work tree is not what HEAD has; commit or restore it, so that what is verified has a name", slotHeader)
	}
	commit, tree, err := p.Checkout.Head(ctx)
	if err != nil {
		return err
	}
	stage.Facts = append(stage.Facts, reports.Fact{Name: "HEAD", Value: commit}, reports.Fact{Name: "HEAD tree", Value: tree})
	options := p.stageOptions()
	options.header = filepath.Join(p.Checkout.Dir(), filepath.FromSlash(slotHeader))
	options.stamp = fmt.Sprintf("series:%s tree:%s", p.Series.Digest(), tree)
	return checkConformance(ctx, options, stage)
}
