package process

import (
	"mpsforge/internal/words"
)

func LastLines(text []byte) string { return words.LastLines(string(text), 60) }
