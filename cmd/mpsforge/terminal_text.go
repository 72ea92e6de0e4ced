package main

import (
	"io"
	"regexp"
	"strings"
	"sync"

	"mpsforge/internal/events"
)

// own matches the control sequences that the program itself writes: ends of lines, tabs, and what words.Paint puts around a text, which is
// bold or a colour of the foreground.
var own = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("[\n\t]|\x1b\\[(?:0|1|[39][0-7]|38;5;[0-9]{1,3})m") })

// harmless takes out of a text what a terminal would obey and what is not the program's own: names of files, messages of git and lines of
// logs come from others.
func harmless(text string) string {
	var b strings.Builder
	end := 0
	for _, at := range own().FindAllStringIndex(text, -1) {
		b.WriteString(events.Clean(text[end:at[0]]))
		b.WriteString(text[at[0]:at[1]])
		end = at[1]
	}
	b.WriteString(events.Clean(text[end:]))
	return b.String()
}

// harmlessWriter passes on what is harmless of each text.
type harmlessWriter struct{ to io.Writer }

func (w harmlessWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, harmless(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
