package apple

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Versions is what native/objc/runtime/api_versions.inc holds: since which macOS there are classes and methods, as far as the table says.
func (t *Table) Versions() (string, error) {
	var text strings.Builder
	text.WriteString("// Made of native/apple/api.tsv: go test ./native/apple -run TestRuntimeHasTheVersions -write\n")
	for _, name := range slices.Sorted(maps.Keys(t.Types)) {
		found := t.Types[name]
		entry := func(selector, since string) error {
			if since == "" {
				return nil
			}
			var major, minor int
			if count, err := fmt.Sscanf(since+" ", "%d.%d ", &major, &minor); count != 2 || err != nil {
				return fmt.Errorf("%s %s: %q is not a version of macOS", name, selector, since)
			}
			fmt.Fprintf(&text, "{%q, %q, %d},\n", name, selector, 100*major+minor)
			return nil
		}
		if err := entry("", found.Since); err != nil {
			return "", err
		}
		for _, selector := range slices.Sorted(maps.Keys(found.Methods)) {
			if err := entry(selector, found.Methods[selector].Since); err != nil {
				return "", err
			}
		}
	}
	return text.String(), nil
}
