package patches

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// in makes the diff of a file of 30 numbered lines, or of what earlier patches have made of it.
func in(path string, old, new map[int]string) string {
	return changed(path, replaced(30, old), replaced(30, new))
}

// Each fate, on a version that has a line more at the beginning of a.h and another line 20.
func TestElsewhere(t *testing.T) {
	ten, tenThen := map[int]string{10: "ten\n"}, map[int]string{10: "ten\n", 11: "eleven\n"}
	twenty, more := map[int]string{20: "twenty\n"}, map[int]string{20: "more\n"}
	without := map[int]string{20: ""}
	their := strings.TrimSpace(strings.SplitAfter(replaced(30, nil), "\n")[19])
	newer := map[string][]byte{
		"a.h":     []byte("one line more\n" + replaced(30, map[int]string{20: "theirs\n"})),
		"there.h": []byte("one line more\n" + replaced(30, ten)),
		"taken.h": []byte("theirs\n"),
		"same.h":  []byte("ours\n"),
		"end.h":   []byte(replaced(30, nil) + "one line more\n"),
	}
	for name, c := range map[string]struct {
		diffs []string // a patch each
		want  []Fate
		lacks string
	}{
		"lines further down":                {[]string{in("a.h", nil, ten)}, []Fate{FateApplies}, ""},
		"on what an earlier patch has made": {[]string{in("a.h", nil, ten), in("a.h", ten, tenThen)}, []Fate{FateApplies, FateApplies}, ""},
		"another line":                      {[]string{in("a.h", nil, twenty)}, []Fate{FateConflicts}, their},
		"another line beside it":            {[]string{in("a.h", nil, map[int]string{22: "x\n"})}, []Fate{FateConflicts}, their},
		"on what conflicts":                 {[]string{in("a.h", nil, twenty), in("a.h", twenty, more)}, []Fate{FateConflicts, FateBuilds}, their},
		"on what builds on a conflict": {[]string{in("a.h", nil, twenty), in("a.h", twenty, more), in("a.h", more, nil)},
			[]Fate{FateConflicts, FateBuilds, FateBuilds}, their},
		"where a conflict takes a line away": {[]string{in("a.h", nil, without), in("a.h", without, map[int]string{20: "", 21: "x\n"})},
			[]Fate{FateConflicts, FateBuilds}, their},
		"far from a conflict": {[]string{in("a.h", nil, twenty), in("a.h", twenty, map[int]string{20: "twenty\n", 10: "ten\n"})},
			[]Fate{FateConflicts, FateApplies}, their},
		"there already":               {[]string{in("there.h", nil, ten)}, []Fate{FatePresent}, ""},
		"on what is there already":    {[]string{in("there.h", nil, ten), in("there.h", ten, tenThen)}, []Fate{FatePresent, FateApplies}, ""},
		"the end is elsewhere":        {[]string{in("end.h", nil, map[int]string{30: "thirty\n"})}, []Fate{FateConflicts}, ""},
		"no such file":                {[]string{in("gone.h", nil, ten)}, []Fate{FateAbsent}, ""},
		"on a file that is not there": {[]string{in("gone.h", nil, ten), in("gone.h", ten, tenThen)}, []Fate{FateAbsent, FateBuilds}, ""},
		"a file of no wheel":          {[]string{in("a.mm", nil, ten), in("a.mm", ten, tenThen)}, []Fate{FateUnseen, FateUnseen}, ""},
		"a file of the series' own":   {[]string{created("own.h", "ours\n"), changed("own.h", "ours\n", "more\n")}, []Fate{FateOwn, FateOwn}, ""},
		"a file of that name, otherwise": {[]string{created("taken.h", "ours\n"), changed("taken.h", "ours\n", "more\n")},
			[]Fate{FateConflicts, FateBuilds}, ""},
		"a file of that name, the same": {[]string{created("same.h", "ours\n"), changed("same.h", "ours\n", "more\n")},
			[]Fate{FatePresent, FateApplies}, ""},
		"a file taken away":                   {[]string{deleted("same.h", "ours\n"), created("same.h", "again\n")}, []Fate{FateApplies, FateOwn}, ""},
		"a file taken away, gone already":     {[]string{deleted("gone.h", "ours\n")}, []Fate{FatePresent}, ""},
		"a file taken away that is otherwise": {[]string{deleted("taken.h", "ours\n")}, []Fate{FateConflicts}, "ours"},
	} {
		t.Run(name, func(t *testing.T) {
			series := &Series{}
			for _, diff := range c.diffs {
				series.Patches = append(series.Patches, parsed(t, good(diff)))
			}
			found, err := series.Elsewhere(func(path string) ([]byte, bool, error) { return newer[path], strings.HasSuffix(path, ".h"), nil })
			require.NoError(t, err)
			var fates []Fate
			lacks := ""
			for _, hunk := range found {
				fates = append(fates, hunk.Fate)
				lacks += hunk.Missing
			}
			if !slices.Equal(fates, c.want) || lacks != c.lacks {
				t.Errorf("%q, lacks %q; want %q, %q", fates, lacks, c.want, c.lacks)
			}
		})
	}
}

// A hunk applies where git apply takes it.
func TestElsewhereAgreesWithGit(t *testing.T) {
	r := newRepo(t)
	random := rand.New(rand.NewPCG(39, 7))
	// Few different lines, so that a hunk often fits at several places.
	text := func(most int) (lines []string) {
		for range 4 + random.IntN(most) {
			lines = append(lines, fmt.Sprintf("line %d\n", random.IntN(6)))
		}
		return lines
	}
	edited := func(lines []string) []string {
		lines = slices.Clone(lines)
		at := random.IntN(len(lines))
		return slices.Replace(lines, at, at+random.IntN(min(3, len(lines)-at)), text(1)[:1+random.IntN(2)]...)
	}
	applied := 0
	for range 400 {
		old := text(14)
		new := edited(old)
		if slices.Equal(old, new) {
			continue
		}
		diff := changed("a.h", strings.Join(old, ""), strings.Join(new, ""))
		newer := strings.Join(append(text(2)[random.IntN(4):], edited(old)...), "")
		r.Write("a.h", newer)
		_, gitErr := r.Run([]byte(diff), "apply", "--check", "-")
		series := &Series{Patches: []*Patch{parsed(t, good(diff))}}
		found := require.One(series.Elsewhere(func(string) ([]byte, bool, error) { return []byte(newer), true, nil }))(t)
		if applies := found[0].Fate == FateApplies; applies != (gitErr == nil) {
			t.Fatalf("%s on\n%s: %s, git: %v", diff, newer, found[0].Fate, gitErr)
		}
		if gitErr != nil {
			continue
		}
		applied++
	}
	if applied < 50 {
		t.Errorf("only %d of 400 applied", applied)
	}
}
