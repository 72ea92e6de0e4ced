package validate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/allocator"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
	runtimestage "mpsforge/validate/stages/runtime"
)

// JudgeMutant puts the mutant on the checkout, which must hold the whole series and nothing else, runs the quick stages that can judge it
// until the first failure, and takes it off again, also when the context ends. Options name the series without it. A stage that cannot
// run is an error: it says nothing of the mutant.
func JudgeMutant(ctx context.Context, options Options, m patches.Mutant, sink events.Sink) (judged patches.Judgement, err error) {
	judged = patches.Judgement{Verdict: patches.MutantSurvived, SeriesDigest: options.Series.Digest(), Date: time.Now().UTC(),
		Tool: toolOf(options.Tool), Seed: options.Seed}
	whole := options.Series
	options.FirstFailure = true
	err = withFault(ctx, options, m.Name, m.Plant, sink, func(options Options) error {
		for _, pass := range mutantPasses(whole, m) {
			pass(&options)
			report, err := Run(ctx, options, sink)
			if err != nil {
				return err
			}
			judged.Seconds += int(report.Seconds)
			if found, err := foundBy(report, &judged); found || err != nil {
				judged.Detail = withoutCache(judged.Detail, options.Cache)
				return err
			}
		}
		return nil
	})
	return judged, err
}

// withFault puts a planted fault on the checkout, which must hold the whole series and nothing else, calls judge with options for quick
// stages on it, and takes it off again, also when the context has ended.
func withFault(ctx context.Context, options Options, name string, plant func(*patches.Series, func(string) ([]byte, error)) (*patches.Series, error),
	sink events.Sink, judge func(Options) error) (err error) {
	sink = events.OrDiscard(sink)
	checkout := options.Checkout
	planted, err := plant(options.Series, func(path string) ([]byte, error) {
		content, asHead, err := checkout.WorkFile(ctx, path)
		if err == nil && !asHead {
			err = fmt.Errorf("%w: %s is not what HEAD has", fork.ErrDirty, path)
		}
		return content, err
	})
	if err != nil {
		return err
	}
	if _, err := checkout.Apply(ctx, planted, fork.Options{}, sink); err != nil {
		return fmt.Errorf("put %s on the checkout: %w", name, err)
	}
	defer func() { // also where the run was stopped
		if _, off := checkout.Unapply(context.WithoutCancel(ctx), planted, fork.Options{Until: name}, sink); off != nil {
			err = errors.Join(err, fmt.Errorf("take %s off again: %w; mpsforge unapply --until %[1]s does it", name, off))
		}
	}()
	options.Series, options.Quick, options.Host.NoStock = planted, true, true
	options.Artifacts = filepath.Join(options.Cache, "faults", name)
	return judge(options)
}

// withoutCache takes this machine's path of the cache out of a text.
func withoutCache(text, cache string) string {
	return strings.ReplaceAll(text, cache+string(filepath.Separator), "")
}

// mutantPasses are the runs that judge a mutant, the one that most likely finds it first: the scenarios and the Python tests that are the
// patch's by its trailer or by their own row, then all scenarios, all Python tests, ThreadSanitizer and the operators. What makes a race
// of an access begins with ThreadSanitizer.
func mutantPasses(series *patches.Series, m patches.Mutant) []func(*Options) {
	var own []string
	for _, p := range series.Patches {
		if p.Name == m.Patch {
			own = scenariosAmong(p.Header.Values("Scenario"))
		}
	}
	own = append(own, runtimestage.ScenariosOf(m.Patch)...)
	all := slices.Concat(own, runtimestage.ScenarioNames())
	tests := pytests.NamesOf(m.Patch)
	pass := func(flavours []builds.Flavour, scenarios, tests []string, stages ...string) func(*Options) {
		return func(o *Options) {
			o.Stages, o.Host.Scenarios, o.Host.Flavours, o.Python.Only = stages, scenarios, flavours, ""
			if len(tests) > 0 {
				o.Python.Only = stage.Exactly(tests)
			}
		}
	}
	only := func(stage string) func(*Options) { return pass(nil, nil, nil, stage) }
	plain, races := []builds.Flavour{builds.Plain}, pass([]builds.Flavour{builds.Thread}, all, nil, "runtime")
	var passes []func(*Options)
	if len(own) > 0 {
		passes = append(passes, pass(plain, own, nil, "checkout", "runtime"))
	}
	if len(tests) > 0 {
		passes = append(passes, pass(nil, nil, tests, "python"))
	}
	passes = append(passes, pass(plain, all, nil, "checkout", "runtime"), only("python"))
	switch {
	case m.Path == allocator.Header:
		passes = append([]func(*Options){only("conformance")}, append(passes, races)...)
	case strings.HasPrefix(m.Path, "torch/"): // Python, and what it calls: hardly a scenario comes there
		passes = []func(*Options){only("python"), pass(plain, all, nil, "checkout", "runtime"), races}
	case m.MakesRace():
		passes = append([]func(*Options){races}, passes...)
	default:
		passes = append(passes, races)
	}
	return append(passes, only("operators"))
}

// foundBy takes the first failure of a report into the judgement.
func foundBy(report *reports.Report, judged *patches.Judgement) (found bool, err error) {
	for _, stage := range report.Stages {
		switch stage.Verdict {
		case reports.Passed:
			continue
		case reports.Failed:
		default:
			if stage.Reason != reports.NotAsked {
				return false, fmt.Errorf("%w: stage %s did not judge: %s", patches.ErrMutants, stage.Name, stage.Reason)
			}
			continue
		}
		at := slices.IndexFunc(stage.Checks, func(c reports.Check) bool { return c.Verdict == reports.Failed })
		if at < 0 {
			return false, fmt.Errorf("%w: stage %s did not judge: %s", patches.ErrMutants, stage.Name, words.FirstLine(stage.Reason))
		}
		check := stage.Checks[at]
		detail, _, _ := strings.Cut(words.FirstLine(check.Detail), "; again: ")
		judged.Verdict, judged.Stage, judged.Check, judged.Subject, judged.Detail = patches.MutantFound, stage.Name, check.Name, check.Subject, detail
		if check.Name == "compile" {
			judged.Verdict = patches.MutantNotCompiled
		}
		return true, nil
	}
	return false, nil
}
