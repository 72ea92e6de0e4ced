package mac

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
)

// Apple's command line tools may be absent, old, or half removed; what is said names the program that was asked and the cure.
func TestFindXcode(t *testing.T) {
	whole := `case "$3 $4" in "--show-sdk-path ") echo DIR/sdk ;; "--find clang") echo DIR/clang ;; "--find ld") echo DIR/ld ;; esac`
	clang := `case "$1" in -dumpversion) echo 17.0.0 ;; -print-resource-dir) echo DIR/resources ;; esac`
	for name, c := range map[string]struct{ xcrun, clang, finds string }{
		"whole": {whole, clang, ""},
		// What xcrun says without them, in Apple's words.
		"not installed": {`echo "xcrun: error: invalid active developer path (/Library/Developer/CommandLineTools), missing xcrun at: x" >&2; exit 1`, clang,
			"missing xcrun at: x; install them with: xcode-select --install"},
		"no answer":          {"exit 0", clang, `xcrun --show-sdk-path answered "", which is no path`},
		"another compiler":   {whole, `echo gcc`, `-dumpversion answered "gcc`},
		"no own library":     {whole, strings.Replace(clang, "resources", "elsewhere", 1), "the compiler's own library; install them again"},
		"a broken compiler":  {whole, "exit 3", "clang -dumpversion"},
		"no xcrun, as Linux": {"", clang, "xcrun"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"xcrun": c.xcrun, "clang": c.clang, "resources/lib/darwin/libclang_rt.osx.a": "x"} {
				if text != "" {
					require.File(t, filepath.Join(dir, file), "#!/bin/sh\n"+strings.ReplaceAll(text, "DIR", dir)+"\n")
				}
			}
			t.Setenv("PATH", dir+":/usr/bin:/bin")
			x, err := FindXcode(t.Context())
			if c.finds == "" {
				if err != nil || x.Major != 17 || x.SDK != dir+"/sdk" || x.Linker != dir+"/ld" || len(x.System) != 1 {
					t.Errorf("%+v, %v", x, err)
				}
				return
			}
			if !errors.Is(err, ErrXcode) || !errors.Is(err, builds.ErrEnvironment) || !strings.Contains(err.Error(), c.finds) {
				t.Errorf("%v", err)
			}
		})
	}
}
