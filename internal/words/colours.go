package words

import (
	"os"
	"strings"
)

// Palette holds the colours of a terminal by what they say, as numbers of ANSI's "select graphic rendition". Whatever they say
// is said by a sign or a word as well. The zero Palette has no colours.
type Palette struct{ Bold, Good, Bad, Odd, Busy, Dim string }

// The 16 are the user's own. Of 256, those of a light ground have a contrast of 5 to 1 and more to white, where a terminal's own
// yellow and cyan can hardly be read.
var (
	basicColours = Palette{Bold: "1", Good: "32", Bad: "31", Odd: "33", Busy: "36", Dim: "90"}
	darkColours  = Palette{Bold: "1", Good: "32", Bad: "31", Odd: "33", Busy: "36", Dim: "38;5;245"}
	lightColours = Palette{Bold: "1", Good: "38;5;22", Bad: "38;5;124", Odd: "38;5;94", Busy: "38;5;25", Dim: "38;5;240"}
)

// Colours are those for the terminal that the environment describes: none where the user wants none (https://no-color.org) or
// the terminal has none. The terminal is not asked for its background: what it answers can end up in the user's shell. So it
// counts as dark, unless MPSFORGE_THEME, or else COLORFGBG, which some terminals set, says that it is light.
func Colours() Palette {
	terminal := os.Getenv("TERM")
	switch {
	case os.Getenv("NO_COLOR") != "" || terminal == "dumb":
		return Palette{}
	case !strings.Contains(terminal, "256color") && os.Getenv("COLORTERM") == "":
		return basicColours
	case lightGround():
		return lightColours
	}
	return darkColours
}

func lightGround() bool {
	switch theme := os.Getenv("MPSFORGE_THEME"); theme {
	case "light", "dark":
		return theme == "light"
	}
	colours := os.Getenv("COLORFGBG") // "foreground;background", or with a word between them
	ground := colours[strings.LastIndexByte(colours, ';')+1:]
	return ground == "7" || ground == "15"
}

// Paint has a terminal show a text in a colour of a Palette.
func Paint(colour, text string) string {
	if colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
