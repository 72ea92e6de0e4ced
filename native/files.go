package native

import (
	"fmt"
	"io/fs"
	"strings"

	"mpsforge/internal/cxx"
)

// Files returns files of package native under their own names; names ending in / mean the whole folder.
func Files(names ...string) ([]cxx.Source, error) {
	var result []cxx.Source
	for _, name := range names {
		matches := []string{name}
		if strings.HasSuffix(name, "/") {
			found, err := fs.Glob(Sources, name+"*")
			if err != nil {
				return nil, fmt.Errorf("embedded sources: %w", err)
			}
			matches = found
		}
		for _, path := range matches {
			data, err := Sources.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("embedded sources: %w", err)
			}
			result = append(result, cxx.Source{Path: path, Data: data})
		}
	}
	return result, nil
}
