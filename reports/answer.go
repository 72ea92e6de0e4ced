package reports

import (
	"fmt"
	"slices"
	"strings"

	"mpsforge/internal/words"
)

// openers are the stages whose comparison of stock and patched can open a report, the one that shows most first, and what their
// checks are called.
var openers = []struct{ stage, checks string }{{"python", "Python tests"}, {"runtime", "scenarios"}}

// Verification is the answer in a line: how stock and the patched sources ended, if a stage compared them, and the verdict. Where another
// stage failed, that comes first, and the comparison is left to Answer.
func (r *Report) Verification() string {
	if stage := r.opening(); stage != nil {
		return strings.Replace(stage.sides(), "stock", "Stock", 1) + " Verification " + r.Conclusion()
	}
	return "verification " + r.Conclusion()
}

// opening is the stage that Verification begins with.
func (r *Report) opening() *Stage {
	for _, c := range openers {
		stage := r.Stage(c.stage)
		if stage != nil && stage.sides() != "" && !slices.ContainsFunc(r.Stages, func(s Stage) bool { return s.Verdict == Failed && s.Name != c.stage }) {
			return stage
		}
	}
	return nil
}

// runAgain is before the command that runs the same again.
const runAgain = "Run it again: "

// Answer is what Verification leaves out, in a few lines: what failed, how stock and the patched sources ended in other stages, what
// else passed, what did not run and why, and the command that runs the same again.
func (r *Report) Answer() []string {
	var lines, passed []string
	for _, stage := range r.Stages {
		if stage.Verdict == Failed {
			lines = append(lines, fmt.Sprintf("Failed: %s: %s", stage.Name, cut(stage.Reason)))
		}
	}
	for i := range r.Stages {
		stage := &r.Stages[i]
		if stage == r.opening() {
			continue
		} else if text := stage.sides(); text != "" {
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
		lines = append(lines, runAgain+r.Command)
	}
	return lines
}

// readers are the stages that compile and run nothing.
var readers = []string{"series", "checkout"}

// Place says on what the report's stages ran: over the software Metal, or on a Mac.
func (r *Report) Place() string {
	reads := !slices.ContainsFunc(r.Stages, func(s Stage) bool { return ran(&s) && !slices.Contains(readers, s.Name) })
	switch {
	case reads:
		return "nothing of PyTorch was compiled or run; not run on a Mac"
	case r.Machine.MetalRan:
		return "run on the GPU of a Mac"
	case strings.HasPrefix(r.Machine.System, "darwin/"):
		return "run over the software Metal on a Mac; not run on its GPU"
	}
	return "run over the software Metal on Linux; not run on a Mac"
}

// sides says how stock ended and how the patched sources did where stock is the control, and in how many others they passed; empty for a
// stage that compares nothing.
func (s *Stage) sides() string {
	stock, of, patched, compared, ends := 0, 0, 0, map[*Check]bool{}, map[Outcome]int{}
	for _, row := range s.comparisons() {
		outcome, _ := row.Stock.ended()
		if outcome == OutcomeSkipped || outcome == "" {
			continue
		}
		of++
		compared[row.Patched] = true
		if row.Patched.Verdict == Passed {
			patched++
		}
		if outcome != OutcomePassed {
			stock++
			ends[outcome]++
		}
	}
	if of == 0 {
		return ""
	}
	others, passed := 0, 0
	for i := range s.Checks {
		check := &s.Checks[i]
		if check.side() == "patched" && check.Verdict != Skipped && len(check.Cells) > 0 && !compared[check] {
			others++
			if check.Verdict == Passed {
				passed++
			}
		}
	}
	checks := "tests"
	for _, c := range openers {
		if c.stage == s.Name {
			checks = c.checks
		}
	}
	text := fmt.Sprintf("stock crashed in %d of %d %s", stock, of, checks)
	switch {
	case stock == 0:
		text = fmt.Sprintf("stock passed %d of %d %s", of, of, checks)
	case ends[OutcomeCrashed] < stock:
		var parts []string
		for _, outcome := range outcomeLegend {
			if ends[outcome] > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", outcome, ends[outcome]))
			}
		}
		text = fmt.Sprintf("stock failed in %d of %d %s (%s)", stock, of, checks, strings.Join(parts, ", "))
	}
	text += fmt.Sprintf("; patched passed %d of these", patched)
	if others > 0 {
		text += fmt.Sprintf(", and %d of %d that stock does not run", passed, others)
	}
	return text + "."
}

// didNotRun lists the stages without a verdict, those with the same reason together.
func (r *Report) didNotRun() []string {
	var groups words.Groups
	for i := range r.Stages {
		if stage := &r.Stages[i]; !ran(stage) {
			groups.Add(stage.Reason, stage.Name)
		}
	}
	var lines []string
	for _, group := range groups {
		line := "Not run: " + strings.Join(group.Names, ", ")
		if group.Reason != "" {
			line += " (" + cut(group.Reason) + ")"
		}
		lines = append(lines, line+".")
	}
	return lines
}

// cut is a reason in one line that can be read at a glance; the whole one is in the table of stages.
func cut(reason string) string { return strings.TrimSuffix(shorten(printable(reason), 200), ".") }
