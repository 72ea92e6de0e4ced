package reports

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// page is what the template shows: the report, and what is derived from it.
type page struct {
	*Report
	Style    template.CSS
	Mark     string
	Headline string
	Place    string // what it ran on
	Found    []string
	About    []Fact
	Failures []failure
	Compared []compared
	Grids    []stageGrid
	Findings []stageFinding // of failed checks
	Wanted   []stageFinding // of the others
	Charts   []pageChart
	Sections []section // of all stages
	Legend   string
	Left     int // rows left out

	AllWanted int // also those left out of Wanted
}

// mostRows is how many rows a list or table of the page has at most: browsers do not show hundreds of thousands.
const mostRows = 5000

// firstRows gives as many rows as the page shows, and counts the others.
func firstRows[T any](p *page, rows []T) []T {
	if len(rows) <= mostRows {
		return rows
	}
	p.Left += len(rows) - mostRows
	return rows[:mostRows]
}

// failure is a failed check with its stage.
type failure struct {
	Stage string
	Check
}

type compared struct {
	Stage string
	Open  bool
	Rows  []comparison
}

type stageGrid struct {
	Stage, Signatures string
	Open              bool
	grid
}

type stageFinding struct {
	Stage string
	Check *Check
	Finding
}

type pageChart struct {
	Stage string
	Plot
	SVG template.HTML
}

// section is a stage with its checks by verdict.
type section struct {
	*Stage
	Mark   string
	Counts string
	Ran    bool
	Open   bool
	Shown  []Check // all but the passed ones
	Passed []Check

	AllPassed int // also those left out of Passed
}

// WriteHTML renders the report as one page that needs nothing else: no network, no script.
func (r *Report) WriteHTML(w io.Writer) error {
	parsed, err := template.New("page").Funcs(template.FuncMap{
		"mark":     func(v Verdict) string { return marks[v] },
		"symbol":   func(o Outcome) string { return outcomeMarks[o] },
		"class":    func(v Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
		"shade":    shade,
		"ranges":   ranges,
		"threads":  cellRange.threads,
		"celltext": Cell.text,
		"name":     Cell.name,
		"ended":    func(c *Check) string { _, text := c.ended(); return text },
		"endmark": func(c *Check) string {
			outcome, _ := c.ended()
			return outcomeMarks[outcome]
		},
		"endshade": (*Check).shade,
		// The name of a table for those who do not see it, and its rows.
		"labelled": func(label, of string, rows any) any {
			return struct {
				Label string
				Rows  any
			}{label + ", " + of, rows}
		},
		"seconds": func(s float64) string { return fmt.Sprintf("%.1f", s) },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := parsed.Execute(&text, r.page()); err != nil {
		return err
	}
	_, err = io.WriteString(w, plain(text.String()))
	return err
}

func (r *Report) page() page {
	p := page{Report: r, Style: template.CSS(pageStyle + lineStyle), Mark: marks[r.Verdict], Found: r.Answer(),
		About: r.identity(), Legend: legend()}
	p.Headline, p.Place = r.headline()
	for i := range r.Stages {
		stage := &r.Stages[i]
		s := section{Stage: stage, Mark: marks[stage.Verdict], Counts: checkCounts(stage.Checks), Ran: ran(stage), Open: stage.Verdict == Failed}
		failed := len(p.Failures)
		for j := range stage.Checks {
			check := stage.Checks[j]
			if check.Verdict == Failed {
				p.Failures = append(p.Failures, failure{stage.Name, check})
			}
			if check.Verdict == Passed {
				s.Passed = append(s.Passed, check)
			} else {
				s.Shown = append(s.Shown, check)
			}
			for _, found := range check.Findings {
				list := &p.Wanted
				if check.Verdict == Failed {
					list = &p.Findings
				}
				*list = append(*list, stageFinding{stage.Name, &stage.Checks[j], found})
			}
		}
		if stage.Verdict == Failed && len(p.Failures) == failed {
			p.Failures = append(p.Failures, failure{stage.Name, Check{Name: "the stage itself", Verdict: Failed, Detail: stage.Reason}})
		}
		s.AllPassed = len(s.Passed)
		s.Shown, s.Passed = firstRows(&p, s.Shown), firstRows(&p, s.Passed)
		p.Sections = append(p.Sections, s)
		if rows := stage.comparisons(); len(rows) > 0 {
			p.Compared = append(p.Compared, compared{stage.Name, s.Open, firstRows(&p, rows)})
		}
		if g := stage.threadGrid(); len(g.Rows)+len(g.Wide) > 0 {
			g.Rows, g.Wide = firstRows(&p, g.Rows), firstRows(&p, g.Wide)
			p.Grids = append(p.Grids, stageGrid{stage.Name, g.signatures(), s.Open, g})
		}
	}
	p.AllWanted = len(p.Wanted)
	p.Failures, p.Findings, p.Wanted = firstRows(&p, p.Failures), firstRows(&p, p.Findings), firstRows(&p, p.Wanted)
	for _, plot := range r.plots() {
		if len(plot.Lines)+len(plot.Bars) > 0 {
			// The writer escapes each text it puts in.
			p.Charts = append(p.Charts, pageChart{plot.From, plot.Plot, template.HTML(plot.svg(false))})
		}
	}
	return p
}

// checkCounts says how many checks ended how.
func checkCounts(checks []Check) string {
	if len(checks) == 0 {
		return "no checks"
	}
	number := map[Verdict]int{}
	for _, check := range checks {
		number[check.Verdict]++
	}
	var parts []string
	for _, verdict := range []Verdict{Failed, Passed, Skipped, NotRun} {
		if number[verdict] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", number[verdict], verdict))
		}
	}
	return strings.Join(parts, ", ")
}

// shade is the style of a cell. That stock dies where it must is not a failure, and must not look like one.
func shade(check *Check, cell Cell) string {
	switch {
	case cell.Outcome == "":
		return "empty"
	case cell.Outcome == OutcomePassed:
		return "passed"
	case cell.Outcome == OutcomeSkipped || check.Verdict == Skipped:
		return "skipped"
	case check.Verdict == Passed && check.side() == "stock":
		return "wanted"
	}
	return "failed"
}

// shade of all of a check's processes.
func (c *Check) shade() string {
	if c.Verdict == Failed {
		return "failed"
	}
	outcome, _ := c.ended()
	return shade(c, Cell{Outcome: outcome})
}
