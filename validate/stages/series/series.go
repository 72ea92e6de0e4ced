// Package series is the stage that asks whether the patch series is well-formed and exact for its baseline. It reports what
// package patches found; rules about patches are written there, not here.
package series

import (
	"context"
	"fmt"
	"time"

	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// Stage is the stage series of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "series", Question: "is the series well-formed and exact for its baseline?",
		InEach: true,
		Run:    runStage,
	}
}

// ran says which lines of the series have run, as far as that is recorded of this one.
func ran(recorded *patches.Coverage, series *patches.Series) string {
	switch {
	case recorded.Lines == 0:
		return recorded.Summary()
	case recorded.SeriesDigest != series.Digest():
		return "not measured of this series"
	}
	return fmt.Sprintf("%s, recorded on %s; mpsforge baseline coverage shows the others", recorded.Summary(), recorded.Date.Format(time.DateOnly))
}

// runStage lints the series.
func runStage(_ context.Context, env *stage.Env, report *reports.Stage) error {
	report.Facts = append(report.Facts, reports.Fact{Name: "series digest", Value: env.Series.Digest()})
	if env.Coverage != nil {
		report.Facts = append(report.Facts, reports.Fact{Name: "lines that ran", Value: ran(env.Coverage, env.Series)})
	}
	report.Count("patches", int64(env.Lint.Patches))
	report.Count("hunks", int64(env.Lint.Hunks))
	report.Count("hunks verified", int64(env.Lint.Verified))
	report.Count("hunks unverified", int64(env.Lint.Unverified))
	bad := 0
	for _, finding := range env.Lint.Findings {
		if finding.Severity == patches.SeverityError {
			bad++
			report.Add(reports.Check{Name: finding.Rule, Subject: fmt.Sprintf("patches/%s:%d", finding.File, finding.Line), Verdict: reports.Failed,
				Detail: finding.String()})
		}
	}
	if bad > 0 {
		return nil
	}
	if env.Lint.Patches == 0 {
		return stage.Skipf("the series of %s has no patches", env.Series.Baseline.Name)
	}
	if env.Lint.Unverified > 0 {
		return stage.Skipf("nothing says whether %d of %d hunks are exact for the baseline: its digests.json lacks them; mpsforge baseline record writes it",
			env.Lint.Unverified, env.Lint.Hunks)
	}
	report.Add(reports.Check{Name: "lint", Subject: "series", Verdict: reports.Passed,
		Detail: fmt.Sprintf("patches: %d, hunks exact by digest: %d of %d", env.Lint.Patches, env.Lint.Verified, env.Lint.Hunks)})
	return nil
}
