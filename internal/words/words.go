// Package words cuts texts of other programs so that they fit into a message.
package words

import "strings"

// FirstLine returns what is before the first end of a line.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// LastLines returns at most n lines from the end of text, without surrounding white space.
func LastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// Shorten cuts a text to so many bytes and puts the mark behind what is left. No character is cut in two.
func Shorten(text string, most int, mark string) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + mark
}
