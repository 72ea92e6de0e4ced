package main

import (
	"testing"

	"mpsforge/internal/require"
	"mpsforge/internal/words"
)

func TestOnlyOwnControlSequencesReachATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nc\n":                  "a\tb\nc\n",
		words.Paint("31", "drift"):   words.Paint("31", "drift"),
		words.Paint("38;5;245", "x"): words.Paint("38;5;245", "x"),
		"x\x1b]0;title\ay":           "xy",
		"x\x1b[2J\x1b[Hy\n":          "xy\n",
		"x\x1b[8my":                  "xy",
		"x\x1b]8;;http://a\nb":       "x\nb",
		"x\r\x00\b\x7fy":             "xy",
		"x\u009b2Jy":                 "x2Jy",
		"x\u202ey":                   "xy",
		"x\xff":                      "x�",
		"✓ ümlaut, \U0001f600, 日本語, a\\b": "✓ ümlaut, \U0001f600, 日本語, a\\b",
	} {
		require.Equal(t, harmless(text), want, text)
	}
}
