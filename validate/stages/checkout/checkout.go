// Package checkout is the stage that asks whether a checkout is the baseline plus exactly this series, whether anything in
// it uses a stream's command buffer outside of its queue, whether an operator encodes without a guard, whether the guards in generated
// wrappers name what their schemas do, whether a kernel is encoded without its lock, whether an object that operators use ends with
// the process, and whether an exception can leave a function that none may leave. It reads the checkout and never changes it; that is package fork's.
package checkout

import (
	"context"
	"errors"

	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// Stage is the stage checkout of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "checkout", Question: "is the checkout the baseline plus exactly this series?",
		Needs:  []stage.Need{stage.NeedsCheckout},
		InEach: true,
		Run:    runStage,
	}
}

// clean is the verdict on a checkout in which a check found no fault. Where it had nothing to judge, it has failed: its patterns fit the sources no more.
func clean(name, rule string, judged int, of, detail string) reports.Check {
	check := reports.Check{Name: name, Subject: "checkout", Rule: rule, Verdict: reports.Passed, Detail: detail}
	if judged == 0 {
		check.Verdict = reports.Failed
		check.Detail = "nothing was judged: the checkout has no " + of + " that this check knows by its pattern (validate/stages/checkout)"
	}
	return check
}

// runStage compares the checkout with the baseline plus the series.
func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	exact, err := env.Checkout.CheckExact(ctx, env.Series)
	if err != nil {
		return err
	}
	identity := env.Identity
	identity.BaseCommit, identity.BaseProof = exact.BaseCommit, exact.BaseProof
	identity.HeadCommit, identity.HeadTree = exact.HeadCommit, exact.HeadTree
	report.Facts = append(report.Facts,
		reports.Fact{Name: "base commit", Value: exact.BaseCommit}, reports.Fact{Name: "base tree", Value: exact.BaseTree},
		reports.Fact{Name: "HEAD tree", Value: exact.HeadTree}, reports.Fact{Name: "expected tree", Value: exact.ExpectedTree})
	for _, deviation := range exact.Deviations {
		report.Add(reports.Check{Name: "exact", Subject: "checkout", Verdict: reports.Failed, Detail: deviation})
	}
	if len(exact.Deviations) == 0 {
		report.Add(reports.Check{Name: "exact", Subject: "checkout", Verdict: reports.Passed,
			Detail: "the tree of HEAD is the baseline's with the series applied once more; index and tracked files equal HEAD"})
	}
	if err := checkGuards(env.Checkout.Dir(), report); err != nil {
		return err
	}
	if err := checkWrappers(ctx, env, report); err != nil {
		return err
	}
	if err := checkEncodeLocks(env.Checkout.Dir(), report); err != nil {
		return err
	}
	if err := checkStatics(env.Checkout.Dir(), report); err != nil {
		return err
	}
	stock := func(file string) (string, error) {
		text, err := env.Checkout.File(ctx, exact.BaseCommit, file)
		return string(text), err
	}
	if err := checkSilentFunctions(env.Checkout.Dir(), stock, report); err != nil {
		return err
	}
	facts, err := env.Series.HostFacts()
	if errors.Is(err, patches.ErrNoHostFacts) {
		report.Add(reports.Check{Name: "use off the queue", Subject: "checkout", Rule: "10", Verdict: reports.Skipped, Detail: err.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	return checkQueueUses(env.Checkout.Dir(), facts.QueueUses, report)
}
