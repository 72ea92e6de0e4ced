//go:build cgo

package script_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
	"mpsforge/native/script"
)

// programsPage describes the language.
const programsPage = "../../docs/dev/programs.md"

// The page has the verbs that the sources know, and no others.
func TestPageHasEveryVerb(t *testing.T) {
	known := map[string]bool{"thread": true, "block": true, "end": true, "repeat": true, "done": true}
	for file, pattern := range map[string]string{"metal_verbs.cc": `(?m)^      \{"([\w.]+)",`, "pool_verbs.cc": `(?m)^      \{"([\w.]+)",(?: \w+\},?| ?\[|$)`,
		"world.cc": `verb == "(\w+)"`} {
		text := require.One(os.ReadFile(file))(t)
		for _, found := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			known[string(found[1])] = true
		}
	}
	page := require.One(os.ReadFile(programsPage))(t)
	described := map[string]bool{"pool": true} // in the text before its table
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\| .*\\|$").FindAllSubmatch(page, -1) {
		for _, line := range regexp.MustCompile("`([\\w.]+)").FindAllSubmatch(row[1], -1) {
			described[string(line[1])] = true
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(known)) {
		if !described[verb] {
			t.Errorf("docs/dev/programs.md lacks the verb %s", verb)
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(described)) {
		if !known[verb] {
			t.Errorf("docs/dev/programs.md has a verb %s that is in no source", verb)
		}
	}
}

// The page's programs are clean in every of some runs, and the one without the line that the page names has a race.
func TestPageExamplesRun(t *testing.T) {
	page := require.One(os.ReadFile(programsPage))(t)
	programs := regexp.MustCompile("(?ms)^```program\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(programs) != 2 {
		t.Fatalf("docs/dev/programs.md has %d programs", len(programs))
	}
	run := func(text string) *script.Result {
		t.Helper()
		return require.One(script.Run(t.Context(), text, script.Options{Seed: 7, Runs: 20, Stall: 10 * time.Second}))(t)
	}
	for _, program := range programs {
		if found := run(program[1]); !found.Clean() || found.Language != script.Language {
			t.Errorf("%+v of\n%s", found, program[1])
		}
	}
	without := strings.Replace(programs[0][1], "completed c\npeek b 0 64 = 7", "peek b 0 64", 1)
	if found := run(without); found.RunsWith[script.Race] != found.Runs {
		t.Errorf("races in %d of %d runs of\n%s", found.RunsWith[script.Race], found.Runs, without)
	}
}
