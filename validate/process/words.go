package process

import (
	"strings"

	"mpsforge/internal/run"
)

func FirstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func LastLines(text []byte) string { return run.LastLines(string(text), 60) }
