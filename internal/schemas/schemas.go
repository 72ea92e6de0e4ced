// Package schemas holds the JSON Schemas of what mpsforge writes for other programs. docs/machine.md says what is versioned how.
package schemas

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.json
var files embed.FS

// Names are the schemas' names.
func Names() []string {
	paths, err := fs.Glob(files, "*.json")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for i, path := range paths {
		paths[i] = strings.TrimSuffix(path, ".json")
	}
	return paths
}

// Text is a schema. They refer to each other by their file names, NAME.json.
func Text(name string) (json.RawMessage, error) {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return nil, fmt.Errorf("there is no schema %q: %w", name, err)
	}
	return text, nil
}
