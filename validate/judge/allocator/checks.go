// Package allocator checks slot allocators, the reference's and the checkout's alike: scenarios by rule, histories, schedules,
// sanitizers. It takes its subject as an argument and knows no checkout.
package allocator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"mpsforge/internal/cxx"
	"mpsforge/internal/run"
	"mpsforge/internal/words"
	"mpsforge/native/slots"
	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// ProgramTimeout only detects a compiled check that hangs.
const ProgramTimeout = 20 * time.Minute

// How many checks there are of each kind.
var (
	InProcess  = len(slotScenarios) + len(historyShapes)
	Sanitizers = 2
	Schedules  = 1
)

// CheckInProcess runs the checks that call the subject from this process.
func CheckInProcess(ctx context.Context, c *stage.Checker, subject *slots.Subject) []reports.Check {
	return append(CheckScenarios(ctx, c, subject), checkHistories(ctx, c, subject)...)
}

// CheckSanitizers runs the stress program under each sanitizer that works here.
func CheckSanitizers(ctx context.Context, c *stage.Checker, tools cxx.Compiler, subject Subject) []reports.Check {
	builder := cxx.Builder{Cache: c.Cache, Compiler: tools}
	operations, rounds := "300", "2"
	if !c.Quick {
		operations, rounds = "2000", "20"
	}
	return c.Sanitizers(ctx, tools, "", "2, 8, 26", func(s cxx.Sanitizer) (verdict reports.Verdict, detail, output string) {
		target, err := subject.stress(s.Flavour)
		if err != nil {
			return reports.Failed, err.Error(), ""
		}
		program, err := builder.Build(ctx, target)
		if err != nil {
			return reports.Failed, words.FirstLine(err.Error()), err.Error()
		}
		limited, cancel := context.WithTimeout(ctx, ProgramTimeout)
		defer cancel()
		result, err := run.Command{Name: program, Args: []string{fmt.Sprint(c.Seed), operations, rounds, fmt.Sprint(c.Patience.Milliseconds())},
			Env: run.Environment(s.Environment, nil)}.Run(limited)
		var summary struct {
			Histories  int64
			Operations int64
			Violation  string
			Seed       uint64
		}
		jsonErr := json.Unmarshal(result.Stdout, &summary)
		switch {
		case err == nil && jsonErr == nil:
			c.Count("sanitizer operations", summary.Operations)
			return reports.Passed, fmt.Sprintf("%d histories, %d operations, nothing reported", summary.Histories, summary.Operations), ""
		case jsonErr == nil && summary.Violation != "":
			return reports.Failed, fmt.Sprintf("%s (seed %d)", summary.Violation, summary.Seed), ""
		case run.ExitCode(err) == s.Exit:
			return reports.Failed, s.Finding + " reported", process.LastLines(result.Stderr)
		case err != nil:
			return reports.Failed, words.FirstLine(err.Error()), process.LastLines(result.Stderr)
		}
		return reports.Failed, "cannot read what the program printed: " + jsonErr.Error(), ""
	})
}

// CheckSchedules enumerates the interleavings of small cases.
func CheckSchedules(ctx context.Context, c *stage.Checker, builder cxx.Builder, header []byte) []reports.Check {
	return []reports.Check{c.Check(ctx, reports.Check{Name: "schedule search", Rule: "2, 8, 26"}, func(check *reports.Check) {
		check.Verdict, check.Detail, check.Output = searchSchedules(ctx, c, builder, header)
	})}
}

func searchSchedules(ctx context.Context, c *stage.Checker, builder cxx.Builder, header []byte) (verdict reports.Verdict, detail, output string) {
	preemptions := "3"
	if !c.Quick {
		preemptions = "4"
	}
	target, err := scheduleSearch(header)
	if err != nil {
		return reports.Failed, err.Error(), ""
	}
	program, err := builder.Build(ctx, target)
	if err != nil {
		return reports.Failed, words.FirstLine(err.Error()), err.Error()
	}
	limited, cancel := context.WithTimeout(ctx, ProgramTimeout)
	defer cancel()
	result, err := run.Command{Name: program, Args: []string{preemptions}}.Run(limited)
	var summary struct {
		Cases         int
		Interleavings int64
		Violation     *struct{ Case, Message, Schedule, Trace string }
	}
	if jsonErr := json.Unmarshal(result.Stdout, &summary); jsonErr != nil {
		return reports.Failed, fmt.Sprintf("no result: %v", err), process.LastLines(result.Stderr)
	}
	c.Count("interleavings", summary.Interleavings)
	if violation := summary.Violation; violation != nil {
		return reports.Failed, fmt.Sprintf("case %q: %s; to see it again: %s --replay %s %q %q", violation.Case, violation.Message, program, preemptions,
			violation.Case, violation.Schedule), violation.Trace
	}
	if err != nil {
		return reports.Failed, words.FirstLine(err.Error()), ""
	}
	return reports.Passed, fmt.Sprintf("%d cases, %d interleavings, at most %s pre-emptions each", summary.Cases, summary.Interleavings, preemptions), ""
}
