package patches

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// A control is planted where its lines are once. Lines that are not there, or twice, are refused.
func TestPlantControl(t *testing.T) {
	series, tree := mutantsFixture(t)
	read := func(path string) ([]byte, error) { return []byte(tree[path]), nil }
	for name, c := range map[string]struct {
		old, new []string
		problem  string
	}{
		"one line for two":    {[]string{"  count = 1;"}, []string{"  count = 2;", "  ++count;"}, ""},
		"two lines for one":   {[]string{"  count = 1;", "  if (done) {"}, []string{"  if (!done) {"}, ""},
		"the first line":      {[]string{"// more"}, []string{"// less"}, ""},
		"the last line":       {[]string{"  return 0;", "}"}, []string{"  return 1;", "}"}, ""},
		"lines that are gone": {[]string{"    gone();"}, nil, "a.mm has no such lines as old"},
		"parts of lines":      {[]string{"count = 1"}, nil, "a.mm has no such lines as old"},
	} {
		t.Run(name, func(t *testing.T) {
			control := Control{Name: "c", Path: "a.mm", Old: c.old, New: c.new}
			planted, err := control.Plant(series, read)
			if c.problem != "" {
				if !errors.Is(err, ErrControls) || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("%v", err)
				}
				return
			}
			require.NoError(t, err)
			got := require.One(planted.Patches[len(planted.Patches)-1].Files[0].Apply([]byte(tree["a.mm"])))(t)
			block := func(lines []string) string { return "\n" + strings.Join(append(lines, ""), "\n") }
			if want := strings.Replace("\n"+tree["a.mm"], block(c.old), block(c.new), 1); "\n"+string(got) != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
	tree["a.mm"] += "  count = 1;\n"
	if _, err := (Control{Name: "c", Path: "a.mm", Old: []string{"  count = 1;"}}).Plant(series, read); !errors.Is(err, ErrControls) ||
		!strings.Contains(err.Error(), "twice, from lines") {
		t.Errorf("%v", err)
	}
}

// lint warns of controls that were never planted, of those of another series, and of checks that did not fail.
func TestLintControls(t *testing.T) {
	fsys, series := onePatch(t)
	seen := func(digest string, failed bool) *ControlSeen {
		return &ControlSeen{SeriesDigest: digest, Checks: []ControlCheck{{Check: "runtime/items", Failed: failed, Detail: "wrong values: 1"}}}
	}
	for name, c := range map[string]struct {
		tag      string
		by       string
		seen     *ControlSeen
		severity Severity
		finds    string // empty for none
	}{
		"seen to fail":   {"v1.0.0", "^wrong", seen(series.Digest(), true), "", ""},
		"seen to pass":   {"v1.0.0", "^wrong", seen(series.Digest(), false), SeverityWarning, "control c did not make runtime/items fail"},
		"another series": {"v1.0.0", "^wrong", seen("old", true), SeverityWarning, "the series has changed since these controls were planted: c"},
		"never planted":  {"v1.0.0", "^wrong", nil, SeverityWarning, "these controls were never planted: c"},
		"fails by another end": {"v1.0.0", "^hung", seen(series.Digest(), true), SeverityWarning,
			"control c did not make runtime/items fail by ^hung, but by wrong values: 1"},
		"says no end": {"v1.0.0", "", seen(series.Digest(), true), SeverityError, `control c does not say by what its checks fail: ""`},
		"another tag": {"v2.0.0", "^wrong", seen(series.Digest(), true), SeverityError, `the controls are of tag "v2.0.0", the baseline is "v1.0.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			record(fsys, ControlsFile, Controls{Schema: 1, Tag: c.tag, Controls: []Control{{Name: "c", Path: "a.h", By: c.by,
				Checks: []string{"runtime/items"}, Seen: c.seen}}})
			found := require.One(LintControls(fsys, "v1.0.0"))(t)
			wantFinding(t, found.Findings, c.severity, c.finds)
		})
	}
	if _, err := (Controls{Controls: []Control{{Name: "no-order"}}}).Control("no-ordre"); fmt.Sprint(err) !=
		`controls: there is no "no-ordre" (did you mean "no-order"?); there are: no-order` {
		t.Errorf("%v", err)
	}
}
