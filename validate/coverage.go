package validate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/patches"
	"mpsforge/reports"
)

// coverageStages run PyTorch's sources, each in processes of its own.
var coverageStages = []string{"runtime", "python", "operators"}

// Measure runs the quick stages that run PyTorch's sources on the checkout, which must hold the whole series and nothing else, and gives
// which lines of the series ran. A stage that does not pass is an error: lines that run in what fails are not tested.
func Measure(ctx context.Context, options Options, sink events.Sink) (*patches.Coverage, error) {
	covered := &patches.Coverage{Stages: coverageStages, Date: time.Now().UTC(), Tool: toolOf(options.Tool), Seed: options.Seed}
	var counting *host.Build
	options.Stages, options.Quick, options.Host.NoStock, options.Host.Flavours = coverageStages, true, true, []builds.Flavour{builds.Plain}
	options.KeepGoing, options.Artifacts = true, filepath.Join(options.Cache, "faults", "coverage")
	options.Host.Counted = func(built *host.Build) error {
		if counting != nil {
			return fmt.Errorf("%w: two builds count, %s and %s", patches.ErrCoverage, counting.Dir, built.Dir)
		}
		counting = built
		return built.ForgetCounts()
	}
	report, err := Run(ctx, options, sink)
	if err != nil {
		return nil, err
	}
	for _, s := range report.Stages {
		if s.Verdict == reports.Failed || s.Verdict == reports.Skipped {
			return nil, fmt.Errorf("%w: stage %s: %s: %s", patches.ErrCoverage, s.Name, s.Verdict, s.Reason)
		}
	}
	if counting == nil {
		return nil, fmt.Errorf("%w: no stage has built the series", patches.ErrCoverage)
	}
	root, err := host.OpenRoot(ctx, options.Host.Root, options.Cache, sink)
	if err != nil {
		return nil, err
	}
	counts, err := counting.Counts(ctx, root)
	if err != nil {
		return nil, errors.Join(patches.ErrCoverage, err)
	}
	covered.Count(options.Series, counts)
	return covered, nil
}
