package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"mpsforge/internal/events"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// numbered is a run of jobs that add a check each, under its number.
func numbered(t *testing.T, do func(ctx context.Context, job int) error) ([]string, *reports.Stage, error) {
	r := &stageRun{env: &stage.Env{Sink: events.Discard}, stage: &reports.Stage{Name: "runtime"}, shared: &shared{failed: map[string]bool{}}}
	err := together(t.Context(), r, []int{0, 1, 2, 3}, func(ctx context.Context, r *stageRun, job int) error {
		if err := do(ctx, job); err != nil {
			return err
		}
		r.stage.Count("jobs", 1)
		r.add(reports.Check{Name: fmt.Sprint(job), Verdict: reports.Passed})
		return nil
	})
	var names []string
	for _, check := range r.stage.Checks {
		names = append(names, check.Name)
	}
	return names, r.stage, err
}

// The report does not depend on which of two jobs ends first.
func TestJobsReportInTheirOrder(t *testing.T) {
	second := make(chan struct{})
	names, report, err := numbered(t, func(_ context.Context, job int) error {
		switch {
		case job == 1:
			close(second)
		case job == 0 && stage.AtOnce() > 1: // else they run one after another
			<-second
		}
		return nil
	})
	if err != nil || !slices.Equal(names, []string{"0", "1", "2", "3"}) || report.Counts["jobs"] != 4 || report.Verdict != reports.Passed {
		t.Errorf("%q, %v, %s, error %v", names, report.Counts, report.Verdict, err)
	}
}

// An error ends the jobs beside it, begins no other, and loses no check of those before.
func TestAnErrorEndsTheJobsAndKeepsTheirChecks(t *testing.T) {
	broken, begun := errors.New("no space left"), make(chan struct{})
	names, _, err := numbered(t, func(ctx context.Context, job int) error {
		switch job {
		case 0:
			close(begun)
		case 1:
			<-begun
			return broken
		case 2:
			<-ctx.Done()
			return ctx.Err()
		case 3:
			if ctx.Err() == nil {
				t.Error("a job began after the error")
			}
		}
		return nil
	})
	if !errors.Is(err, broken) || !slices.Equal(names, []string{"0"}) {
		t.Errorf("%q, error %v", names, err)
	}
}

// Where the first failure ends the run, no job begins after it, and what had begun is reported.
func TestTheFirstFailureEndsTheJobs(t *testing.T) {
	for _, ends := range []bool{true, false} {
		env := &stage.Env{Sink: events.Discard, Options: stage.Options{FirstFailure: ends}}
		r := &stageRun{env: env, stage: &reports.Stage{Name: "runtime"}, shared: &shared{failed: map[string]bool{}}}
		jobs := make([]int, 20)
		err := together(t.Context(), r, jobs, func(_ context.Context, r *stageRun, _ int) error {
			r.add(reports.Check{Name: "job", Verdict: reports.Failed})
			return nil
		})
		if err != nil || r.ends() != ends {
			t.Errorf("ends %v, error %v", r.ends(), err)
		}
		if done := len(r.stage.Checks); ends && done > 2*stage.AtOnce() || !ends && done != len(jobs) {
			t.Errorf("with FirstFailure %v %d of %d jobs ran", ends, done, len(jobs))
		}
	}
}
