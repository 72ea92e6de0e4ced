package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"mpsforge/internal/events"
)

// summaryFailures bounds the bad news in a summary; a report has all of them.
const summaryFailures = 20

// Summary is what stays on the terminal: all steps with their ends, and the bad news.
func (m Model) Summary() string {
	width := max(m.width, 20)
	var lines []string
	for _, step := range m.allSteps() {
		lines = append(lines, m.stepLine(" ", step, false, width))
	}
	bad := 0
	for _, step := range m.allSteps() {
		for _, part := range step.Parts {
			if !part.Bad() {
				continue
			}
			if bad++; bad <= summaryFailures {
				lines = append(lines, "  "+m.styles.bad.Render(signs[part.Outcome]+" "+step.Name+": "+part.Label())+"  "+worstText(part))
			}
		}
	}
	if bad > summaryFailures {
		lines = append(lines, fmt.Sprintf("  and %d more", bad-summaryFailures))
	}
	for _, line := range m.state.Log {
		// Warnings, and what was asked for. Why the command failed is printed behind the summary.
		if line.Step == "" && (line.Bad || line.Asked) && (m.state.End == nil || line.Time.Before(m.state.Ended)) {
			lines = append(lines, "  "+m.styles.odd.Render(line.Text))
		}
	}
	if end := m.state.End; end != nil && end.ExitCode == 0 && end.Message != "" {
		lines = append(lines, "  "+events.Clean(end.Message))
	}
	head := m.styles.title.Render(m.headline()) + "  " + events.Clock(m.state.ElapsedAt(m.now))
	lines = append([]string{head}, lines...)
	for i := range lines {
		lines[i] = strings.TrimRight(ansi.Truncate(lines[i], width, "…"), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
