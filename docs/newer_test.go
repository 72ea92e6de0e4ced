package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
)

var (
	comparedCommand = regexp.MustCompile(`(?m)^mpsforge baseline compare .*$`)
	comparedSeries  = regexp.MustCompile(`Series digest of (v\S+): ([0-9a-f]{64})\.`)
)

// checkCompared says why a page that mpsforge baseline compare has printed is not about the series as it is; digest gives that of a baseline's series.
func checkCompared(file, text string, digest func(baseline string) (string, error)) error {
	command, series := comparedCommand.FindString(text), comparedSeries.FindStringSubmatch(text)
	if command == "" || series == nil {
		return fmt.Errorf("%s has no command or no series digest: make it with mpsforge baseline compare", file)
	}
	now, err := digest(series[1])
	if err != nil {
		return err
	}
	if now != series[2] {
		return fmt.Errorf("%s is about an earlier series of %s; get the wheels (docs/dev/newer-releases.md) and run again: %s > %s, then see "+
			"whether docs/dev/newer-releases.md is still right",
			file, series[1], command, file)
	}
	return nil
}

// The pages about newer releases are about the series as it is.
func TestNewerReleasesAreOfThisSeries(t *testing.T) {
	pages, err := filepath.Glob("dev/newer-releases/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages in docs/dev/newer-releases: %v", err)
	}
	for _, page := range pages {
		text := require.One(os.ReadFile(page))(t)
		if err := checkCompared("docs/"+page, string(text), func(baseline string) (string, error) {
			series, err := patches.Load(patches.Embedded(), baseline)
			if err != nil {
				return "", err
			}
			return series.Digest(), nil
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestPagesOfEarlierSeriesAreFound(t *testing.T) {
	page := "```text\nmpsforge baseline compare --wheel a.whl\n```\n\nSeries digest of v1: " + strings.Repeat("0a", 32) + ".\n"
	for name, c := range map[string]struct{ text, digest, want string }{
		"of this series":     {page, strings.Repeat("0a", 32), ""},
		"of an earlier one":  {page, strings.Repeat("0b", 32), "run again: mpsforge baseline compare --wheel a.whl > page.md"},
		"without a digest":   {strings.Replace(page, "digest", "", 1), "", "no series digest"},
		"without a command":  {strings.Replace(page, "mpsforge", "", 1), "", "no command"},
		"of no series known": {page, "", "no series v1"},
	} {
		err := checkCompared("page.md", c.text, func(baseline string) (string, error) {
			if c.digest == "" {
				return "", fmt.Errorf("no series %s", baseline)
			}
			return c.digest, nil
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
