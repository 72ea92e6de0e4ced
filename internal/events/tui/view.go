package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"mpsforge/internal/events"
)

// View draws a frame: exactly as many lines as the terminal has, none wider than it.
func (m Model) View() string {
	if m.width == 0 { // its size comes first
		return ""
	}
	if m.width < leastWidth || m.height < leastHeight {
		text := fmt.Sprintf("%dx%d is too small, %dx%d needed; %s %s", m.width, m.height, leastWidth, leastHeight, m.headline(),
			events.Clock(m.state.ElapsedAt(m.now)))
		return ansi.Truncate(text, m.width, "…")
	}
	lines := []string{m.header()}
	body := m.height - 2 // without header and footer
	switch {
	case m.help:
		lines = append(lines, m.pad(m.helpLines(), body)...)
	case m.pane == logPane:
		lines = append(lines, m.rule("log", m.logTitle(), m.width))
		lines = append(lines, m.pad(m.logWindow(body-1), body-1)...)
	default:
		lines = append(lines, m.panes(body)...)
	}
	lines = append(lines, m.footer())
	for i := range lines {
		lines[i] = strings.TrimRight(ansi.Truncate(lines[i], m.width, "…"), " ")
	}
	return strings.Join(lines, "\n")
}

func (m Model) pad(lines []string, height int) []string {
	if len(lines) > height {
		return lines[:height]
	}
	return append(lines, make([]string, height-len(lines))...)
}

func (m Model) headline() string {
	return strings.TrimSpace("mpsforge " + m.state.Stream.Command)
}

func (m Model) header() string {
	left := m.styles.title.Render(" " + m.headline())
	if len(m.state.Stream.Args) > 0 {
		left += m.styles.dim.Render(" " + events.Clean(strings.Join(m.state.Stream.Args, " ")))
	}
	right := events.Clock(m.state.ElapsedAt(m.now)) + " "
	switch end := m.state.End; {
	case end == nil && m.over:
		right = m.styles.bad.Render("✗ cut off ") + right
	case end == nil && m.stopping:
		right = m.styles.odd.Render("stopping ") + right
	case end == nil:
		right = m.styles.busy.Render(spinner[m.spinner%len(spinner)]+" running ") + right
	case end.ExitCode == 0:
		right = m.styles.good.Render("✓ done ") + right
	default:
		right = m.styles.bad.Render(fmt.Sprintf("✗ exit code %d ", end.ExitCode)) + right
	}
	return ends(left, " "+right, m.width)
}

// wideScreen is from where on steps and parts are side by side.
const wideScreen = 120

// stepsWidth is what the steps need of a wide screen, within limits; the parts have the rest.
func (m Model) stepsWidth() int {
	needed := 0
	for _, step := range m.allSteps() {
		left, right := m.stepEnds(" ", step, false)
		needed = max(needed, ansi.StringWidth(left)+ansi.StringWidth(right)+1)
	}
	return clamp(needed, 24, min(m.width*2/5, 76))
}

// panes puts steps, parts and log on the screen: side by side where it is wide, else one above the other.
func (m Model) panes(height int) []string {
	logHeight := 0
	switch {
	case height >= 36:
		logHeight = 11
	case height >= 20:
		logHeight = 6
	case height >= 16:
		logHeight = 4
	default:
		logHeight = 3
	}
	logHeight = clamp(len(m.logLines())+1, 3, logHeight) // what it does not need is for the parts
	upper := height - logHeight
	var lines []string
	if m.width >= wideScreen {
		left := m.stepsWidth()
		steps := m.pad(m.stepLines(upper, left-1), upper)
		parts := m.pad(m.partLines(upper, m.width-left-1), upper)
		for i := range upper {
			lines = append(lines, fit(steps[i], left-1)+m.styles.dim.Render(" │")+parts[i])
		}
	} else {
		least := max(7, upper-4) // lines for the parts
		if upper >= 14 {
			least = upper * 2 / 3
		}
		if step := m.current(); step == nil || len(step.Parts) == 0 {
			least = 5
		}
		steps := m.stepLines(upper-least, m.width)
		lines = append(lines, steps...)
		lines = append(lines, m.pad(m.partLines(upper-len(steps), m.width), upper-len(steps))...)
	}
	lines = append(lines, m.rule("log", "", m.width))
	return append(lines, m.pad(m.logWindow(logHeight-1), logHeight-1)...)
}

// rule is a line that begins a pane.
func (m Model) rule(title, right string, width int) string {
	if right != "" {
		right = " " + right + " ─"
	}
	left := "── " + title + " "
	left = ansi.Truncate(left, max(width/2, width-ansi.StringWidth(right)), "… ")
	right = ansi.Truncate(right, width-ansi.StringWidth(left), "…")
	return m.styles.dim.Render(left + strings.Repeat("─", max(0, width-ansi.StringWidth(left)-ansi.StringWidth(right))) + right)
}

// stepLines draws the pipeline. Where not all of it fits, steps inside others are shown only around the current one, and
// then the lines around the current one.
func (m Model) stepLines(height, width int) []string {
	current := m.current()
	steps := m.allSteps()
	if len(steps) > height {
		steps = slices.DeleteFunc(steps, func(s *events.StepState) bool { return s.Parent != nil && !inside(current, s.Parent) })
	}
	first := window(slices.Index(steps, current), len(steps), height)
	var lines []string
	for i := first; i < min(first+height, len(steps)); i++ {
		mark := m.moreMark(i, first, height, len(steps))
		if steps[i] == current {
			mark = "›"
		}
		lines = append(lines, m.stepLine(mark, steps[i], steps[i] == current, width))
	}
	return lines
}

// inside reports whether a step is another one, or lies in it.
func inside(step, outer *events.StepState) bool {
	for ; step != nil; step = step.Parent {
		if step == outer {
			return true
		}
	}
	return false
}

// window gives the first of the lines to show, so that the one at the index is among them.
func window(at, count, height int) int { return clamp(at-height/2, 0, max(0, count-height)) }

// moreMark marks the first and last of the lines shown where there are others.
func (m Model) moreMark(i, first, height, count int) string {
	switch {
	case i == first && first > 0:
		return m.styles.dim.Render("↑")
	case i == first+height-1 && i < count-1:
		return m.styles.dim.Render("↓")
	}
	return " "
}

func (m Model) stepLine(mark string, step *events.StepState, current bool, width int) string {
	left, right := m.stepEnds(mark, step, current)
	return ends(left, right, width)
}

// stepEnds is what is said of a step, to the left and to the right of its line.
func (m Model) stepEnds(mark string, step *events.StepState, current bool) (left, right string) {
	depth := 0
	for parent := step.Parent; parent != nil; parent = parent.Parent {
		depth++
	}
	sign, style := signPending, m.styles.dim
	switch step.Phase {
	case events.Running:
		sign, style = spinner[m.spinner%len(spinner)], m.styles.busy
		if m.ended() { // it was cut off
			sign = signRunning
		}
	case events.Done:
		sign, style = signs[step.Outcome], m.styles.outcome(step.Outcome, false)
	}
	name := step.Name
	if current && m.pane == stepsPane {
		name = m.styles.chosen.Render(name)
	}
	left = mark + " " + strings.Repeat("  ", depth) + style.Render(sign) + " " + name
	if text := m.stepText(step); text != "" {
		left += m.styles.dim.Render("  " + text)
	}
	if bad := step.Bad(); bad > 0 {
		right = m.styles.bad.Render(fmt.Sprintf(" %d failed", bad))
	}
	if step.Phase != events.Pending {
		right += fmt.Sprintf(" %7s", stepClock(step.ElapsedAt(m.now)))
	}
	if left, known := step.LeftAt(m.now); known && m.width >= 60 { // else it is beside the bar alone
		right += m.styles.dim.Render(fmt.Sprintf(" %s left", events.Clock(left)))
	}
	return left, right + " "
}

func stepClock(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return events.Clock(d)
}

// stepText is what is said of a step in the pipeline.
func (m Model) stepText(step *events.StepState) string {
	switch step.Phase {
	case events.Running:
		return events.CountText(step.Progress)
	case events.Done:
		return step.Detail
	}
	return ""
}

func (m Model) logTitle() string {
	text := ""
	if m.scroll > 0 {
		text = fmt.Sprintf("%d newer lines below", m.scroll)
	}
	return strings.TrimSpace(text + m.filterText())
}

func (m Model) filterText() string {
	text := ""
	if m.failures {
		text += " failures only"
	}
	if m.filter != "" {
		text += fmt.Sprintf(" with %q", m.filter)
	}
	return text
}

func (m Model) logWindow(height int) []string {
	all := m.logLines()
	last := clamp(len(all)-m.logScroll(), min(height, len(all)), len(all))
	var lines []string
	for _, line := range all[max(0, last-height):last] {
		style := m.styles.dim
		text := line.Text
		switch {
		case line.Bad:
			text = m.styles.bad.Render(text)
		case line.Asked:
			text = m.styles.busy.Render(text)
		}
		lines = append(lines, style.Render(fmt.Sprintf(" %7s ", events.Clock(line.Time.Sub(m.state.Started))))+text)
	}
	return lines
}

func (m Model) logScroll() int {
	if m.pane == logPane {
		return m.scroll
	}
	return 0
}

func (m Model) footer() string {
	switch {
	case m.asking:
		return m.styles.odd.Render(" Work is under way. Stop it? It will end cleanly.  y yes · any other key no")
	case m.typing:
		return " /" + m.filter + "▏" + m.styles.dim.Render("  enter keeps it, esc takes it away")
	case m.stopping && !m.ended():
		return m.styles.odd.Render(" Stopping; waiting for a clean end …")
	case m.help:
		return m.styles.dim.Render(" any key goes back")
	case m.notice != "":
		return m.styles.odd.Render(" " + events.Clean(m.notice))
	}
	right := m.filterText()
	if m.opening {
		right += " opens the report at the end"
	}
	if right != "" {
		right = m.styles.odd.Render(right + " ")
	}
	return ends(m.styles.dim.Render(" "+footerText(m.pane, m.width-2-ansi.StringWidth(right))), right, m.width)
}

func (m Model) helpLines() []string {
	var text []string
	for _, b := range helpKeys() {
		for i, line := range wrap(b.Help().Desc, m.width-11) {
			if i > 0 {
				b.SetHelp("", "")
			}
			text = append(text, fmt.Sprintf(" %-8s %s", b.Help().Key, line))
		}
	}
	legend := []string{signPending + " to come, or not needed", signRunning + " running"}
	for _, outcome := range []events.StepOutcome{events.OK, events.Failed, events.WrongValues, events.Crashed, events.Hung, events.Skipped,
		events.Interrupted} {
		legend = append(legend, signs[outcome]+" "+string(outcome))
	}
	line := ""
	text = append(text, "")
	for _, entry := range append(legend, "(!) wrong as expected: stock, what waits for a patch") {
		if ansi.StringWidth(line+"   "+entry) > m.width-2 {
			text, line = append(text, " "+line), ""
		}
		line = strings.TrimLeft(line+"   "+entry, " ")
	}
	return append(text, " "+line)
}
