package reports

import (
	"fmt"
	"slices"
	"strings"
)

// Answer is what the run found, in a few lines: what failed, how stock and the patched sources ended, what else passed, what
// did not run and why, and the command that runs the same again.
func (r *Report) Answer() []string {
	var lines, passed []string
	for _, stage := range r.Stages {
		if stage.Verdict == Failed {
			lines = append(lines, fmt.Sprintf("Failed: %s: %s", stage.Name, cut(stage.Reason)))
		}
	}
	for i := range r.Stages {
		stage := &r.Stages[i]
		if text := stage.sides(); text != "" {
			lines = append(lines, stage.Name+": "+text)
		} else if stage.Verdict == Passed {
			passed = append(passed, stage.Name)
		}
	}
	if len(passed) > 0 {
		lines = append(lines, "Passed: "+strings.Join(passed, ", ")+".")
	}
	lines = append(lines, r.didNotRun()...)
	if r.Command != "" {
		lines = append(lines, "Run it again: "+r.Command)
	}
	return lines
}

// sides says how stock ended and how the patched sources did; empty for a stage that does not compare them.
func (s *Stage) sides() string {
	rows := s.comparisons()
	if len(rows) == 0 {
		return ""
	}
	stock, compared, ends, crashed := 0, 0, map[Outcome]int{}, true
	for _, row := range rows {
		outcome, _ := row.Stock.ended()
		if outcome == OutcomeSkipped || outcome == "" {
			continue
		}
		compared++
		if outcome != OutcomePassed {
			stock++
			ends[outcome]++
			crashed = crashed && outcome == OutcomeCrashed
		}
	}
	patched, of := 0, 0
	for _, check := range s.Checks {
		if check.side() == "patched" && check.Verdict != Skipped && len(check.Cells) > 0 {
			of++
			if check.Verdict == Passed {
				patched++
			}
		}
	}
	text := fmt.Sprintf("stock crashed in %d of %d tests", stock, compared)
	switch {
	case stock == 0:
		text = fmt.Sprintf("stock passed %d of %d tests", compared, compared)
	case !crashed:
		var parts []string
		for _, outcome := range outcomeLegend {
			if ends[outcome] > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", outcome, ends[outcome]))
			}
		}
		text = fmt.Sprintf("stock failed in %d of %d tests (%s)", stock, compared, strings.Join(parts, ", "))
	}
	return fmt.Sprintf("%s; patched passed %d of %d.", text, patched, of)
}

// didNotRun lists the stages without a verdict, those with the same reason together.
func (r *Report) didNotRun() []string {
	var reasons []string
	names := map[string][]string{}
	for i := range r.Stages {
		if stage := &r.Stages[i]; !ran(stage) {
			if !slices.Contains(reasons, stage.Reason) {
				reasons = append(reasons, stage.Reason)
			}
			names[stage.Reason] = append(names[stage.Reason], stage.Name)
		}
	}
	var lines []string
	for _, reason := range reasons {
		line := "Not run: " + strings.Join(names[reason], ", ")
		if reason != "" {
			line += " (" + cut(reason) + ")"
		}
		lines = append(lines, line+".")
	}
	return lines
}

// cut is a reason in one line that can be read at a glance; the whole one is in the table of stages.
func cut(reason string) string { return strings.TrimSuffix(shorten(printable(reason), 200), ".") }
