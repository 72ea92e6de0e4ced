package validate

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/kept"
	"mpsforge/validate/stage"
)

// keeps is a stage that keeps the results of its two jobs, and calls before ahead of each.
func keeps(t *testing.T, name string, before func(job string) error) Stage {
	return Stage{Name: name, Run: func(ctx context.Context, env *stage.Env, report *reports.Stage) error {
		file, have, err := kept.Open[string](env.Kept)
		if err != nil {
			return err
		}
		jobs := []string{"one", "two"}
		for i, job := range jobs {
			env.Kept.Reached("jobs", int64(i), int64(len(jobs)))
			if i < len(have) {
				continue
			}
			if err := before(job); err != nil {
				return err
			}
			require.NoError(t, file.Add(job))
			report.Add(reports.Check{Name: job, Verdict: reports.Passed})
		}
		env.Kept.Reached("jobs", 2, 2)
		return nil
	}}
}

// A run that is stopped says how much is kept of each stage, and how it goes on. Also what a stage that came to its end has kept stays
// until the whole run has.
func TestStoppedRunSaysWhatIsLeft(t *testing.T) {
	options := Options{Series: &patches.Series{}, Cache: t.TempDir(), Seed: 7}
	var ran []string
	var said []string
	sink := events.SinkFunc(func(e events.Event) {
		if m, is := e.(events.Message); is {
			said = append(said, m.Text)
		}
	})
	stages := func(stop func(), at string) []Stage {
		before := func(name string) func(string) error {
			return func(job string) error {
				ran = append(ran, name+" "+job)
				if name+" "+job == at {
					stop()
					return context.Canceled
				}
				return nil
			}
		}
		short := Stage{Name: "checkout", Run: func(_ context.Context, _ *stage.Env, report *reports.Stage) error {
			report.Add(reports.Check{Name: "exact", Verdict: reports.Passed})
			return nil
		}}
		return []Stage{short, keeps(t, "operators", before("operators")), keeps(t, "upstream", before("upstream"))}
	}
	ctx, stop := context.WithCancel(t.Context())
	_, err := runStages(ctx, stages(stop, "upstream two"), options, sink)
	want := "stopped in stage upstream; kept: operators 2 of 2 jobs planned so far, upstream 1 of 2 jobs planned so far; nothing of checkout; the " +
		"same command with --seed 7 goes on"
	if stopped := (*StoppedError)(nil); !errors.As(err, &stopped) || !errors.Is(err, context.Canceled) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if len(said) != 2 || said[0] != "results of stage operators are kept: if this run is stopped, the same command with --seed 7 goes on" {
		t.Errorf("said %q", said)
	}

	ran = nil
	report, err := runStages(t.Context(), stages(nil, ""), options, nil)
	if err != nil || report.Verdict == reports.Failed || len(ran) != 1 || ran[0] != "upstream two" {
		t.Errorf("%v; it ran %q, and one job was left", err, ran)
	}
	if left, err := filepath.Glob(filepath.Join(options.Cache, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left after its end: %q, %v", left, err)
	}
}

// A report that cannot be written takes no verdict with it, and nothing of what was kept.
func TestRunWhoseReportIsNotWritten(t *testing.T) {
	full := errors.New("the disk is full")
	options := Options{Series: &patches.Series{}, Cache: t.TempDir(), Seed: 7, Write: func(*reports.Report) error { return full }}
	run := func() (ran int, report *reports.Report, err error) {
		report, err = runStages(t.Context(), []Stage{keeps(t, "operators", func(string) error { ran++; return nil })}, options, nil)
		return ran, report, err
	}
	ran, report, err := run()
	if !errors.Is(err, full) || report == nil || report.Verdict == "" || ran != 2 {
		t.Errorf("%v, %+v, jobs that ran: %d", err, report, ran)
	}
	options.Write = nil
	if ran, _, err := run(); err != nil || ran != 0 {
		t.Errorf("%v; jobs that ran again: %d", err, ran)
	}
}

// Where nothing is kept, the same sentence says so.
func TestStoppedRunThatKeepsNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	_, err := runStages(ctx, []Stage{{Name: "python", Run: func(context.Context, *stage.Env, *reports.Stage) error { stop(); return nil }}},
		Options{Series: &patches.Series{}, Cache: t.TempDir()}, nil)
	if err == nil || err.Error() != "stopped in stage python; nothing is kept of it" {
		t.Error(err)
	}
}

// What a stage that broke off has kept stays for a later run.
func TestBrokenStageKeepsItsResults(t *testing.T) {
	options := Options{Series: &patches.Series{}, Cache: t.TempDir()}
	breaks := func(job string) error {
		if job == "two" {
			return errors.New("no memory")
		}
		return nil
	}
	report, err := runStages(t.Context(), []Stage{keeps(t, "operators", breaks)}, options, nil)
	if err != nil || report.Verdict != reports.Failed {
		t.Fatal(err, report)
	}
	if left, err := filepath.Glob(filepath.Join(options.Cache, "operators", "*", "whole.jsonl")); err != nil || len(left) != 1 {
		t.Errorf("kept: %q, %v", left, err)
	}
}
