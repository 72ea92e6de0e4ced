package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"mpsforge/internal/run"
	"mpsforge/native/slots"
	"mpsforge/reports"
)

// programTimeout only detects a compiled check that hangs.
const programTimeout = 20 * time.Minute

// checkInProcess runs the checks that call the subject from this process.
func checkInProcess(ctx context.Context, c *stageChecker, subject *slots.Subject) []reports.Check {
	return append(checkScenarios(ctx, c, subject), checkHistories(ctx, c, subject)...)
}

// checkSanitizers runs the stress program under each sanitizer that works here.
func checkSanitizers(ctx context.Context, c *stageChecker, tools compiler, subject slotSubject) []reports.Check {
	builder := subjectBuilder{c.cache, tools}
	operations, rounds := "300", "2"
	if !c.quick {
		operations, rounds = "2000", "20"
	}
	var checks []reports.Check
	for _, s := range []struct {
		sanitizer
		err error
	}{{threadSanitizer, tools.thread}, {addressSanitizer, tools.address}} {
		started := time.Now()
		check := reports.Check{Name: s.name, Subject: c.subject, Rule: "2, 8, 27"}
		c.begin(check.Name)
		finish := func(verdict reports.Verdict, detail string) {
			check.Verdict, check.Detail, check.Seconds = verdict, detail, time.Since(started).Seconds()
			checks = append(checks, c.progress(ctx, check))
		}
		if tools.err != nil {
			finish(reports.Skipped, tools.err.Error())
			continue
		}
		if s.err != nil {
			finish(reports.Skipped, s.name+" does not work here: "+firstLine(s.err))
			continue
		}
		target, err := subject.stress(s.flavour)
		if err != nil {
			finish(reports.Failed, err.Error())
			continue
		}
		program, err := builder.build(ctx, target)
		if err != nil {
			check.Output = err.Error()
			finish(reports.Failed, firstLine(err))
			continue
		}
		limited, cancel := context.WithTimeout(ctx, programTimeout)
		result, err := run.Command{Name: program, Args: []string{fmt.Sprint(c.seed), operations, rounds, fmt.Sprint(c.patience.Milliseconds())}, Env: run.Environment(s.environment, nil)}.Run(limited)
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
			c.count("sanitizer operations", summary.Operations)
			finish(reports.Passed, fmt.Sprintf("%d histories, %d operations, nothing reported", summary.Histories, summary.Operations))
		case jsonErr == nil && summary.Violation != "":
			finish(reports.Failed, fmt.Sprintf("%s (seed %d)", summary.Violation, summary.Seed))
		case run.ExitCode(err) == s.exit:
			check.Output = lastLines(result.Stderr)
			finish(reports.Failed, s.finding+" reported")
		case err != nil:
			check.Output = lastLines(result.Stderr)
			finish(reports.Failed, firstLine(err))
		default:
			finish(reports.Failed, "cannot read what the program printed: "+jsonErr.Error())
		}
	}
	return checks
}

// checkSchedules enumerates the interleavings of small cases.
func checkSchedules(ctx context.Context, c *stageChecker, builder subjectBuilder, header []byte) []reports.Check {
	started := time.Now()
	check := reports.Check{Name: "schedule search", Subject: c.subject, Rule: "2, 8, 26", Verdict: reports.Failed}
	c.begin(check.Name)
	preemptions := "2"
	if !c.quick {
		preemptions = "3"
	}
	finish := func(detail string) []reports.Check {
		check.Detail, check.Seconds = detail, time.Since(started).Seconds()
		return []reports.Check{c.progress(ctx, check)}
	}
	target, err := scheduleSearch(header)
	if err != nil {
		return finish(err.Error())
	}
	program, err := builder.build(ctx, target)
	if err != nil {
		check.Output = err.Error()
		return finish(firstLine(err))
	}
	limited, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	result, err := run.Command{Name: program, Args: []string{preemptions}}.Run(limited)
	var summary struct {
		Cases         int
		Interleavings int64
		Violation     *struct{ Case, Message, Schedule, Trace string }
	}
	if jsonErr := json.Unmarshal(result.Stdout, &summary); jsonErr != nil {
		check.Output = lastLines(result.Stderr)
		return finish(fmt.Sprintf("no result: %v", err))
	}
	c.count("interleavings", summary.Interleavings)
	if violation := summary.Violation; violation != nil {
		check.Output = violation.Trace
		return finish(fmt.Sprintf("case %q: %s; to see it again: %s --replay %s %q %q", violation.Case, violation.Message, program, preemptions, violation.Case, violation.Schedule))
	}
	if err != nil {
		return finish(firstLine(err))
	}
	check.Verdict = reports.Passed
	return finish(fmt.Sprintf("%d cases, %d interleavings, at most %s pre-emptions each", summary.Cases, summary.Interleavings, preemptions))
}
