package words_test

import (
	"testing"

	"mpsforge/internal/require"
	"mpsforge/internal/words"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{words.FirstLine("one\ntwo\n"), "one"},
		{words.FirstLine("one"), "one"},
		{words.FirstLine(""), ""},
		{words.LastLines("\none\ntwo\nthree\n\n", 2), "two\nthree"},
		{words.LastLines("one", 2), "one"},
		{words.LastLines("counting: 1 %\rcounting: 100 %\nfatal: no space\r\n", 2), "counting: 100 %\nfatal: no space"},
		{words.Shorten("12345", 5, " …"), "12345"},
		{words.Shorten("123456", 5, " …"), "12345 …"},
		{words.Shorten("123äb", 4, "…"), "123…"}, // ä has two bytes
		{words.Size(1_234), "1.2 kB"},
		{words.Size(330_000_000), "330.0 MB"},
		{words.Size(1_700_000_000), "1.7 GB"},
	} {
		require.Equal(t, c.got, c.want)
	}
}

func TestWrap(t *testing.T) {
	got := words.Wrap(" one two  three\nfour-which-is-longer five", 8)
	require.Equal(t, got, []string{"one two", "three", "four-which-is-longer", "five"})
}

func TestGroups(t *testing.T) {
	var got words.Groups
	for _, pair := range [][2]string{{"no Mac", "device"}, {"", "series"}, {"no Mac", "bench"}} {
		got.Add(pair[0], pair[1])
	}
	require.Equal(t, got, words.Groups{{"no Mac", []string{"device", "bench"}}, {"", []string{"series"}}})
}
