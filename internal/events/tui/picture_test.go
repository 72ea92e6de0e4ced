package tui

import (
	"cmp"
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// README's picture of the terminal UI is a frame of a recorded run.
func TestPictureIsAFrame(t *testing.T) {
	const path = "../../../docs/pictures/verify.svg"
	got := svg(screen(92, 26, palettes(t)["16-colours"], recorded(t, "picture.jsonl.gz")).View(), 92)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make pictures writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s is not the frame of today; make pictures writes it anew", path)
	}
}

// svgStyles are the styles of newStyles for 16 colours as SVG has them, by the numbers of the escape codes.
var svgStyles = map[string]string{
	"1": plainStyle + ` font-weight="bold"`, "31": `fill="#f47067"`, "1;31": `fill="#f47067" font-weight="bold"`, "32": `fill="#57ab5a"`,
	"33": `fill="#daaa3f"`, "36": `fill="#39c5cf"`, "90": `fill="#909dab"`,
}

const plainStyle = `fill="#cdd9e5"`

// svg draws a frame in a window of so many columns. Every run of one style begins at its own column, whatever the font's width.
func svg(frame string, columns int) string {
	const wide, high, margin = 8.4, 18, 12
	lines := strings.Split(frame, "\n")
	var b strings.Builder
	width, height := float64(columns)*wide+2*margin, len(lines)*high+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu `+
		`Sans Mono',monospace" font-size="14">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#1c2128"/>`+"\n")
	for y, line := range lines {
		column, style := 0, plainStyle
		for _, part := range regexp.MustCompile("\x1b\\[[0-9;]*m|[^\x1b]+").FindAllString(line, -1) {
			if code, ok := strings.CutPrefix(part, "\x1b["); ok {
				style = cmp.Or(svgStyles[strings.TrimSuffix(code, "m")], plainStyle)
				continue
			}
			length := len([]rune(part))
			if strings.TrimSpace(part) != "" {
				fmt.Fprintf(&b, `<text xml:space="preserve" x="%.1f" y="%d" textLength="%.1f" %s>%s</text>`+"\n", margin+float64(column)*wide,
					margin+(y+1)*high-5, float64(length)*wide, style, html.EscapeString(part))
			}
			column += length
		}
	}
	return b.String() + "</svg>\n"
}
