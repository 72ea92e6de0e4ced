package apple

import (
	"flag"
	"os"
	"testing"

	"mpsforge/internal/require"
)

var write = flag.Bool("write", false, "write the file that is compared")

// The Objective-C runtime hides what is newer than the macOS that a process finds; it has the versions from the table.
func TestRuntimeHasTheVersions(t *testing.T) {
	table := require.One(Load())(t)
	want := require.One(table.Versions())(t)
	const path = "../objc/runtime/api_versions.inc"
	if *write {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("%s is not the table's: write it with go test ./native/apple -run TestRuntimeHasTheVersions -write (%v)", path, err)
	}
}

func TestTableErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"M\t-a\tv":                            "api.tsv:1: -a has no type before it, or is there twice",
		"#\nX\ta":                             `api.tsv:2: no kind of line is called "X"`,
		"T\tclass\tA\t\t\nT\tclass\tA\t\t":    "api.tsv:2: A is there twice",
		"C\ta\tfour":                          `api.tsv:1: strconv.ParseInt: parsing "four": invalid syntax`,
		"T\tclass\tA\t\t\nM\t-a\tv\nM\t-a\tv": "api.tsv:3: -a has no type before it, or is there twice",
	} {
		if _, err := parseTable(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
