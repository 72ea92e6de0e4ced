package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"mpsforge/internal/words"
)

// textPage is the text form being written.
type textPage struct {
	strings.Builder
	colours words.Palette
	width   int // of a line, in characters; tables of many columns may need more
}

func (t *textPage) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t *textPage) head(title string) { t.line("\n%s", words.Paint(t.colours.Bold, title)) }

// paint colours a text by a verdict.
func (t *textPage) paint(verdict Verdict, text string) string {
	colour := t.colours.Odd
	switch verdict {
	case Passed:
		colour = t.colours.Good
	case Failed:
		colour = t.colours.Bad
	}
	return words.Paint(colour, text)
}

// verdict is padded before it is painted: the terminal's codes have no width.
func (t *textPage) verdict(verdict Verdict) string {
	return t.paint(verdict, fmt.Sprintf("%s %-7s", marks[verdict], verdict))
}

// PipeWidth is the width of text for a reader whose width is not known, in characters.
const PipeWidth = 100

// WriteSummary renders the report's answer for a terminal: about one screen, and the failures. Lines have at most width characters, unless a
// word is longer.
func (r *Report) WriteSummary(w io.Writer, colours words.Palette, width int) error {
	t := &textPage{colours: colours, width: width}
	t.summary(r)
	return t.writeTo(w)
}

// summary is the answer, the stages that ran, and what failed.
func (t *textPage) summary(r *Report) {
	verdict, place := r.headline()
	for _, line := range words.Wrap("mpsforge: "+marks[r.Verdict]+" "+printable(verdict), t.width) {
		t.line("%s", t.paint(r.Verdict, line))
	}
	t.paragraph("", place)
	for _, line := range r.Answer() {
		if strings.HasPrefix(line, runAgain) { // which is copied, so that no line breaks are in it
			t.line("  %s", printable(line))
			continue
		}
		t.paragraph("  ", line)
	}
	if slices.ContainsFunc(r.Stages, func(s Stage) bool { return ran(&s) }) {
		t.head("Stages")
	}
	for i := range r.Stages {
		if stage := &r.Stages[i]; ran(stage) {
			t.line("  %-12s %s %7.1f s  checks: %d", stage.Name, t.verdict(stage.Verdict), stage.Seconds, len(stage.Checks))
		}
	}
	t.checks("Failed", r, Failed)
}

// WriteText renders all of the report for a terminal: the summary, stock against patched, the
// thread grid, the charts, what was skipped, and at the end what was verified with what.
func (r *Report) WriteText(w io.Writer, colours words.Palette, width int) error {
	t := &textPage{colours: colours, width: width}
	t.summary(r)
	t.head("Counted")
	for i := range r.Stages {
		if text := counts(r.Stages[i].Counts); text != "" {
			t.paragraph("  "+r.Stages[i].Name+": ", text)
		}
	}
	for i := range r.Stages {
		t.stage(&r.Stages[i])
	}
	for _, plot := range r.plots() {
		var bars strings.Builder
		if plot.writeBars(&bars, t.width); bars.Len() > 0 {
			t.head(plot.Title + " (" + plot.Unit + ")")
			t.WriteString(bars.String())
		}
	}
	t.checks("Skipped", r, Skipped)
	t.head("What this run cannot show")
	for _, limit := range r.Limits {
		t.paragraph("- ", limit)
	}
	t.head("What was verified, with what and where")
	for _, row := range r.identity() {
		t.paragraph(fmt.Sprintf("  %-16s ", row.Name), row.Value)
	}
	return t.writeTo(w)
}

func (t *textPage) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, t.String())
	return err
}

// checks lists those with a verdict, of all stages.
func (t *textPage) checks(title string, r *Report, verdict Verdict) {
	any := false
	for _, stage := range r.Stages {
		for _, check := range stage.Checks {
			if check.Verdict != verdict {
				continue
			}
			if !any {
				t.head(title)
				any = true
			}
			t.line("%s %s: %s", t.paint(verdict, marks[verdict]), stage.Name, printable(joined(check.Name, check.Subject)))
			t.paragraph("    ", check.Detail)
			if verdict != Failed {
				continue
			}
			for _, found := range check.Findings {
				t.paragraph("    ", found.text())
			}
			if check.Artifact != "" {
				t.line("    kept: %s", printable(check.Artifact))
			}
			for _, line := range strings.Split(strings.TrimRight(check.Output, "\n"), "\n") {
				if line != "" {
					t.line("    | %s", printable(line))
				}
			}
		}
	}
}

// stage shows what a stage measured: stock against patched, the thread grid, its tables.
func (t *textPage) stage(s *Stage) {
	if rows := s.comparisons(); len(rows) > 0 {
		t.head(s.Name + ": stock against patched")
		cells := [][]string{{"check", "stock", "patched"}}
		for _, row := range rows {
			cells = append(cells, []string{joined(row.Name, row.Flavour), row.Stock.shown(), row.Patched.shown()})
		}
		t.table(cells)
	}
	if g := s.threadGrid(); len(g.Rows)+len(g.Wide) > 0 {
		t.head(s.Name + ": thread grid")
		t.paragraph("", legend())
		t.paragraph("", g.signatures())
		cells := [][]string{{"check", "on"}}
		for _, threads := range g.Threads {
			cells[0] = append(cells[0], fmt.Sprint(threads))
		}
		for _, row := range g.Rows {
			line := []string{map[bool]string{true: row.Check.Name}[row.First], row.Subject}
			for _, one := range row.Cells {
				line = append(line, one.text())
			}
			cells = append(cells, line)
		}
		if len(cells) > 1 {
			t.table(cells)
		}
		for _, row := range g.Wide {
			t.paragraph("  ", joined(row.Check.Name, row.Subject)+": "+rangesText(row.Cells))
		}
	}
	for _, table := range s.Tables {
		t.head(s.Name + ": " + table.Title)
		if table.Note != "" {
			t.paragraph("", table.Note)
		}
		t.table(append([][]string{table.Columns}, table.Rows...))
	}
}

// shown is a check's end with a mark.
func (c *Check) shown() string {
	outcome, text := c.ended()
	mark := outcomeMarks[outcome]
	if c.Verdict == Failed || mark == "" {
		mark = marks[c.Verdict]
	}
	if c.Verdict != Passed {
		text = joined(string(c.Verdict), text)
	}
	return mark + " " + text
}

// columns are the widths of a table's columns where longer texts than widest go on below.
func columns(rows [][]string, widest int) (widths []int, total int) {
	for _, row := range rows {
		for i, text := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			for _, line := range words.Wrap(printable(text), widest) {
				widths[i] = max(widths[i], utf8.RuneCountInString(line))
			}
		}
	}
	for _, width := range widths {
		total += width + 2
	}
	return widths, total
}

// A column's width: at most, and at least where the table does not fit.
const widestColumn, narrowestColumn = 44, 10

// table aligns cells in columns.
func (t *textPage) table(rows [][]string) {
	widest := widestColumn
	widths, total := columns(rows, widest)
	for total > t.width && widest > narrowestColumn {
		widest--
		widths, total = columns(rows, widest)
	}
	for i, row := range rows {
		var cells [][]string
		height := 1
		for _, text := range row {
			cells = append(cells, words.Wrap(printable(text), widest))
			height = max(height, len(cells[len(cells)-1]))
		}
		for y := range height {
			line := " "
			for x, cell := range cells {
				text := ""
				if y < len(cell) {
					text = cell[y]
				}
				line += " " + text + strings.Repeat(" ", widths[x]-utf8.RuneCountInString(text)+1)
			}
			t.line("%s", strings.TrimRight(line, " "))
		}
		if i == 0 {
			t.line("  %s", strings.Repeat("─", max(0, total-2)))
		}
	}
}

// paragraph writes a text in lines that fit a terminal.
func (t *textPage) paragraph(indent, text string) {
	if text == "" {
		return
	}
	for i, line := range words.Wrap(printable(text), t.width-utf8.RuneCountInString(indent)) {
		if i > 0 {
			indent = strings.Repeat(" ", utf8.RuneCountInString(indent))
		}
		t.line("%s%s", indent, line)
	}
}

// plain takes out what is not a text: what a tool said must not command the terminal that shows it.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

var oneLine = strings.NewReplacer("\t", " ", "\n", " ")

// printable is plain text in one line.
func printable(text string) string { return oneLine.Replace(plain(text)) }

// joined puts a comma between two texts if there are both.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}
