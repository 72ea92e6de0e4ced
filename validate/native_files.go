package validate

import (
	"fmt"
	"io/fs"
	"mpsforge/native"
	"strings"
)

// nativeSources returns files of package native under their own names; names ending in / stand for the whole folder.
func nativeSources(names ...string) ([]source, error) {
	var result []source
	for _, name := range names {
		matches := []string{name}
		if strings.HasSuffix(name, "/") {
			found, err := fs.Glob(native.Sources, name+"*")
			if err != nil {
				return nil, fmt.Errorf("embedded sources: %w", err)
			}
			matches = found
		}
		for _, path := range matches {
			data, err := native.Sources.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("embedded sources: %w", err)
			}
			result = append(result, source{path, data})
		}
	}
	return result, nil
}
