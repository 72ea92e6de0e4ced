package patches

import (
	"io/fs"
	"strings"
	"testing"

	"mpsforge/internal/require"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// The first pull request is small, has no fault that lint knows, and has no line that the series lacks: it is derived from the fixes, and
// stays so.
func TestFirstPullRequestIsOfTheSeries(t *testing.T) {
	const most = 150 // changed lines, its test counted
	for _, baseline := range []string{"v2.9.1", "v2.6.0"} {
		whole := require.One(Load(Embedded(), baseline))(t)
		series := require.One(LoadFirst(Embedded(), baseline))(t)
		found := require.One(Lint(First(Embedded()), baseline, nil))(t)
		for _, fault := range append(found.Of(SeverityError), found.Of(SeverityUnverified)...) {
			if fault.Rule != RuleBaseline { // which lists what the whole series touches
				t.Errorf("%s: %s", baseline, fault)
			}
		}
		known, changed := map[string]bool{}, 0
		for _, patch := range whole.Patches {
			for _, file := range patch.Files {
				for _, line := range addedIn(file) {
					known[line] = true
				}
			}
		}
		for _, patch := range series.Patches {
			changed += patch.Changed()
			for _, file := range patch.Files {
				if strings.HasPrefix(file.Path(), "test/") {
					continue
				}
				for _, line := range addedIn(file) {
					if !known[line] && !strings.HasPrefix(line, "*") { // a comment may be shorter
						t.Errorf("%s: %s: %s adds a line that no patch of the series adds: %q", baseline, patch.Name, file.Path(), line)
					}
				}
			}
		}
		if changed > most {
			t.Errorf("%s: %d changed lines, at most %d", baseline, changed, most)
		}
		t.Logf("%s: %d changed lines", baseline, changed)
	}
}

// What was found about the whole series says nothing of the first pull request.
func TestFirstHasNoFactsOfTheWholeSeries(t *testing.T) {
	files := First(Embedded())
	for _, name := range []string{"v2.9.1/ablation.json", "v2.9.1/runs.json", "v2.9.1/stream-slots.patch", "v2.7.0/series"} {
		_, err := fs.Stat(files, name)
		require.Is(t, err, fs.ErrNotExist, name)
	}
}

// addedIn gives the lines that a patch adds to a file, without white space around them.
func addedIn(file *File) (lines []string) {
	for _, hunk := range file.TextFragments {
		for _, line := range hunk.Lines {
			if line.Op == gitdiff.OpAdd {
				lines = append(lines, strings.TrimSpace(line.Line))
			}
		}
	}
	return lines
}
