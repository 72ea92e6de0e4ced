package events

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Clock writes a duration as a clock does: 0:07, 12:34, 1:02:03.
func Clock(d time.Duration) string {
	seconds := int64(max(0, d) / time.Second)
	if seconds >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// ProgressText says how far a step is.
func ProgressText(p StepProgress) string {
	var parts []string
	if count := CountText(p); count != "" {
		parts = append(parts, count)
	}
	if p.Note != "" {
		parts = append(parts, p.Note)
	}
	text := strings.Join(parts, " ")
	if p.Running > 0 {
		text += fmt.Sprintf(", %d running", p.Running)
	}
	if p.Left > 0 {
		text += ", " + Clock(p.Left) + " left"
	}
	return text
}

// CountText is the figures of ProgressText alone.
func CountText(p StepProgress) string {
	done, total := fmt.Sprint(p.Done), fmt.Sprint(p.Total)
	if p.Unit == "bytes" {
		done, total = megabytes(p.Done), megabytes(p.Total)
	}
	text := ""
	switch {
	case p.Total > 0:
		text = done + "/" + total
	case p.Done > 0:
		text = done
	}
	if text != "" && p.Unit != "" && p.Unit != "bytes" {
		text += " " + p.Unit
	}
	return text
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func finishedText(e StepFinished) string {
	text := fmt.Sprintf("%s: %s", e.Step, e.Outcome)
	if e.Detail != "" {
		text += ", " + e.Detail
	}
	return fmt.Sprintf("%s (%.1f s)", text, e.Elapsed.Seconds())
}

// Label names a part: name, subject, column.
func (p Part) Label() string {
	text := p.Name
	for _, more := range []string{p.Subject, p.Column} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

func partText(e PartFinished) string {
	text := fmt.Sprintf("%s: %s", e.Label(), e.Outcome)
	if e.Expected && badness(e.Outcome, false) >= 10 {
		text += ", as expected"
	}
	if e.Signature != "" {
		text += ", signature " + e.Signature
	}
	if strings.HasPrefix(e.Detail, string(e.Outcome)+":") { // it says so itself
		text = e.Label() + ": " + e.Detail
	} else if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

func messageText(m Message) string {
	switch m.Level {
	case Warning, Status:
		return string(m.Level) + ": " + m.Text
	}
	return m.Text
}

// Clean makes text fit to be shown: one line, and nothing that a terminal would obey. Names of files and what programs
// write come from others.
func Clean(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f }) < 0 {
		return text // all there is to most texts
	}
	var b strings.Builder
	for _, r := range ansi.Strip(strings.ToValidUTF8(text, "�")) {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r): // also marks that turn the direction of writing
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
