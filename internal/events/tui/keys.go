package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/x/ansi"
)

// The keys. Footer and help are made of these.
var (
	keyUp       = binding("↑↓", "move; pgup, pgdown, home and end as well", "up", "k")
	keyDown     = binding("", "", "down", "j")
	keyPageUp   = binding("", "", "pgup")
	keyPageDown = binding("", "", "pgdown", " ")
	keyFirst    = binding("", "", "home", "g")
	keyLast     = binding("", "", "end", "G")
	keyOpen     = binding("enter", "open: a step's parts, then all about one of them", "enter", "right")
	keyBack     = binding("esc", "back; in the end: no filters, and follow what runs", "esc", "left", "backspace")
	keyLog      = binding("l", "log, as a whole; it follows unless scrolled up", "l")
	keyFailures = binding("f", "failures only", "f")
	keyFilter   = binding("/", "filter: show only what has this text in it", "/")
	keyReport   = binding("o", "report: open it; during the work, as soon as it is there", "o")
	keyHelp     = binding("?", "help", "?")
	keyQuit     = binding("q", "quit; asks while work is under way", "q")
	keyStop     = binding("ctrl-c", "stop the work at once", "ctrl+c")
	keySuspend  = binding("ctrl-z", "suspend", "ctrl+z")
)

func binding(shown, about string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, about))
}

// footerKeys are those that matter in a pane; the footer has the first word of what they do.
func footerKeys(p pane) []key.Binding {
	switch p {
	case partsPane:
		return []key.Binding{keyUp, keyOpen, keyBack, keyFailures, keyFilter, keyHelp, keyQuit}
	case detailPane:
		return []key.Binding{keyUp, keyBack, keyHelp, keyQuit}
	case logPane:
		return []key.Binding{keyUp, keyBack, keyFailures, keyFilter, keyHelp, keyQuit}
	}
	return []key.Binding{keyUp, keyOpen, keyReport, keyLog, keyFailures, keyFilter, keyHelp, keyQuit}
}

// footerText names as many of them as there is room for; help and quit always.
func footerText(p pane, width int) string {
	var parts []string
	for _, b := range footerKeys(p) {
		word, _, _ := strings.Cut(b.Help().Desc, " ")
		parts = append(parts, b.Help().Key+" "+strings.TrimRight(word, ",;:"))
	}
	for ansi.StringWidth(strings.Join(parts, " · ")) > width && len(parts) > 2 {
		parts = slices.Delete(parts, len(parts)-3, len(parts)-2)
	}
	return strings.Join(parts, " · ")
}

func helpKeys() []key.Binding {
	return []key.Binding{keyUp, keyOpen, keyBack, keyLog, keyFailures, keyFilter, keyReport, keyQuit, keyStop, keySuspend}
}
