package overlay_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"mpsforge/fork/macos/overlay"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// macFile is a file of a selftest on a Mac; of its checks some are changed.
func macFile(t *testing.T, stamp string, change func(name string) string) *overlay.Selftest {
	t.Helper()
	checks := ""
	for _, name := range []string{"identity", "models in threads", "hand-over", "backward", "copies", "memory", "streams",
		"one thread against torch's own backend"} {
		if row := change(name); row != "" {
			checks += row + ","
		}
	}
	text := fmt.Sprintf(`{"schema": 1, "machine": {"macos": "15.1", "system": "macOS-15.1-arm64", "processor": "Apple M4", "date": "2026-11-28"},
		"environment": {"PYTORCH_MPS_STREAM_PER_THREAD": "0"}, "status": {"torch": "2.9.1", "active": true, "stamp": {"series": %q}}, "checks": [%s]}`, stamp,
		strings.TrimSuffix(checks, ","))
	return require.One(overlay.ReadSelftest(strings.NewReader(text)))(t)
}

func right(name string) string { return fmt.Sprintf(`{"check": %q, "compared": 5}`, name) }

// What a Mac found is said beside what is right on Linux, with the switch to turn first.
func TestCompareSelftest(t *testing.T) {
	series := require.One(patches.Load(patches.Embedded(), "v2.9.1"))(t)
	instead := func(of, row string) func(name string) string {
		return func(name string) string {
			if name == of {
				return row
			}
			return right(name)
		}
	}
	for name, c := range map[string]struct {
		stamp  string
		change func(name string) string
		finds  []string // of the one difference; none for none
	}{
		"all is right": {series.Digest(), right, nil},
		"wrong values": {series.Digest(), instead("hand-over", `{"check": "hand-over", "fault": "around the ring: 1 in the place of 2"}`),
			[]string{"around the ring", "PYTORCH_MPS_STREAM_PER_THREAD=0"}},
		"it died": {series.Digest(), instead("copies", `{"check": "copies", "fault": "died by SIGABRT: x", "stderr": "first\nx"}`),
			[]string{"died by SIGABRT", "first", "PYTORCH_MPS_STREAM_PER_THREAD=0"}},
		"it was cut":    {series.Digest(), instead("memory", ""), []string{"not run", "threads that come and go"}},
		"another wheel": {strings.Repeat("0", 64), right, []string{"the series 000000000000", "the mpsforge that made the wheel"}},
		"a newer one":   {series.Digest(), instead("streams", right("streams")+`,{"check": "events", "wrong": []}`), []string{"events", "does not know"}},
		"not in use": {series.Digest(), func(name string) string {
			if name == "identity" {
				return `{"check": "identity", "fault": "torch's own backend answers"}`
			}
			return ""
		}, []string{"identity", "torch's own backend answers"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := overlay.CompareSelftest(macFile(t, c.stamp, c.change), series)
			if len(all) != min(len(c.finds), 1) {
				t.Fatalf("%+v", all)
			}
			for _, text := range c.finds {
				if !strings.Contains(fmt.Sprintf("%+v", all[0]), text) {
					t.Errorf("no %q in %+v", text, all[0])
				}
			}
		})
	}
	require.Equal(t, macFile(t, series.Digest(), right).Summary(series), "torch 2.9.1, an overlay of the whole series, on Apple M4, macOS-15.1-arm64, "+
		"2026-11-28, PYTORCH_MPS_STREAM_PER_THREAD=0")
}

func TestReadSelftestRefuses(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "ok", "another file": `{"checks": []}`, "another schema": `{"schema": 2, "checks": [{}]}`} {
		_, err := overlay.ReadSelftest(strings.NewReader(text))
		require.Is(t, err, overlay.ErrSelftest, name)
	}
}

// The advice of the page for the first hour and of the command is of the same checks.
func TestPageHasEachCheck(t *testing.T) {
	page := require.One(os.ReadFile("../../../docs/first-mac-run.md"))(t)
	for _, name := range []string{"models in threads", "hand-over", "backward", "copies", "memory", "streams", "one thread against torch's own backend"} {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/first-mac-run.md says nothing of the check %s", name)
		}
	}
}
