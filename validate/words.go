package validate

import (
	"mpsforge/internal/run"
	"strings"
)

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func lastLines(text []byte) string { return run.LastLines(string(text), 60) }
