package host

import (
	"errors"
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
			require.Files(t, checkout, map[string]string{"mps/One.mm": test.source, "mps/One.h": test.header})
			err := refuseAvailable(checkout, []string{"mps/One.mm"})
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, builds.ErrSources) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
