// Package conformance is the stage that compiles the slot allocator as it is in the checkout and compares it with the reference.
// The checks themselves are in package allocator, which the stage reference runs too.
package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"mpsforge/internal/cxx"
	"mpsforge/internal/words"
	"mpsforge/native/slots"
	"mpsforge/reports"
	"mpsforge/validate/judge/allocator"
	"mpsforge/validate/stage"
)

// Scenario is what trailers of patches call the scenarios of this stage, which are about the slot allocator alone.
const Scenario = "slot conformance"

// Stage is the stage conformance of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "conformance", Question: "does the slot allocator taken from the checkout behave as the reference?",
		Needs: []stage.Need{stage.NeedsCache, stage.NeedsCheckout, stage.NeedsCompiler, stage.NeedsReference},
		Run:   runStage,
	}
}

// runStage checks the allocator that is in the checkout's work tree, which is what a build would compile.
func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	if !slices.Contains(env.Series.TouchedPaths(), allocator.Header) {
		return stage.Skipf("the patches on the checkout end before thread-leases, which brings the slot allocator")
	}
	_, asHead, err := env.Checkout.WorkFile(ctx, allocator.Header)
	if err != nil {
		return fmt.Errorf("the checkout has no slot allocator (is the series applied?): %w", err)
	}
	if !asHead {
		return fmt.Errorf("%s of the work tree is not what HEAD has; commit or restore it, so that the report can name what was verified", allocator.Header)
	}
	commit, tree, err := env.Checkout.Head(ctx)
	if err != nil {
		return err
	}
	report.Facts = append(report.Facts, reports.Fact{Name: "HEAD", Value: commit}, reports.Fact{Name: "HEAD tree", Value: tree})
	options := stage.CheckOptionsOf(env)
	options.Header = filepath.Join(env.Checkout.Dir(), filepath.FromSlash(allocator.Header))
	options.Stamp = fmt.Sprintf("series:%s tree:%s", env.Series.Digest(), tree)
	return checkConformance(ctx, options, report)
}

// checkConformance fills the stage with the checks of the allocator in a checkout's header.
func checkConformance(ctx context.Context, o stage.CheckOptions, report *reports.Stage) error {
	if _, err := slots.Reference(); err != nil {
		return stage.Skipf("%v", err)
	}
	tools := cxx.Find(ctx, o.Cache)
	if tools.Err != nil {
		return stage.Skipf("%v", tools.Err)
	}
	header, err := os.ReadFile(o.Header)
	if err != nil {
		return fmt.Errorf("slot allocator: %w", err)
	}
	digest := sha256.Sum256(header)
	identity := "MPSStreamSlots.h sha256:" + hex.EncodeToString(digest[:]) + " " + o.Stamp
	source, err := allocator.FromHeader(header, identity)
	if err != nil {
		return err
	}
	c := stage.NewChecker(o, report, "checkout")
	c.Total = allocator.Schedules + allocator.Sanitizers + allocator.InProcess
	builder := cxx.Builder{Cache: o.Cache, Compiler: tools}
	path, err := builder.Build(ctx, source.Library())
	if err != nil {
		report.Add(reports.Check{Name: "compile", Subject: c.Subject, Rule: "2", Verdict: reports.Failed, Detail: words.FirstLine(err.Error()),
			Output: err.Error()})
		return nil
	}
	subject, err := slots.Load(path)
	if err != nil {
		return err
	}
	found := subject.Identity()
	report.Facts = append(report.Facts, reports.Fact{Name: "identity", Value: found}, reports.Fact{Name: "compiler", Value: tools.Version})
	if found != identity {
		report.Add(reports.Check{Name: "identity", Subject: c.Subject, Verdict: reports.Failed,
			Detail: fmt.Sprintf("the loaded library was built from something else: expected %q, found %q", identity, found)})
		return nil
	}
	report.Add(reports.Check{Name: "identity", Subject: c.Subject, Verdict: reports.Passed, Detail: found})
	// First what runs in processes of its own. A subject that fails there is not let into this one: it could crash it or
	// hang it.
	if err := c.RunGroups(ctx, report,
		func() []reports.Check { return allocator.CheckSchedules(ctx, c, builder, header) },
		func() []reports.Check { return allocator.CheckSanitizers(ctx, c, tools, source) }); err != nil {
		return err
	}
	if report.Verdict == reports.Failed {
		report.Add(reports.Check{Name: "scenarios and histories", Subject: c.Subject, Rule: "2, 7, 8, 26", Verdict: reports.NotRun,
			Detail: "after the failure above the library is not run inside this process"})
		return nil
	}
	return c.RunGroups(ctx, report, func() []reports.Check { return allocator.CheckInProcess(ctx, c, subject) })
}
