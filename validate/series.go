package validate

import (
	"context"
	"fmt"

	"mpsforge/patches"
	"mpsforge/reports"
)

// seriesStage lints the series.
func seriesStage(_ context.Context, env *Env, stage *reports.Stage) error {
	stage.Facts = append(stage.Facts, reports.Fact{Name: "series digest", Value: env.Series.Digest()})
	stage.Count("patches", int64(env.Lint.Patches))
	stage.Count("hunks", int64(env.Lint.Hunks))
	stage.Count("hunks verified", int64(env.Lint.Verified))
	stage.Count("hunks unverified", int64(env.Lint.Unverified))
	bad := 0
	for _, finding := range env.Lint.Findings {
		if finding.Severity == patches.SeverityError {
			bad++
			stage.Add(reports.Check{Name: finding.Rule, Subject: fmt.Sprintf("patches/%s:%d", finding.File, finding.Line), Verdict: reports.Failed, Detail: finding.String()})
		}
	}
	if bad > 0 {
		return nil
	}
	if env.Lint.Patches == 0 {
		return Skipf("the series of %s has no patches", env.Series.Baseline.Name)
	}
	stage.Add(reports.Check{Name: "lint", Subject: "series", Verdict: reports.Passed, Detail: fmt.Sprintf("patches: %d, hunks exact by digest: %d of %d", env.Lint.Patches, env.Lint.Verified, env.Lint.Hunks)})
	return nil
}
