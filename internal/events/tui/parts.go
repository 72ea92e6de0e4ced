package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"mpsforge/internal/events"
)

// partLines draws the current step: a rule with its name, a bar where it counts, and its parts.
func (m Model) partLines(height, width int) []string {
	step := m.current()
	if step == nil {
		return []string{m.rule("nothing has begun", "", width)}
	}
	lines := []string{m.rule(m.path(step), m.tally(step), width)}
	if m.pane == detailPane {
		text := m.detailLines(width - 2)
		for _, line := range text[min(m.scroll, max(0, len(text)-height+1)):] {
			lines = append(lines, " "+line)
		}
		return lines
	}
	lines = append(lines, m.progressLines(step, width)...)
	rows := m.rows()
	if len(rows) == 0 {
		switch {
		case len(step.Parts) > 0:
			lines = append(lines, m.styles.dim.Render(" nothing to show:"+m.filterText()))
		case step.Phase == events.Done && step.Detail != "":
			for _, line := range wrap(step.Detail, width-2) {
				lines = append(lines, " "+line)
			}
		case step.Phase == events.Pending:
			lines = append(lines, m.styles.dim.Render(" to come"))
		}
		return lines
	}
	at := m.newest()
	if m.pane == partsPane {
		at = min(m.row, len(rows)-1)
	}
	return append(lines, m.rowWindow(step, rows, at, height-len(lines), width)...)
}

func (m Model) path(step *events.StepState) string {
	if step.Parent != nil {
		return m.path(step.Parent) + " › " + step.Name
	}
	return step.Name
}

// tally counts the parts by their state.
func (m Model) tally(step *events.StepState) string {
	if len(step.Parts) == 0 {
		return ""
	}
	counts := map[string]int{}
	for _, part := range step.Parts {
		switch {
		case part.Bad():
			counts["failed"]++
		case part.Runs > 0 && part.Outcome == events.OK:
			counts["ok"]++
		case part.Runs > 0 && part.Outcome == events.Skipped:
			counts["skipped"]++
		case part.Runs > 0:
			counts["as expected"]++
		}
	}
	var words []string
	for _, name := range []string{"ok", "failed", "as expected", "skipped"} {
		if counts[name] > 0 {
			words = append(words, fmt.Sprintf("%d %s", counts[name], name))
		}
	}
	return strings.Join(words, " · ")
}

// progressLines are the bar, and what is running now.
func (m Model) progressLines(step *events.StepState, width int) []string {
	p := step.Progress
	if step.Phase != events.Running {
		return nil
	}
	var lines []string
	text := events.CountText(p)
	if seconds := step.ElapsedAt(m.now).Seconds(); p.Done > 0 && seconds > 1 {
		if p.Unit == "bytes" {
			text += fmt.Sprintf(" · %.1f MB/s", float64(p.Done)/1e6/seconds)
		} else if rate := float64(p.Done) / seconds; rate >= 0.1 {
			text += fmt.Sprintf(" · %.1f/s", rate)
		}
	}
	if p.Running > 0 {
		text += fmt.Sprintf(" · %d running", p.Running)
	}
	if left, known := step.LeftAt(m.now); known {
		text += " · " + events.Clock(left) + " left"
	}
	if p.Total > 0 {
		percent := fmt.Sprintf(" %3d %% ", 100*min(p.Done, p.Total)/p.Total)
		room := clamp(width-ansi.StringWidth(percent+text)-3, 8, 50)
		lines = append(lines, " "+m.styles.busy.Render(bar(p.Done, p.Total, room))+percent+text)
	} else if text != "" {
		lines = append(lines, " "+text)
	}
	if p.Note != "" && (p.Total > 0 || len(step.Parts) == 0) {
		lines = append(lines, " "+m.styles.dim.Render("now: ")+p.Note)
	}
	return lines
}

// columnWidth is that of a cell: the sign's three, and one between.
const columnWidth = 4

// grid is how the parts with columns are laid out: groups of subjects one above the other, those of a group beside each other.
type grid struct {
	columns []string
	label   int // width of the rows' names
	groups  []group
}

type group struct {
	title    string
	subjects []string
	heads    []string // what is over the columns of each subject
	blocks   []int    // width of these columns
}

// layouts say to which group a subject belongs, and what is over its columns: all beside each other, then stock beside patched for
// each flavour, then all one above the other.
var layouts = []func(subject string) (title, head string){
	func(subject string) (string, string) { return "", subject },
	func(subject string) (string, string) {
		if at := strings.LastIndex(subject, ", "); at >= 0 {
			return subject[at+2:], subject[:at]
		}
		return "", subject
	},
	func(subject string) (string, string) { return subject, "" },
}

// gridOf lays a step's parts out in the first way that there is room for.
func (m Model) gridOf(step *events.StepState) grid {
	width := m.width
	if width >= wideScreen {
		width -= m.stepsWidth()
	}
	g := grid{columns: step.Columns}
	var subjects []string
	for _, part := range step.Parts {
		if part.Column == "" {
			continue
		}
		g.label = max(g.label, min(ansi.StringWidth(part.Name), 28)+3)
		if !slices.Contains(subjects, part.Subject) {
			subjects = append(subjects, part.Subject)
		}
	}
	g.label = min(g.label, max(14, width-len(g.columns)*columnWidth))
	for _, layout := range layouts {
		g.groups = nil
		for _, subject := range subjects {
			title, head := layout(subject)
			at := slices.IndexFunc(g.groups, func(have group) bool { return have.title == title })
			if at < 0 || head == "" {
				at, g.groups = len(g.groups), append(g.groups, group{title: title})
			}
			in := &g.groups[at]
			in.subjects, in.heads = append(in.subjects, subject), append(in.heads, head)
			in.blocks = append(in.blocks, max(len(g.columns)*columnWidth, ansi.StringWidth(head))+2)
		}
		if !slices.ContainsFunc(g.groups, func(one group) bool { return g.label+sum(one.blocks) > width }) {
			break
		}
	}
	return g
}

// groupOf gives the number of a subject's group.
func (g grid) groupOf(subject string) int {
	return slices.IndexFunc(g.groups, func(one group) bool { return slices.Contains(one.subjects, subject) })
}

func sum(widths []int) (total int) {
	for _, width := range widths {
		total += width
	}
	return total
}

// columnHeads shortens "1 thread", "4 threads" to 1 and 4, and gives the word.
func columnHeads(columns []string) (heads []string, word string) {
	for _, column := range columns {
		number, unit, found := strings.Cut(column, " ")
		if !found || len(number) > columnWidth {
			return columns, ""
		}
		heads, word = append(heads, number), unit
	}
	return heads, word
}

// rowWindow shows the rows around one of them, under the heads of the columns.
func (m Model) rowWindow(step *events.StepState, rows []row, at, height, width int) []string {
	var lines, heads []string
	g := m.gridOf(step)
	if heads = m.gridHeads(g); height-len(heads) < 2 {
		heads = nil
	}
	height -= len(heads)
	// Where there are several groups, each has a heading.
	var shown []row
	current := 0
	for i, r := range rows {
		isGrid := r.cells[0].Column != ""
		if isGrid && len(g.groups) > 1 && (i == 0 || rows[i-1].cells[0].Column == "" || rows[i-1].group != r.group) {
			shown = append(shown, row{group: r.group, heading: true})
		}
		if i == at {
			current = len(shown)
		}
		shown = append(shown, r)
	}
	first := window(current, len(shown), height)
	headed := len(heads) == 0
	for i := first; i < min(first+height, len(shown)); i++ {
		if !headed && (shown[i].heading || shown[i].cells[0].Column != "") { // the grid begins
			lines, headed = append(lines, heads...), true
		}
		mark := m.moreMark(i, first, height, len(shown))
		chosen := i == current && m.pane == partsPane
		if chosen {
			mark = "›"
		}
		line := shown[i]
		if i == first && i != current && len(line.cells) > 0 && line.cells[0].Column != "" && len(g.groups) > 1 {
			line.heading = true // it has scrolled away: what the rows below are of is seen all the same
		}
		lines = append(lines, m.rowLine(mark, g, line, chosen, width))
	}
	return lines
}

// gridHeads are the heads of the columns, and above them what they are of, where that is the same for all rows.
func (m Model) gridHeads(g grid) []string {
	if len(g.groups) == 0 {
		return nil
	}
	short, word := columnHeads(g.columns)
	numbers := ""
	for _, head := range short {
		numbers += fit(" "+head, columnWidth)
	}
	widest := slices.MaxFunc(g.groups, func(a, b group) int { return sum(a.blocks) - sum(b.blocks) })
	lower := fit(" "+word, g.label)
	for _, block := range widest.blocks {
		lower += fit(numbers, block)
	}
	heads := []string{m.styles.dim.Render(lower)}
	if len(g.groups) == 1 && strings.Join(widest.heads, "") != "" {
		return append([]string{" " + m.heading(g, widest)}, heads...)
	}
	return heads
}

// heading is a group's title, and the names of its subjects over their columns, behind a mark.
func (m Model) heading(g grid, of group) string {
	if strings.Join(of.heads, "") == "" {
		return m.styles.title.Render(of.title)
	}
	names := ""
	for i, head := range of.heads {
		names += fit(" "+head, of.blocks[i])
	}
	return m.styles.title.Render(fit(of.title, g.label-1)) + m.styles.dim.Render(names)
}

func (m Model) rowLine(mark string, g grid, r row, chosen bool, width int) string {
	if r.heading {
		return mark + m.heading(g, g.groups[r.group])
	}
	name := r.name
	if r.cells[0].Column == "" {
		part := r.cells[0]
		left := mark + m.styles.cell(part) + name
		if part.Subject != "" {
			left += m.styles.dim.Render(", " + part.Subject)
		}
		if part.Signature != "" {
			left += m.styles.outcome(part.Outcome, part.Expected).Render("  " + part.Signature)
		}
		if part.Detail != "" {
			left += m.styles.dim.Render("  " + part.Detail)
		}
		right := ""
		if part.Elapsed > 0 {
			right = m.styles.dim.Render(fmt.Sprintf(" %7s ", stepClock(part.Elapsed)))
		}
		return ends(left, right, width)
	}
	if chosen {
		name = m.styles.chosen.Render(name)
	}
	line := mark + " " + fit(name, g.label-2)
	in := g.groups[r.group]
	for i, subject := range in.subjects {
		block := ""
		for _, column := range g.columns {
			cell := m.styles.cell(nil)
			if at := slices.IndexFunc(r.cells, func(p *events.PartState) bool { return p.Column == column && p.Subject == subject }); at >= 0 {
				cell = m.styles.cell(r.cells[at])
			}
			block += cell + " "
		}
		line += fit(block, in.blocks[i])
	}
	// What room is left shows the worst of the row.
	worst := slices.MaxFunc(r.cells, func(a, b *events.PartState) int { return badFirst(a) - badFirst(b) })
	if room := width - ansi.StringWidth(line); badFirst(worst) > 0 && room >= 40 {
		where := worst.Column
		if len(in.subjects) > 1 {
			where = worst.Subject + ", " + where
		}
		line += m.styles.outcome(worst.Outcome, worst.Expected).Render(where + ": " + worstText(worst))
	}
	return line
}

func badFirst(p *events.PartState) int {
	switch {
	case p.Bad():
		return 2
	case p.Runs > 0 && p.Outcome != events.OK && p.Outcome != events.Skipped:
		return 1
	}
	return 0
}

func worstText(p *events.PartState) string {
	if p.Signature != "" {
		return string(p.Outcome) + ", " + p.Signature
	}
	if p.Detail != "" {
		return p.Detail
	}
	return string(p.Outcome)
}

// detailLines show all about the chosen row.
func (m Model) detailLines(width int) []string {
	rows := m.rows()
	if len(rows) == 0 {
		return []string{"nothing to show:" + m.filterText()}
	}
	r := rows[min(m.row, len(rows)-1)]
	lines := []string{m.styles.title.Render(r.name)}
	for _, part := range r.cells {
		head := part.Column
		if part.Subject != "" {
			head = strings.TrimPrefix(part.Subject+", "+part.Column, ", ")
			head = strings.TrimSuffix(head, ", ")
		}
		state := "to come"
		switch {
		case part.Running > 0:
			state = "running"
		case part.Runs > 0:
			state = string(part.Outcome)
			if part.Expected && part.Outcome != events.OK && part.Outcome != events.Skipped {
				state += ", as expected"
			}
			state += fmt.Sprintf(" (%s", stepClock(part.Elapsed))
			if part.Runs > 1 {
				state += fmt.Sprintf(", %d runs, the worst", part.Runs)
			}
			state += ")"
		}
		if head != "" {
			head += ": "
		}
		lines = append(lines, m.styles.cell(part)+head+state)
		if part.Signature != "" {
			lines = append(lines, "    signature "+part.Signature+"; mpsforge metal explain says what it means")
		}
		for _, line := range wrap(part.Detail, width-4) {
			lines = append(lines, "    "+line)
		}
	}
	return lines
}

// wrap breaks text into lines between words.
func wrap(text string, width int) []string {
	if text == "" {
		return nil
	}
	return strings.Split(ansi.Wrap(text, max(10, width), ""), "\n")
}
