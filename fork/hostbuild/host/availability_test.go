package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
)

// A source that asks with @available would take the newest system's way whatever MPSFORGE_METAL_MACOS says.
func TestSourcesThatUseAvailableAreRefused(t *testing.T) {
	for _, test := range []struct{ name, source, header, want string }{
		{"in a source", "\n  if (@available(macOS 14.0, *)) {", "", "mps/One.mm:2: @available"},
		{"with a blank", "if (@available (macOS 14.0, *)) {", "", "mps/One.mm:1: @available"},
		{"in a header beside it", "", "inline bool newer() { return @available(macOS 15.0, *); }", "mps/One.h:1: @available"},
		{"the other question, and a comment", "if (__builtin_available(macOS 14.0, *)) { // not @available(macOS 14.0, *)", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkout := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(checkout, "mps"), 0o755))
			for name, text := range map[string]string{"One.mm": test.source, "One.h": test.header} {
				require.NoError(t, os.WriteFile(filepath.Join(checkout, "mps", name), []byte(text), 0o644))
			}
			err := refuseAvailable(checkout, []string{"mps/One.mm"})
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, builds.ErrSources) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
