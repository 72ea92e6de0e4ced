package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/schemas"
	"mpsforge/internal/schemas/schematest"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/stages/device"
)

// docs/machine.md lists every schema with the version that is written today.
func TestMachineInterfacesAreOnTheirPage(t *testing.T) {
	page := require.One(os.ReadFile("../../docs/machine.md"))(t)
	versions := map[string]int{"envelope": resultSchema, "event": events.Version, "report": reports.Schema, "program": script.Language,
		"device-facts": device.Schema}
	for _, name := range schemas.Names() {
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| .* \\| `[a-z]+` %d.* \\| `schema-%s` \\|$", versions[name], name))
		if !row.Match(page) {
			t.Errorf("docs/machine.md has no row for schema-%s with version %d", name, versions[name])
		}
		schema := require.One(schemas.Text(name))(t)
		var compact bytes.Buffer
		if err := json.Compact(&compact, schema); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.Contains(compact.String(), fmt.Sprintf(`":{"const":%d`, versions[name])) {
			t.Errorf("schema %s does not know version %d", name, versions[name])
		}
	}
}

// The examples on docs/machine.md are as the schemas say.
func TestMachineExamplesKeepTheSchemas(t *testing.T) {
	page := require.One(os.ReadFile("../../docs/machine.md"))(t)
	block := func(kind string) string {
		_, text, found := strings.Cut(string(page), "```"+kind+"\n")
		text, _, closed := strings.Cut(text, "```")
		if !found || !closed {
			t.Fatalf("docs/machine.md has no block %s", kind)
		}
		return text
	}
	if err := schematest.Validate("envelope", []byte(block("json"))); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(block("jsonl")) {
		if err := schematest.Validate("event", []byte(line)); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
}
