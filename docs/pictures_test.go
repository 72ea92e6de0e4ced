package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
)

// pictured says what the pictures are of; ci/pictures.sh writes it.
type pictured struct {
	Baseline     string            `json:"baseline"`
	SeriesDigest string            `json:"series_digest"`
	Started      time.Time         `json:"started"` // of the run
	Files        map[string]string `json:"files"`   // sha256 of each
}

// check says why the pictures are not of the series as it is.
func (p pictured) check(digest string, files map[string]string) error {
	const again = "; verify v2.9.1's tree, and make pictures REPORT=FILE.json LOG=FILE.jsonl"
	if p.SeriesDigest != digest {
		return fmt.Errorf("the pictures are of an earlier series of %s%s", p.Baseline, again)
	}
	for name, sum := range files {
		if p.Files[name] != sum {
			return fmt.Errorf("%s is not the file that was made then%s", name, again)
		}
	}
	if len(p.Files) != len(files) {
		return fmt.Errorf("%d pictures are listed, %d are there%s", len(p.Files), len(files), again)
	}
	return nil
}

// The pictures show a run of the series as it is. The environment variable names the report whose pictures were just made.
func TestPicturesAreOfThisSeries(t *testing.T) {
	const list = "pictures/made-of.json"
	files := map[string]string{}
	for _, pattern := range []string{"*.svg", "*.png"} {
		names := require.One(filepath.Glob(filepath.Join("pictures", pattern)))(t)
		for _, name := range names {
			content := require.One(os.ReadFile(name))(t)
			sum := sha256.Sum256(content)
			files[filepath.Base(name)] = hex.EncodeToString(sum[:])
		}
	}
	if path := os.Getenv("PICTURES_REPORT"); path != "" {
		report := require.One(reports.ReadFile(path))(t)
		text := require.One(json.MarshalIndent(pictured{report.Identity.Baseline, report.Identity.SeriesDigest, report.Started, files}, "", "  "))(t)
		require.NoError(t, os.WriteFile(list, append(text, '\n'), 0o644))
	}
	text := require.One(os.ReadFile(list))(t)
	var made pictured
	require.NoError(t, json.Unmarshal(text, &made))
	series := require.One(patches.Load(patches.Embedded(), made.Baseline))(t)
	if made.Baseline != patches.DefaultBaseline {
		t.Errorf("the pictures are of %s, not of %s", made.Baseline, patches.DefaultBaseline)
	}
	if err := made.check(series.Digest(), files); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"an earlier series":                  made.check(strings.Repeat("0", 64), files),
		"is not the file that was made then": made.check(series.Digest(), map[string]string{"verify.svg": "another", "report.png": files["report.png"]}),
		"2 pictures are listed, 1 are there": made.check(series.Digest(), map[string]string{"verify.svg": files["verify.svg"]}),
	} {
		require.Says(t, err, want)
	}
}
