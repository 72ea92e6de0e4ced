package validate

import (
	"context"

	"mpsforge/reports"
)

// checkoutStage compares the checkout with the baseline plus the series.
func checkoutStage(ctx context.Context, env *Env, stage *reports.Stage) error {
	if env.Checkout == nil {
		return Skipf("%s", env.NoCheckout)
	}
	exact, err := env.Checkout.CheckExact(ctx, env.Series)
	if err != nil {
		return err
	}
	identity := env.Identity
	identity.BaseCommit, identity.BaseProof = exact.BaseCommit, exact.BaseProof
	identity.HeadCommit, identity.HeadTree = exact.HeadCommit, exact.HeadTree
	stage.Facts = append(stage.Facts,
		reports.Fact{Name: "base commit", Value: exact.BaseCommit}, reports.Fact{Name: "base tree", Value: exact.BaseTree},
		reports.Fact{Name: "HEAD tree", Value: exact.HeadTree}, reports.Fact{Name: "expected tree", Value: exact.ExpectedTree})
	for _, deviation := range exact.Deviations {
		stage.Add(reports.Check{Name: "exact", Subject: "checkout", Verdict: reports.Failed, Detail: deviation})
	}
	if len(exact.Deviations) == 0 {
		stage.Add(reports.Check{Name: "exact", Subject: "checkout", Verdict: reports.Passed, Detail: "the tree of HEAD is the baseline's with the series applied once more; index and tracked files equal HEAD"})
	}
	return checkQueueUses(env.Checkout.Dir(), stage)
}
