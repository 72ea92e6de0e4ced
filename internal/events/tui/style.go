package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"mpsforge/internal/events"
	"mpsforge/internal/words"
)

// style is a colour of a palette.
type style string

// Render gives a text in the style.
func (s style) Render(text string) string { return words.Paint(string(s), text) }

// styles of a frame. Whatever they say is said by a sign or a word as well, for terminals without colours.
type styles struct {
	title, dim, good, bad, odd, busy, chosen style
}

func newStyles(p words.Palette) styles {
	all := styles{title: style(p.Bold), dim: style(p.Dim), good: style(p.Good), bad: style(p.Bad), odd: style(p.Odd), busy: style(p.Busy),
		chosen: style(p.Bold)}
	if p.Bad != "" {
		all.bad = style(p.Bold + ";" + p.Bad)
	}
	return all
}

// Signs of parts and steps; each is one column wide.
const (
	signPending = "·"
	signRunning = "▸"
)

var signs = map[events.StepOutcome]string{events.OK: "✓", events.Failed: "✗", events.Skipped: "-", events.Interrupted: "⊘",
	events.WrongValues: "≠", events.Crashed: "!", events.Hung: "∞"}

var spinner = []string{"◐", "◓", "◑", "◒"}

func (s styles) outcome(outcome events.StepOutcome, expected bool) style {
	switch {
	case outcome == events.OK:
		return s.good
	case outcome == events.Skipped, outcome == events.Interrupted:
		return s.dim
	case expected:
		return s.odd
	}
	return s.bad
}

// cell is the sign of a part, three columns wide: parentheses are around what was expected to go wrong.
func (s styles) cell(part *events.PartState) string {
	switch {
	case part == nil:
		return "   "
	case part.Running > 0:
		return s.busy.Render(" " + signRunning + " ")
	case part.Runs == 0:
		return s.dim.Render(" " + signPending + " ")
	}
	text := " " + signs[part.Outcome] + " "
	if part.Expected && part.Outcome != events.OK && part.Outcome != events.Skipped {
		text = "(" + signs[part.Outcome] + ")"
	}
	return s.outcome(part.Outcome, part.Expected).Render(text)
}

// fit cuts a line to a width and fills it up.
func fit(text string, width int) string {
	text = ansi.Truncate(text, max(0, width), "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// ends puts one text to the left and one to the right of a line; the left one is cut where there is no room for both.
func ends(left, right string, width int) string {
	room := width - ansi.StringWidth(right)
	if room < 8 {
		return fit(left, width)
	}
	return fit(left, room) + right
}

// bar draws a part of a whole.
func bar(done, total int64, width int) string {
	filled := 0
	if total > 0 {
		filled = int(float64(width) * float64(min(done, total)) / float64(total))
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}
