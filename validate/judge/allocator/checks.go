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
	var checks []reports.Check
	for _, s := range []struct {
		cxx.Sanitizer
		err error
	}{{cxx.ThreadSanitizer, tools.Thread}, {cxx.AddressSanitizer, tools.Address}} {
		started := time.Now()
		check := reports.Check{Name: s.Name, Subject: c.Subject, Rule: "2, 8, 26"}
		c.Begin(check.Name)
		finish := func(verdict reports.Verdict, detail string) {
			check.Verdict, check.Detail, check.Seconds = verdict, detail, time.Since(started).Seconds()
			checks = append(checks, c.Progress(ctx, check))
		}
		if tools.Err != nil {
			finish(reports.Skipped, tools.Err.Error())
			continue
		}
		if s.err != nil {
			finish(reports.Skipped, s.Name+" does not work here: "+words.FirstLine(s.err.Error()))
			continue
		}
		target, err := subject.stress(s.Flavour)
		if err != nil {
			finish(reports.Failed, err.Error())
			continue
		}
		program, err := builder.Build(ctx, target)
		if err != nil {
			check.Output = err.Error()
			finish(reports.Failed, words.FirstLine(err.Error()))
			continue
		}
		limited, cancel := context.WithTimeout(ctx, ProgramTimeout)
		result, err := run.Command{Name: program, Args: []string{fmt.Sprint(c.Seed), operations, rounds, fmt.Sprint(c.Patience.Milliseconds())},
			Env: run.Environment(s.Environment, nil)}.Run(limited)
		cancel()
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
			finish(reports.Passed, fmt.Sprintf("%d histories, %d operations, nothing reported", summary.Histories, summary.Operations))
		case jsonErr == nil && summary.Violation != "":
			finish(reports.Failed, fmt.Sprintf("%s (seed %d)", summary.Violation, summary.Seed))
		case run.ExitCode(err) == s.Exit:
			check.Output = process.LastLines(result.Stderr)
			finish(reports.Failed, s.Finding+" reported")
		case err != nil:
			check.Output = process.LastLines(result.Stderr)
			finish(reports.Failed, words.FirstLine(err.Error()))
		default:
			finish(reports.Failed, "cannot read what the program printed: "+jsonErr.Error())
		}
	}
	return checks
}

// CheckSchedules enumerates the interleavings of small cases.
func CheckSchedules(ctx context.Context, c *stage.Checker, builder cxx.Builder, header []byte) []reports.Check {
	started := time.Now()
	check := reports.Check{Name: "schedule search", Subject: c.Subject, Rule: "2, 8, 26", Verdict: reports.Failed}
	c.Begin(check.Name)
	preemptions := "3"
	if !c.Quick {
		preemptions = "4"
	}
	finish := func(detail string) []reports.Check {
		check.Detail, check.Seconds = detail, time.Since(started).Seconds()
		return []reports.Check{c.Progress(ctx, check)}
	}
	target, err := scheduleSearch(header)
	if err != nil {
		return finish(err.Error())
	}
	program, err := builder.Build(ctx, target)
	if err != nil {
		check.Output = err.Error()
		return finish(words.FirstLine(err.Error()))
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
		check.Output = process.LastLines(result.Stderr)
		return finish(fmt.Sprintf("no result: %v", err))
	}
	c.Count("interleavings", summary.Interleavings)
	if violation := summary.Violation; violation != nil {
		check.Output = violation.Trace
		return finish(fmt.Sprintf("case %q: %s; to see it again: %s --replay %s %q %q", violation.Case, violation.Message, program, preemptions,
			violation.Case, violation.Schedule))
	}
	if err != nil {
		return finish(words.FirstLine(err.Error()))
	}
	check.Verdict = reports.Passed
	return finish(fmt.Sprintf("%d cases, %d interleavings, at most %s pre-emptions each", summary.Cases, summary.Interleavings, preemptions))
}
