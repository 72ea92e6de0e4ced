package words_test

import (
	"testing"

	"mpsforge/internal/words"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{words.FirstLine("one\ntwo\n"), "one"},
		{words.FirstLine("one"), "one"},
		{words.FirstLine(""), ""},
		{words.LastLines("\none\ntwo\nthree\n\n", 2), "two\nthree"},
		{words.LastLines("one", 2), "one"},
		{words.Shorten("12345", 5, " …"), "12345"},
		{words.Shorten("123456", 5, " …"), "12345 …"},
		{words.Shorten("123äb", 4, "…"), "123…"}, // ä has two bytes
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
