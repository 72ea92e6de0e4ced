package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// The kept man page and list of commands are those that the commands give.
func TestReferenceIsFresh(t *testing.T) {
	for file, form := range map[string]string{"mpsforge.1": "man", "COMMANDS.md": "markdown"} {
		kept := require.One(os.ReadFile(file))(t)
		if string(kept) != output(t, "docs", form) {
			t.Errorf("cmd/mpsforge/%s is stale; make it anew with: make reference", file)
		}
	}
}

// groff's man and mandoc, which macOS and the BSDs have, take the page without a warning.
func TestManPageIsClean(t *testing.T) {
	for name, args := range map[string][]string{
		"man":    {"--warnings", "-l", "mpsforge.1"},
		"mandoc": {"-Tlint", "-Wwarning", "mpsforge.1"},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("SKIP %s: it is not installed (Debian: apt-get install man-db mandoc)", name)
			}
			command := exec.Command(path, args...)
			command.Env = append(os.Environ(), "MANWIDTH=80", "LC_ALL=C.UTF-8")
			var page, warnings strings.Builder
			command.Stdout, command.Stderr = &page, &warnings
			if err := command.Run(); err != nil && name != "mandoc" { // whose exit code says that there are warnings
				t.Errorf("%v", err)
			}
			for line := range strings.Lines(page.String()) {
				// The page bears no date, as it can be made again from the commands at any time.
				if name == "mandoc" && !strings.Contains(line, "missing date") {
					warnings.WriteString(line)
				}
				if name == "man" && len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
					warnings.WriteString("wider than 80 columns: " + line)
				}
			}
			if warnings.Len() > 0 {
				t.Error(warnings.String())
			}
		})
	}
}

// A text of a command is in the page as it is typed, whatever troff makes of its characters.
func TestRoffKeepsCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"--until NAME":  `\-\-until NAME`,
		`a\nb`:          `a\enb`,
		".SH NAME":      `\&.SH NAME`,
		"'^linear'":     `\(aq\(halinear\(aq`,
		"one\n.two ~/x": "one\n\\&.two \\(ti/x",
	} {
		require.Equal(t, roff(text), want, text)
	}
}
