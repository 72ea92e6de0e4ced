package words_test

import (
	"testing"

	"mpsforge/internal/require"
	"mpsforge/internal/words"
)

// The environment alone says what colours a terminal has, and on which ground.
func TestColours(t *testing.T) {
	dark := environment{terminal: "xterm-256color"}.colours(t)
	light := environment{terminal: "xterm-256color", theme: "light"}.colours(t)
	if dark == light || dark == (words.Palette{}) || light == (words.Palette{}) {
		t.Fatalf("dark %v, light %v", dark, light)
	}
	for name, c := range map[string]struct {
		environment
		want words.Palette
	}{
		"light by the terminal":            {environment{terminal: "xterm-256color", ground: "0;15"}, light},
		"light by the terminal, a word":    {environment{terminal: "rxvt-256color", ground: "0;default;15"}, light},
		"dark by the terminal":             {environment{terminal: "xterm-256color", ground: "15;0"}, dark},
		"the user against the terminal":    {environment{terminal: "xterm-256color", ground: "0;15", theme: "dark"}, dark},
		"many colours by another name":     {environment{terminal: "xterm-kitty", many: "truecolor", theme: "light"}, light},
		"16 colours, which are the user's": {environment{terminal: "xterm", theme: "light"}, environment{terminal: "xterm"}.colours(t)},
		"none wanted":                      {environment{terminal: "xterm-256color", no: "1"}, words.Palette{}},
		"none there":                       {environment{terminal: "dumb", many: "truecolor"}, words.Palette{}},
	} {
		require.Equal(t, c.colours(t), c.want, name)
	}
}

// environment has the variables that say something about colours.
type environment struct{ terminal, many, ground, theme, no string }

func (e environment) colours(t *testing.T) words.Palette {
	for name, value := range map[string]string{"TERM": e.terminal, "COLORTERM": e.many, "COLORFGBG": e.ground, "MPSFORGE_THEME": e.theme, "NO_COLOR": e.no} {
		t.Setenv(name, value)
	}
	return words.Colours()
}
