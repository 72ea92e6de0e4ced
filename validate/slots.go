package validate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"mpsforge/native/slots"
	"mpsforge/reports"
)

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

// checkConformance fills the stage with the checks of the allocator in a checkout's header.
func checkConformance(ctx context.Context, o stageOptions, stage *reports.Stage) error {
	if _, err := slots.Reference(); err != nil {
		return Skipf("%v", err)
	}
	tools := findCompiler(ctx, o.cache)
	if tools.err != nil {
		return Skipf("%v", tools.err)
	}
	header, err := os.ReadFile(o.header)
	if err != nil {
		return fmt.Errorf("slot allocator: %w", err)
	}
	digest := sha256.Sum256(header)
	identity := "MPSStreamSlots.h sha256:" + hex.EncodeToString(digest[:]) + " " + o.stamp
	source, err := headerSubject(header, identity)
	if err != nil {
		return err
	}
	c := newStageChecker(o, stage, "checkout")
	builder := subjectBuilder{o.cache, tools}
	path, err := builder.build(ctx, source.library())
	if err != nil {
		stage.Add(reports.Check{Name: "compile", Subject: c.subject, Rule: "2", Verdict: reports.Failed, Detail: firstLine(err), Output: err.Error()})
		return nil
	}
	subject, err := slots.Load(path)
	if err != nil {
		return err
	}
	found := subject.Identity()
	stage.Facts = append(stage.Facts, reports.Fact{Name: "identity", Value: found}, reports.Fact{Name: "compiler", Value: tools.version})
	if found != identity {
		stage.Add(reports.Check{Name: "identity", Subject: c.subject, Verdict: reports.Failed, Detail: fmt.Sprintf("the loaded library was built from something else: expected %q, found %q", identity, found)})
		return nil
	}
	stage.Add(reports.Check{Name: "identity", Subject: c.subject, Verdict: reports.Passed, Detail: found})
	// First what runs in processes of its own. A subject that fails there is not let into this one: it could crash it or
	// hang it.
	if err := c.runGroups(ctx, stage,
		func() []reports.Check { return checkSchedules(ctx, c, builder, header) },
		func() []reports.Check { return checkSanitizers(ctx, c, tools, source) }); err != nil {
		return err
	}
	if stage.Verdict == reports.Failed {
		stage.Add(reports.Check{Name: "scenarios and histories", Subject: c.subject, Rule: "2, 7, 8, 26", Verdict: reports.NotRun, Detail: "after the failure above the library is not run inside this process"})
		return nil
	}
	return c.runGroups(ctx, stage, func() []reports.Check { return checkInProcess(ctx, c, subject) })
}
