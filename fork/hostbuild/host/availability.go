package host

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"mpsforge/fork/builds"
)

// statement is Objective-C's question for the system's version. Clang for Linux answers it with true, whatever version it names; a header
// can turn __builtin_available, which native/objc/include/Availability.h does, and not this.
var statement = regexp.MustCompile(`@available\s*\(`)

// refuseAvailable refuses sources that ask with @available which macOS they run on. The headers beside the sources count, too.
func refuseAvailable(checkout string, sources []string) error {
	var folders []string
	for _, source := range sources {
		if folder := path.Dir(source); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	files := slices.Clone(sources)
	for _, folder := range folders {
		headers, err := filepath.Glob(filepath.Join(checkout, folder, "*.h"))
		if err != nil {
			return err
		}
		for _, header := range headers {
			files = append(files, folder+"/"+filepath.Base(header))
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(checkout, file))
		if err != nil {
			return fmt.Errorf("look for @available: %w", err)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			code, _, _ := bytes.Cut(line, []byte("//"))
			if statement.Match(code) {
				return fmt.Errorf(
					"%w: %s:%d: @available is always true on Linux, whatever MPSFORGE_METAL_MACOS is set to; use __builtin_available, or leave the "+
						"file out in patches/VERSION/host.json",
					builds.ErrSources, file, i+1)
			}
		}
	}
	return nil
}
