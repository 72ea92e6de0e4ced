// Package validate is the verification pipeline: its stages, what they check, and the verdicts.
//
// Run runs stages and gives a report (package reports); StageNames lists them in their order. Diagnose says what this machine can
// run and what fixes each gap. Each stage is a package of its own below this one, and no check of a stage belongs here. What
// several stages use can be used alone: crash.Explain and crash.Classify for the texts of crashes, repro.Write for a reproducer.
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
	"strings"
	"time"

	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/internal/suggest"
	"mpsforge/reports"
	"mpsforge/validate/judge/kept"
	"mpsforge/validate/stage"
	"mpsforge/validate/stages/bench"
	"mpsforge/validate/stages/checkout"
	"mpsforge/validate/stages/conformance"
	"mpsforge/validate/stages/device"
	"mpsforge/validate/stages/mac"
	"mpsforge/validate/stages/onethread"
	"mpsforge/validate/stages/operators"
	"mpsforge/validate/stages/overlay"
	"mpsforge/validate/stages/python"
	"mpsforge/validate/stages/reference"
	runtimestage "mpsforge/validate/stages/runtime"
	"mpsforge/validate/stages/series"
	"mpsforge/validate/stages/upstream"
)

// ErrUnknownStage is returned, wrapped, for a stage name that does not exist.
var ErrUnknownStage = errors.New("no such stage")

// The contract is in package stage, which stages import; these are its names for those who import the pipeline.
type (
	Stage       = stage.Stage
	Options     = stage.Options
	HostOptions = stage.HostOptions
)

// Stages lists the pipeline in its order.
func Stages() []Stage {
	return []Stage{
		series.Stage(),
		checkout.Stage(),
		reference.Stage(),
		conformance.Stage(),
		mac.Stage(),
		runtimestage.Stage(),
		device.Stage(),
		python.Stage(),
		bench.Stage(),
		operators.Stage(),
		upstream.Stage(),
		onethread.Stage(),
		overlay.Stage(python.Stage(), operators.Stage(), upstream.Stage()),
	}
}

// limits is printed with every report.
var limits = []string{
	"The software Metal shows that code keeps Metal's documented rules and the modelled observations. It cannot show what else Apple's closed " +
		"frameworks do; only the device and python stages on a Mac can.",
	"The runtime stage compiles and runs PyTorch's own MPS sources, but Apple's Metal, MPS and MPSGraph are ours there: graphs are computed by " +
		"libtorch's CPU operators, and PyTorch's Metal kernels are translated for this processor. It checks locks, queues, lifetimes, order and " +
		"data races in PyTorch's sources, not numerics, speed, or the thread safety of Apple's code. Values that agree show only that no data was mixed up.",
	"ThreadSanitizer does not see inside libtorch, and assumes the order between threads that our Metal declares; if Apple's code orders less than " +
		"its documentation says, that is not detected. x86-64 orders memory more strictly than the processors of a Mac.",
	"On Linux the stages python, bench, operators, upstream, one-thread and overlay run the real torch Python front end over the checkout's MPS " +
		"sources and the software Metal; the limits of the stage runtime apply to them, and their speeds say nothing about a GPU.",
	"A pass of sanitizers and random histories means that nothing was found in the schedules that ran, on this machine's memory model; the " +
		"schedule search covers its small cases up to the stated number of pre-emptions.",
}

// StageNames lists the stages in their order.
func StageNames() []string {
	var names []string
	for _, s := range Stages() {
		names = append(names, s.Name)
	}
	return names
}

// ScenarioNames are the names that Scenario trailers of patches may have beside test files (series rule 5).
func ScenarioNames() []string { return append(runtimestage.ScenarioNames(), conformance.Scenario) }

// Steps are the steps that Run will announce for the stages asked for.
func Steps(asked []string) []string {
	steps := []string{}
	for _, s := range Stages() {
		if len(asked) == 0 || slices.Contains(asked, s.Name) {
			steps = append(steps, stage.StepName(s.Name))
		}
	}
	return steps
}

// Need says whether a stage asked for, of all where none is named, has this need.
func Need(asked []string, need stage.Need) bool {
	return slices.ContainsFunc(Stages(), func(s Stage) bool {
		return (len(asked) == 0 || slices.Contains(asked, s.Name)) && slices.Contains(s.Needs, need)
	})
}

// CheckNames makes sure that every name is one of a stage.
func CheckNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(StageNames(), name) {
			return fmt.Errorf("%w: %q%s", ErrUnknownStage, name, suggest.Names(name, StageNames()))
		}
	}
	return nil
}

// CheckShard refuses options by which a shard would not be one of the parts of a run: the stages must be named and be such that
// can be divided or are short, and the seed must be that of all shards.
func CheckShard(o Options) error {
	var splits, inEach, refused []string
	for _, s := range Stages() {
		asked := slices.Contains(o.Stages, s.Name)
		switch {
		case s.Splits:
			splits = append(splits, s.Name)
		case s.InEach:
			inEach = append(inEach, s.Name)
		case asked:
			refused = append(refused, s.Name)
		}
	}
	can := fmt.Sprintf("%s can be divided, and %s run in each shard", strings.Join(splits, ", "), strings.Join(inEach, " and "))
	switch {
	case o.Shard.Whole():
		return nil
	case len(refused) > 0:
		return fmt.Errorf("%w: %s cannot be divided among shards; %s", stage.ErrDivided, strings.Join(refused, ", "), can)
	case !slices.ContainsFunc(o.Stages, func(name string) bool { return slices.Contains(splits, name) }):
		return fmt.Errorf("%w: --stages names none that can be; %s", stage.ErrDivided, can)
	case o.Seed == 0:
		return fmt.Errorf("%w: all shards need the same seed; name one with --seed", stage.ErrDivided)
	case len(o.Require) > 0:
		return fmt.Errorf("%w: a part cannot be all of a required stage; leave --require out, and give it to mpsforge report merge", stage.ErrDivided)
	}
	return nil
}

// Run verifies and gives the report. A failed verification is not an error: the report's verdict says it. An error
// means that there is no report, or that the context ended: a StoppedError. Where options.Write fails, there are both.
func Run(ctx context.Context, options Options, sink events.Sink) (*reports.Report, error) {
	return runStages(ctx, Stages(), options, sink)
}

func runStages(ctx context.Context, stages []Stage, options Options, sink events.Sink) (found *reports.Report, err error) {
	sink = events.OrDiscard(sink)
	if err := CheckNames(append(slices.Clone(options.Stages), options.Require...)); err != nil {
		return nil, err
	}
	if err := CheckShard(options); err != nil {
		return nil, err
	}
	started := time.Now()
	if options.Seed == 0 {
		options.Seed = uint64(started.UnixNano())
	}
	sink.Emit(events.Pipeline{Steps: Steps(options.Stages)})
	report := &reports.Report{Schema: reports.Schema, Tool: options.Tool, Started: started.UTC(), Quick: options.Quick, Seed: options.Seed,
		Identity: identity(options), Machine: machine(ctx), Limits: slices.Clone(limits)}
	if !options.Shard.Whole() {
		report.Shard = &reports.Shard{Index: options.Shard.Index, Of: options.Shard.Of}
	}
	failed, built := "", &stage.Built{}
	var begun, ended []*kept.Run
	defer func() {
		for _, k := range begun {
			err = errors.Join(err, k.Close())
		}
	}()
	for _, s := range stages {
		result := reports.Stage{Name: s.Name, Question: s.Question}
		switch {
		case len(options.Stages) > 0 && !slices.Contains(options.Stages, s.Name):
			result.Verdict, result.Reason = reports.NotRun, reports.NotAsked
		case failed != "" && !options.KeepGoing:
			result.Verdict, result.Reason = reports.NotRun, failed+" failed"
			events.Step(sink, stage.StepName(s.Name))(events.Skipped, "not run: "+result.Reason)
		default:
			env := stage.Env{Options: options, Sink: events.Under(sink, stage.StepName(s.Name)), Identity: &report.Identity, Machine: &report.Machine,
				Kept: keptBy(s.Name, options, sink), Built: built}
			begun = append(begun, env.Kept)
			end, stopped := runStage(ctx, s, &env, sink, &result)
			if stopped != nil {
				return nil, &StoppedError{kept: begun, seed: options.Seed, cause: stopped}
			}
			if end {
				ended = append(ended, env.Kept)
			}
			if result.Verdict == reports.Failed && failed == "" {
				failed = s.Name
			}
		}
		report.Stages = append(report.Stages, result)
	}
	if runtime.GOOS != "darwin" {
		report.Limits = append(report.Limits, "Nothing in this report was run on a Mac.")
	}
	report.Seconds = time.Since(started).Seconds()
	report.Conclude(slices.Concat(options.Stages, options.Require))
	if options.Write != nil {
		if err := options.Write(report); err != nil {
			return report, err
		}
	}
	for _, k := range ended { // not before: what one stage has kept is needed until the last has ended
		if err := k.Finish(); err != nil {
			sink.Emit(events.Message{Level: events.Warning, Text: fmt.Sprintf("remove what was kept of the run: %v", err)})
		}
	}
	sink.Emit(events.Message{Level: events.Info, Text: report.Verification()})
	return report, nil
}

// runStage runs one stage and turns its error into a verdict, and says whether it came to its end. Only the end of the context is an
// error here.
func runStage(ctx context.Context, s Stage, env *stage.Env, sink events.Sink, result *reports.Stage) (end bool, stopped error) {
	finish := events.Step(sink, stage.StepName(s.Name))
	defer finish(events.Failed, "")
	started := time.Now()
	var err error
	if env.Checkout == nil && slices.Contains(s.Needs, stage.NeedsCheckout) {
		err = stage.Skipf("%s", env.NoCheckout)
	} else {
		err = s.Run(ctx, env, result)
	}
	result.Seconds = time.Since(started).Seconds()
	if result.Part != nil {
		result.Part.Done = err == nil || result.Part.Jobs == 0
	}
	reason, skipped := stage.SkipReason(err)
	switch {
	case ctx.Err() != nil:
		finish(events.Failed, "")
		return false, ctx.Err()
	case skipped && result.Verdict == "":
		result.Verdict, result.Reason = reports.Skipped, reason
	case err != nil:
		result.Verdict, result.Reason = reports.Failed, err.Error()
	case s.Splits && !env.Shard.Whole() && result.Part == nil && result.Verdict == reports.Passed:
		result.Verdict, result.Reason = reports.Failed, "it does not say which of its jobs are in this shard; report this as a bug"
	case result.Verdict == "":
		result.Verdict, result.Reason = reports.Skipped, "none of its checks could run here"
	}
	finish(stage.Outcome(result.Verdict), result.Reason)
	return err == nil || skipped, nil
}

// keptBy is what a stage can keep its results with.
func keptBy(name string, options Options, sink events.Sink) *kept.Run {
	run := &kept.Run{Cache: options.Cache, Stage: name, Begin: func() {
		sink.Emit(events.Message{Level: events.Info, Text: fmt.Sprintf("results of stage %s are kept: if this run is stopped, %s", name, goesOn(options.Seed))})
	}}
	if !options.Shard.Whole() {
		run.Shard = fmt.Sprintf("%d-of-%d", options.Shard.Index, options.Shard.Of)
	}
	return run
}

func goesOn(seed uint64) string {
	return fmt.Sprintf("the same command with --seed %d goes on", seed)
}

// StoppedError is the end of a run whose context ended before it did. Its text says what is left for a later run to go on with.
type StoppedError struct {
	kept  []*kept.Run // of the stages that had begun
	seed  uint64
	cause error
}

func (e *StoppedError) Error() string {
	var some, nothing []string
	for _, k := range e.kept {
		if text := k.String(); text != "" {
			some = append(some, text)
		} else {
			nothing = append(nothing, k.Stage)
		}
	}
	text := "stopped in stage " + e.kept[len(e.kept)-1].Stage
	if len(some) == 0 {
		return text + "; nothing is kept of it"
	}
	text += "; kept: " + strings.Join(some, ", ")
	if len(nothing) > 0 {
		text += "; nothing of " + strings.Join(nothing, ", ")
	}
	return text + "; " + goesOn(e.seed)
}

func (e *StoppedError) Unwrap() error { return e.cause }

func identity(options Options) reports.Identity {
	identity := reports.Identity{Baseline: options.Series.Baseline.Name, SeriesDigest: options.Series.Digest(), Patches: options.Series.Names()}
	if options.Checkout != nil {
		identity.Checkout = options.Checkout.Dir()
		identity.BaseCommit, identity.BaseProof = options.Checkout.Base()
	}
	return identity
}

func machine(ctx context.Context) reports.Machine {
	m := reports.Machine{System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU()}
	// Either may be missing; the stage that needs it says so.
	m.Git, _ = git.Version(ctx)
	return m
}
