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
func conformanceStage(ctx context.Context, env *Env, stage *reports.Stage) error {
	if env.Checkout == nil {
		return Skipf("%s", env.NoCheckout)
	}
	_, asHead, err := env.Checkout.WorkFile(ctx, slotHeader)
	if err != nil {
		return fmt.Errorf("the checkout has no slot allocator (is the series applied?): %w", err)
	}
	if !asHead {
		return fmt.Errorf("%s of the work tree is not what HEAD has; commit or restore it, so that what is verified has a name", slotHeader)
	}
	commit, tree, err := env.Checkout.Head(ctx)
	if err != nil {
		return err
	}
	stage.Facts = append(stage.Facts, reports.Fact{Name: "HEAD", Value: commit}, reports.Fact{Name: "HEAD tree", Value: tree})
	options := optionsOf(env)
	options.header = filepath.Join(env.Checkout.Dir(), filepath.FromSlash(slotHeader))
	options.stamp = fmt.Sprintf("series:%s tree:%s", env.Series.Digest(), tree)
	return checkConformance(ctx, options, stage)
}
