package reports

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Comparison is what became of a report's checks in a later report.
type Comparison struct {
	Before Side `json:"before"`
	After  Side `json:"after"`
	// Differences are what the two reports are about or ran on and do not have in common. They may explain the rest.
	Differences []Difference `json:"differences"`
	Regressions []Change     `json:"regressions"`
	Fixed       []Change     `json:"fixed"`
	New         []Change     `json:"new"`   // checks and stages that the earlier report does not have
	Other       []Change     `json:"other"` // neither better nor worse
	Same        int          `json:"same"`  // checks with the same verdict
	Notes       []string     `json:"notes,omitempty"`

	unasked []string // stages of the earlier report that the later one was not to run
}

// Side names one of the two reports.
type Side struct {
	Path    string  `json:"path"`
	Started string  `json:"started"`
	Verdict Verdict `json:"verdict"`
	Summary string  `json:"summary"` // the report's Conclusion
}

// Difference is a value that the reports do not share.
type Difference struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Change is one check, stage or speed that differs.
type Change struct {
	Stage   string `json:"stage"`
	Name    string `json:"name,omitempty"` // of the check or line, empty for the stage itself
	Subject string `json:"subject,omitempty"`
	Before  string `json:"before"`
	After   string `json:"after"`
	Detail  string `json:"detail,omitempty"`
}

// Compare says what has changed from one report to another.
func Compare(before, after *Report) *Comparison {
	c := &Comparison{Before: side(before), After: side(after), Differences: differences(before, after), Regressions: []Change{}, Fixed: []Change{},
		New: []Change{}, Other: []Change{}}
	sameForm := before.Quick == after.Quick
	for i := range before.Stages {
		c.stage(&before.Stages[i], after.Stage(before.Stages[i].Name), sameForm)
	}
	for _, stage := range after.Stages {
		if before.Stage(stage.Name) == nil {
			c.stage(&Stage{Name: stage.Name, Verdict: NotRun}, &stage, sameForm)
		}
	}
	if len(c.unasked) > 0 {
		c.Notes = append(c.Notes, "Not compared, as the later report was not asked for them: "+strings.Join(c.unasked, ", ")+".")
	}
	c.speeds(before, after)
	return c
}

func side(r *Report) Side {
	return Side{Started: r.Started.UTC().Format("2006-01-02 15:04:05 UTC"), Verdict: r.Verdict, Summary: r.Conclusion()}
}

func differences(before, after *Report) []Difference {
	about := func(r *Report) []Fact {
		return []Fact{
			{"form", map[bool]string{true: "quick", false: "whole"}[r.Quick]},
			{"tool", strings.TrimSpace(r.Tool.Version + " " + r.Tool.Commit)},
			{"baseline", r.Identity.Baseline},
			{"series digest", r.Identity.SeriesDigest},
			{"base commit", r.Identity.BaseCommit},
			{"HEAD tree", r.Identity.HeadTree},
			{"shard", shardOf(r)},
			{"machine", fmt.Sprintf("%s, %d cores", r.Machine.System, r.Machine.Cores)},
			{"real Metal used", fmt.Sprint(r.Machine.MetalRan)},
		}
	}
	all := []Difference{}
	was, is := about(before), about(after)
	for i := range was {
		if was[i].Value != is[i].Value {
			all = append(all, Difference{was[i].Name, was[i].Value, is[i].Value})
		}
	}
	lacks := func(names, others []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) }), ", ")
	}
	if gone, added := lacks(before.Identity.Patches, after.Identity.Patches), lacks(after.Identity.Patches, before.Identity.Patches); gone+added != "" {
		all = append(all, Difference{"patches on one side only", gone, added})
	}
	return all
}

func shardOf(r *Report) string {
	if r.Shard == nil {
		return "none"
	}
	return r.Shard.String()
}

func (c *Comparison) stage(before, after *Stage, sameForm bool) {
	switch {
	case !ran(before) && !ran(after):
		return
	case !ran(after) && after != nil && after.Reason == NotAsked: // whoever left it out knows
		c.unasked = append(c.unasked, after.Name)
		return
	case !ran(after): // a failure that is not looked at any more is none that was fixed
		change := Change{Stage: before.Name, Before: string(before.Verdict), After: "gone", Detail: fmt.Sprintf("checks: %d", len(before.Checks))}
		if after != nil {
			change.After, change.Detail = string(after.Verdict), joined(after.Reason, change.Detail)
		}
		c.Regressions = append(c.Regressions, change)
		return
	case !ran(before) && after.Verdict == Passed:
		c.New = append(c.New, Change{Stage: after.Name, Before: string(before.Verdict), After: string(after.Verdict), Detail: "checks: " +
			checkCounts(after.Checks)})
		return
	}
	was, earlier := keyed(before.Checks)
	is, later := keyed(after.Checks)
	for _, old := range was {
		if now := later[old.key]; now != nil {
			c.check(after.Name, old.Check, now, sameForm)
			continue
		}
		change := checkChange(after.Name, old.Check, string(old.Verdict), "gone", "")
		if old.Verdict == Passed || old.Verdict == Failed {
			c.Regressions = append(c.Regressions, change)
		} else {
			c.Other = append(c.Other, change)
		}
	}
	for _, added := range is {
		switch {
		case earlier[added.key] != nil:
		case added.Verdict == Failed:
			c.Regressions = append(c.Regressions, checkChange(after.Name, added.Check, "not there", string(Failed), added.Detail))
		default:
			c.New = append(c.New, checkChange(after.Name, added.Check, "not there", string(added.Verdict), ""))
		}
	}
	broken := func(s *Stage) bool { // without a check that says so
		return s.Verdict == Failed && !slices.ContainsFunc(s.Checks, func(check Check) bool { return check.Verdict == Failed })
	}
	change := Change{Stage: after.Name, Before: string(before.Verdict), After: string(after.Verdict), Detail: after.Reason}
	switch {
	case broken(after) && !broken(before):
		c.Regressions = append(c.Regressions, change)
	case broken(before) && after.Verdict == Passed:
		c.Fixed = append(c.Fixed, change)
	}
}

// checkKey finds a check in another report. Names may come several times.
type checkKey struct {
	name, subject string
	nth           int
}

type keyedCheck struct {
	*Check
	key checkKey
}

// keyed gives the checks with their keys, in order and by key.
func keyed(checks []Check) ([]keyedCheck, map[checkKey]*Check) {
	var all []keyedCheck
	found := map[checkKey]*Check{}
	number := map[checkKey]int{}
	for i := range checks {
		key := checkKey{name: checks[i].Name, subject: checks[i].Subject}
		number[key]++
		key.nth = number[key]
		all = append(all, keyedCheck{&checks[i], key})
		found[key] = &checks[i]
	}
	return all, found
}

func checkChange(stage string, check *Check, before, after, detail string) Change {
	return Change{Stage: stage, Name: check.Name, Subject: check.Subject, Before: before, After: after, Detail: detail}
}

func (c *Comparison) check(stage string, was, is *Check, sameForm bool) {
	change := checkChange(stage, is, string(was.Verdict), string(is.Verdict), is.Detail)
	switch {
	case was.Verdict == is.Verdict:
		c.Same++
		if is.Verdict == Passed {
			c.cells(stage, was, is, sameForm)
		}
	case is.Verdict == Failed, was.Verdict == Passed:
		c.Regressions = append(c.Regressions, change)
	case is.Verdict == Passed:
		c.Fixed = append(c.Fixed, change)
	default:
		c.Other = append(c.Other, change)
	}
}

// cells looks into a check that passed both times: fewer thread counts prove less, and another end of a stock process
// is worth a line.
func (c *Comparison) cells(stage string, was, is *Check, sameForm bool) {
	if len(was.Cells) == 0 || len(is.Cells) == 0 {
		return // an old report
	}
	var gone []string
	for _, old := range was.Cells {
		at := slices.IndexFunc(is.Cells, func(cell Cell) bool { return cell.Threads == old.Threads && cell.Path == old.Path })
		where := joined(old.inThreads(), old.Path)
		if at < 0 {
			if old.Outcome == OutcomePassed {
				gone = append(gone, where)
			}
		} else if is.Cells[at].Outcome != old.Outcome {
			c.Other = append(c.Other, checkChange(stage, is, old.text(), is.Cells[at].text(), "at "+where))
		}
	}
	if len(gone) == 0 {
		return
	}
	change := checkChange(stage, is, string(Passed), string(NotRun), "at "+strings.Join(gone, "; "))
	if sameForm {
		c.Regressions = append(c.Regressions, change)
	} else {
		c.Other = append(c.Other, change)
	}
}

// speeds compares the points of lines that both reports have, by the 95 % intervals of their means.
func (c *Comparison) speeds(before, after *Report) {
	compared, single := 0, 0
	sameMachine := before.Machine.System == after.Machine.System && before.Machine.Cores == after.Machine.Cores &&
		before.Machine.MetalRan == after.Machine.MetalRan
	for _, stage := range before.Stages {
		other := after.Stage(stage.Name)
		if other == nil {
			continue
		}
		for _, plot := range stage.Plots {
			for _, line := range plot.Lines {
				for _, point := range line.Points {
					now := other.point(plot.Title, line.Name, point.X)
					switch {
					case now == nil || len(point.Samples) == 0 || len(now.Samples) == 0:
						continue
					case len(point.Samples) == 1 || len(now.Samples) == 1:
						single++
						continue
					}
					compared++
					if !sameMachine {
						continue
					}
					wasLow, wasHigh := interval(point.Samples)
					low, high := interval(now.Samples)
					change := Change{Stage: stage.Name, Name: plot.Title, Subject: fmt.Sprintf("%s, %g %s", line.Name, point.X, plot.X),
						Before: fmt.Sprintf("%s (%s to %s)", number(point.Y), number(wasLow), number(wasHigh)), After: fmt.Sprintf("%s (%s to %s)",
							number(now.Y), number(low), number(high))}
					switch {
					case high < wasLow:
						change.Detail = fmt.Sprintf("slower by %.0f %%, more than the 95 %% intervals explain", 100*(1-now.Y/point.Y))
						c.Regressions = append(c.Regressions, change)
					case low > wasHigh:
						change.Detail = "faster"
						c.Other = append(c.Other, change)
					}
				}
			}
		}
	}
	if compared > 0 && !sameMachine {
		c.Notes = append(c.Notes, "The machines differ: speeds were not compared.")
	}
	if single > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d speeds were measured once, so they cannot be compared; verify --repeat 5 measures each five times.", single))
	}
}

func (s *Stage) point(title, line string, x float64) *PlotPoint {
	for _, plot := range s.Plots {
		for _, l := range plot.Lines {
			for i := range l.Points {
				if plot.Title == title && l.Name == line && l.Points[i].X == x {
					return &l.Points[i]
				}
			}
		}
	}
	return nil
}

// student holds the 97.5 % quantiles of Student's t for 1 to 20 degrees of freedom.
var student = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
	2.093, 2.086}

// interval is the 95 % confidence interval of the mean of at least two samples; of more than 21 a little too wide.
func interval(samples []float64) (low, high float64) {
	n := float64(len(samples))
	var mean, squares float64
	for _, value := range samples {
		mean += value / n
	}
	for _, value := range samples {
		squares += (value - mean) * (value - mean)
	}
	half := student[min(len(samples)-1, len(student))-1] * math.Sqrt(squares/(n-1)/n)
	return mean - half, mean + half
}

// Summary is the comparison in one line.
func (c *Comparison) Summary() string {
	return fmt.Sprintf("regressions: %d, fixed: %d, new: %d, other changes: %d, same: %d", len(c.Regressions), len(c.Fixed), len(c.New), len(c.Other), c.Same)
}

// WriteMarkdown renders the comparison for people, what got worse first.
func (c *Comparison) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### mpsforge: %s %s\n\n", marks[map[bool]Verdict{true: Passed, false: Failed}[len(c.Regressions) == 0]], c.Summary())
	fmt.Fprintf(&b, "- before: %s, %s: %s\n- after: %s, %s: %s\n", c.Before.Path, c.Before.Started, c.Before.Summary, c.After.Path, c.After.Started,
		c.After.Summary)
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	if len(c.Differences) > 0 {
		b.WriteString("\n#### The reports differ in\n\n| what | before | after |\n| --- | --- | --- |\n")
		for _, d := range c.Differences {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", d.What, cell(d.Before), cell(d.After))
		}
	}
	for _, group := range []struct {
		title   string
		changes []Change
	}{{"Regressions", c.Regressions}, {"Fixed", c.Fixed}, {"New", c.New}, {"Other changes", c.Other}} {
		if len(group.changes) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n#### %s\n\n| stage | check | before | after | detail |\n| --- | --- | --- | --- | --- |\n", group.title)
		for _, change := range group.changes {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", change.Stage, cell(joined(change.Name, change.Subject)), cell(change.Before),
				cell(change.After), cell(change.Detail))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}
