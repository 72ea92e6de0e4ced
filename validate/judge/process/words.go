package process

import (
	"mpsforge/internal/words"
)

// LastLines is as much of a program's standard error as a check keeps.
func LastLines(text []byte) string { return words.LastLines(string(text), 60) }
