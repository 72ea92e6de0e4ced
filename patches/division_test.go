package patches

import (
	"fmt"
	"strings"
	"testing"

	"mpsforge/internal/require"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// What one patch adds and a later one removes is read, reviewed and thrown away. What is left of it replaces code for the one stream by
// code for several (series rule 13).
func TestFewLinesAreTemporary(t *testing.T) {
	const most = 20
	for _, baseline := range []string{"v2.9.1", "v2.6.0"} {
		found := temporaryLines(t, baseline)
		for _, line := range found {
			t.Logf("%s: %s", baseline, line)
		}
		if len(found) > most {
			t.Errorf("%s: %d temporary lines, at most %d", baseline, len(found), most)
		}
	}
}

func temporaryLines(t *testing.T, baseline string) []string {
	t.Helper()
	series := require.One(Load(Embedded(), baseline))(t)
	digests := require.One(series.Digests())(t)
	added := map[string][]string{} // by path, the patch that added each line; "" is the baseline
	for _, file := range digests.Files {
		added[file.Path] = make([]string, file.Lines)
	}
	var temporary []string
	for _, patch := range series.Patches {
		for _, file := range patch.Files {
			before, after := added[file.Path()], []string(nil)
			for _, hunk := range file.TextFragments {
				start := max(hunk.OldPosition, 1) - 1
				if hunk.OldLines == 0 {
					start = hunk.OldPosition
				}
				read := int64(len(added[file.Path()]) - len(before))
				after, before = append(after, before[:start-read]...), before[start-read:]
				for _, line := range hunk.Lines {
					if line.Op == gitdiff.OpAdd {
						after = append(after, patch.Name)
						continue
					}
					if line.Op == gitdiff.OpContext {
						after = append(after, before[0])
					} else if before[0] != "" && strings.TrimSpace(line.Line) != "" { // git takes blank lines for one another
						temporary = append(temporary, fmt.Sprintf("%s removes what %s added to %s: %q", patch.Name, before[0], file.Path(), line.Line))
					}
					before = before[1:]
				}
			}
			added[file.Path()] = append(after, before...)
		}
	}
	return temporary
}

// A line "# part: NAME" begins a part; what is wrong with one is named with its line.
func TestPartsOfASeriesFile(t *testing.T) {
	for name, c := range map[string]struct{ text, fault string }{
		"two parts":             {"# part: fixes\na.patch\n\n# part: streams\nb.patch\n", ""},
		"no part":               {"# a comment about a part: none\na.patch\n", ""},
		"a part twice":          {"# part: fixes\na.patch\n# part: streams\nb.patch\n# part: fixes\nc.patch\n", "the part fixes has begun on line 1 already"},
		"patches before a part": {"a.patch\n# part: streams\nb.patch\n", "the patches before the part streams are in none"},
		"a part without a name": {"# part:\na.patch\n", `"" cannot be the name of a part`},
		"a part with two words": {"# part: the fixes\na.patch\n", `"the fixes" cannot be the name of a part`},
		"a part with a capital": {"# part: Fixes\na.patch\n", `"Fixes" cannot be the name of a part`},
		"a number for its name": {"# part: 1-fixes\na.patch\n", `"1-fixes" cannot be the name of a part`},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := parseSeries(c.text)
			found := ""
			if len(faults) > 0 {
				found = faults[0].why
			}
			require.Equal(t, found, c.fault, "fault")
		})
	}
}
