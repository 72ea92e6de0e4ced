package validate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"mpsforge/internal/run"
	"mpsforge/native/slots"
	"mpsforge/reports"
)

// programTimeout only detects a compiled check that hangs.
const programTimeout = 20 * time.Minute

// checkConformance fills the stage with the checks of the allocator in a checkout's header.
func checkConformance(ctx context.Context, o stageOptions, stage *reports.Stage) error {
	if _, err := slots.Reference(); err != nil {
		return Skipf("%v", err)
	}
	tools := findCompiler(ctx, o.cache)
	if tools.err != nil {
		return Skipf("%v", tools.err)
	}
	header, err := os.ReadFile(o.header)
	if err != nil {
		return fmt.Errorf("slot allocator: %w", err)
	}
	digest := sha256.Sum256(header)
	identity := "MPSStreamSlots.h sha256:" + hex.EncodeToString(digest[:]) + " " + o.stamp
	source, err := headerSubject(header, identity)
	if err != nil {
		return err
	}
	c := newStageChecker(o, stage, "checkout")
	builder := subjectBuilder{o.cache, tools}
	path, err := builder.build(ctx, source.library())
	if err != nil {
		stage.Add(reports.Check{Name: "compile", Subject: c.subject, Rule: "2", Verdict: reports.Failed, Detail: firstLine(err), Output: err.Error()})
		return nil
	}
	subject, err := slots.Load(path)
	if err != nil {
		return err
	}
	found := subject.Identity()
	stage.Facts = append(stage.Facts, reports.Fact{Name: "identity", Value: found}, reports.Fact{Name: "compiler", Value: tools.version})
	if found != identity {
		stage.Add(reports.Check{Name: "identity", Subject: c.subject, Verdict: reports.Failed, Detail: fmt.Sprintf("the loaded library was built from something else: expected %q, found %q", identity, found)})
		return nil
	}
	stage.Add(reports.Check{Name: "identity", Subject: c.subject, Verdict: reports.Passed, Detail: found})
	// First what runs in processes of its own. A subject that fails there is not let into this one: it could crash it or
	// hang it.
	if err := c.runGroups(ctx, stage,
		func() []reports.Check { return c.checkSchedules(ctx, builder, header) },
		func() []reports.Check { return c.checkSanitizers(ctx, tools, source) }); err != nil {
		return err
	}
	if stage.Verdict == reports.Failed {
		stage.Add(reports.Check{Name: "scenarios and histories", Subject: c.subject, Rule: "2, 7, 8, 26", Verdict: reports.NotRun, Detail: "after the failure above the library is not run inside this process"})
		return nil
	}
	return c.runGroups(ctx, stage, func() []reports.Check { return c.checkInProcess(ctx, subject) })
}

// checkInProcess runs the checks that call the subject from this process.
func (c *stageChecker) checkInProcess(ctx context.Context, subject *slots.Subject) []reports.Check {
	return append(c.checkScenarios(ctx, subject), c.checkHistories(ctx, subject)...)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// checkSanitizers runs the stress program under each sanitizer that works here.
func (c *stageChecker) checkSanitizers(ctx context.Context, tools compiler, subject slotSubject) []reports.Check {
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

func lastLines(text []byte) string { return run.LastLines(string(text), 60) }

// checkSchedules enumerates the interleavings of small cases.
func (c *stageChecker) checkSchedules(ctx context.Context, builder subjectBuilder, header []byte) []reports.Check {
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
