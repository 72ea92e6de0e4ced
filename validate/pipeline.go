// Package validate is the verification pipeline: its stages, what they check, and the verdicts.
//
// Run runs stages and gives a report (package reports); StageNames lists them in their order. Beside the pipeline there are
// parts of it to use alone: Explain and Classify for the texts of crashes, PythonTests for the Python parallel tests,
// WriteRepro for a reproducer, and Diagnose, which tells what this machine can run and what mends each gap.
//
// Every stage proves first what it looks at (which tree, which series, which loaded library) and gives a verdict or the
// reason why it has none. A stage that did not run never looks like one that passed.
package validate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"mpsforge/fork"
	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/internal/suggest"
	"mpsforge/patches"
	"mpsforge/reports"
)

// ErrUnknownStage is returned, wrapped, for a stage name that does not exist.
var ErrUnknownStage = errors.New("no such stage")

// Options choose what a verification does.
type Options struct {
	Series *patches.Series
	Lint   *patches.LintResult
	// Checkout is nil when there is none; NoCheckout then says why.
	Checkout   *fork.Checkout
	NoCheckout string
	Stages     []string // empty: all; one that is named must run
	Require    []string // more stages that must run
	Quick      bool
	KeepGoing  bool
	Seed       uint64 // 0: taken from the clock
	Cache      string // folder for compiled subjects
	Artifacts  string // folder for what a failure leaves
	Tool       reports.Tool
	Host       HostOptions // of the runtime stage
	Python     PythonOptions
}

// pipeline is one run.
type pipeline struct {
	Options
	sink   events.Sink
	report *reports.Report
}

// stage is one step of the pipeline.
type stage struct {
	name, question string
	run            func(*pipeline, context.Context, *reports.Stage) error
}

// stages lists the pipeline in its order. A stage without a function is named in the design but not in this version.
func stages() []stage {
	return []stage{
		{"series", "is the series well-formed and exact for its baseline?", (*pipeline).seriesStage},
		{"checkout", "is the checkout the baseline plus exactly this series?", (*pipeline).checkoutStage},
		{"reference", "does the reference pool obey the pool's specification, race-free?", (*pipeline).referenceStage},
		{"conformance", "does the slot allocator taken from the checkout behave as the reference?", (*pipeline).conformanceStage},
		{"runtime", "do the checkout's real MPS sources behave, stock and patched?", (*pipeline).runtimeStage},
		{"device", "the same scenarios on real Metal", nil},
		{"python", "do the Python parallel tests pass on device mps?", (*pipeline).pythonStage},
		{"bench", "what do threads, processes and batches gain?", (*pipeline).benchStage},
	}
}

// limits is printed with every report.
var limits = []string{
	"The software Metal shows that code keeps Metal's documented rules and the modelled observations. It cannot show what Apple's closed frameworks do beyond them; only the device and python stages on a Mac can.",
	"The runtime stage compiles and runs PyTorch's own MPS sources, but Apple's Metal, MPS and MPSGraph are ours there: graphs are computed by libtorch's CPU operators, kernels by functions of the host. It speaks of locks, queues, lifetimes, order and data races in PyTorch's sources, not of numerics, of speed, or of Apple's own thread safety. Values that agree show that nothing was mixed up on the way.",
	"ThreadSanitizer does not see inside libtorch, and knows an order between threads where our Metal declares one; what Apple's code orders less than its pages say goes unseen. x86-64 orders memory more strictly than the processors of a Mac.",
	"On Linux the stages python and bench run the real torch Python front end over the checkout's MPS sources and the software Metal; what the line above says of the runtime stage holds for them, and their speeds say nothing of a GPU.",
	"In this version the stage device does not exist.",
	"A pass of sanitizers and random histories means that nothing was found in the schedules that ran, on this machine's memory model; the schedule search covers its small cases up to the stated number of pre-emptions.",
}

// errSkip ends a stage without a verdict; its text is the reason.
type errSkip struct{ reason string }

func (e errSkip) Error() string { return e.reason }

func skipf(format string, args ...any) error { return errSkip{fmt.Sprintf(format, args...)} }

// StageNames lists the stages in their order.
func StageNames() []string {
	var names []string
	for _, s := range stages() {
		names = append(names, s.name)
	}
	return names
}

// Steps are the steps that Run will announce for the stages asked for.
func Steps(asked []string) []string {
	steps := []string{}
	for _, s := range stages() {
		if s.run != nil && (len(asked) == 0 || slices.Contains(asked, s.name)) {
			steps = append(steps, stepName(s.name))
		}
	}
	return steps
}

func stepName(stage string) string { return "verify " + stage }

// CheckNames makes sure that every name is one of a stage.
func CheckNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(StageNames(), name) {
			return fmt.Errorf("%w: %q%s", ErrUnknownStage, name, suggest.Names(name, StageNames()))
		}
	}
	return nil
}

// Run verifies and gives the report. A failed verification is not an error: the report's verdict says it. An error
// means that there is no report, or that the context ended.
func Run(ctx context.Context, options Options, sink events.Sink) (*reports.Report, error) {
	sink = events.OrDiscard(sink)
	if err := CheckNames(append(slices.Clone(options.Stages), options.Require...)); err != nil {
		return nil, err
	}
	started := time.Now()
	if options.Seed == 0 {
		options.Seed = uint64(started.UnixNano())
	}
	sink.Emit(events.Pipeline{Steps: Steps(options.Stages)})
	p := &pipeline{Options: options, sink: sink}
	p.report = &reports.Report{Schema: reports.Schema, Tool: options.Tool, Started: started.UTC(), Quick: options.Quick, Seed: options.Seed,
		Identity: p.identity(), Machine: machine(ctx), Limits: slices.Clone(limits)}
	stopped := ""
	for _, s := range stages() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		result := reports.Stage{Name: s.name, Question: s.question}
		switch {
		case len(options.Stages) > 0 && !slices.Contains(options.Stages, s.name):
			result.Verdict, result.Reason = reports.NotRun, "not asked for"
		case s.run == nil:
			result.Verdict, result.Reason = reports.Skipped, "not part of this version of mpsforge"
		case stopped != "" && !options.KeepGoing:
			result.Verdict, result.Reason = reports.NotRun, stopped+" failed"
			events.Step(sink, stepName(s.name))(events.Skipped, "not run: "+result.Reason)
		default:
			if err := p.runStage(ctx, s, &result); err != nil {
				return nil, err
			}
			if result.Verdict == reports.Failed && stopped == "" {
				stopped = s.name
			}
		}
		p.report.Stages = append(p.report.Stages, result)
	}
	if runtime.GOOS != "darwin" {
		p.report.Limits = append(p.report.Limits, "Nothing in this report was run on a Mac.")
	}
	p.report.Seconds = time.Since(started).Seconds()
	p.report.Conclude(slices.Concat(options.Stages, options.Require))
	sink.Emit(events.Message{Level: events.Info, Text: "verification " + p.report.Conclusion()})
	return p.report, nil
}

// runStage runs one stage and turns its error into a verdict. Only the end of the context is an error here.
func (p *pipeline) runStage(ctx context.Context, s stage, result *reports.Stage) error {
	finish := events.Step(p.sink, stepName(s.name))
	defer finish(events.Failed, "")
	started := time.Now()
	inside := *p
	inside.sink = events.Under(p.sink, stepName(s.name))
	err := s.run(&inside, ctx, result)
	result.Seconds = time.Since(started).Seconds()
	var skip errSkip
	switch {
	case ctx.Err() != nil:
		finish(events.Failed, "interrupted")
		return ctx.Err()
	case errors.As(err, &skip) && result.Verdict == "":
		result.Verdict, result.Reason = reports.Skipped, skip.reason
	case err != nil:
		result.Verdict, result.Reason = reports.Failed, err.Error()
	case result.Verdict == "":
		result.Verdict, result.Reason = reports.Skipped, "no check of it could run here"
	}
	outcome := map[reports.Verdict]events.Outcome{reports.Passed: events.OK, reports.Skipped: events.Skipped}[result.Verdict]
	if outcome == "" {
		outcome = events.Failed
	}
	finish(outcome, result.Reason)
	return nil
}

func (p *pipeline) identity() reports.Identity {
	identity := reports.Identity{Baseline: p.Series.Baseline.Name, SeriesDigest: p.Series.Digest(), Patches: []string{}}
	for _, patch := range p.Series.Patches {
		identity.Patches = append(identity.Patches, patch.Name)
	}
	if p.Checkout != nil {
		identity.Checkout = p.Checkout.Dir()
		identity.BaseCommit, identity.BaseProof = p.Checkout.Base()
	}
	return identity
}

func machine(ctx context.Context) reports.Machine {
	m := reports.Machine{System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU()}
	// Either may be missing; the stage that needs it says so.
	m.Git, _ = git.Version(ctx)
	return m
}

// seriesStage lints the series.
func (p *pipeline) seriesStage(_ context.Context, stage *reports.Stage) error {
	stage.Facts = append(stage.Facts, reports.Fact{Name: "series digest", Value: p.Series.Digest()})
	stage.Count("patches", int64(p.Lint.Patches))
	stage.Count("hunks", int64(p.Lint.Hunks))
	stage.Count("hunks verified", int64(p.Lint.Verified))
	stage.Count("hunks unverified", int64(p.Lint.Unverified))
	bad := 0
	for _, finding := range p.Lint.Findings {
		if finding.Severity == patches.SeverityError {
			bad++
			stage.Add(reports.Check{Name: finding.Rule, Subject: fmt.Sprintf("patches/%s:%d", finding.File, finding.Line), Verdict: reports.Failed, Detail: finding.String()})
		}
	}
	if bad > 0 {
		return nil
	}
	if p.Lint.Patches == 0 {
		return skipf("the series of %s has no patches", p.Series.Baseline.Name)
	}
	stage.Add(reports.Check{Name: "lint", Subject: "series", Verdict: reports.Passed, Detail: fmt.Sprintf("patches: %d, hunks exact by digest: %d of %d", p.Lint.Patches, p.Lint.Verified, p.Lint.Hunks)})
	return nil
}

// checkoutStage compares the checkout with the baseline plus the series.
func (p *pipeline) checkoutStage(ctx context.Context, stage *reports.Stage) error {
	if p.Checkout == nil {
		return skipf("%s", p.NoCheckout)
	}
	exact, err := p.Checkout.CheckExact(ctx, p.Series)
	if err != nil {
		return err
	}
	identity := &p.report.Identity
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
	return checkQueueUses(p.Checkout.Dir(), stage)
}
