package reports_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/internal/schemas/schematest"
	"mpsforge/reports"
)

// What is written is what the schema says: reports of real runs, old ones too.
func TestRealReportsKeepTheSchema(t *testing.T) {
	for _, path := range realReports(t) {
		text := require.One(os.ReadFile(path))(t)
		if err := schematest.Validate("report", text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := schematest.Validate("report", []byte(rendered(t, grown(), "json"))); err != nil {
		t.Error(err)
	}
}

// The schema refuses what is not a report.
func TestSchemaRefuses(t *testing.T) {
	good := rendered(t, grown(), "json")
	for name, change := range map[string][2]string{
		"an unknown verdict":    {`"verdict": "failed"`, `"verdict": "great"`},
		"an unknown outcome":    {`"outcome": "crashed"`, `"outcome": "died"`},
		"another schema number": {`"schema": 1`, `"schema": 2`},
		"a missing field":       {`"seed": 7,`, ``},
		"a date that is none":   {`2026-01-02T03:04:05Z`, `yesterday`},
		"a negative time":       {`"seconds": 1.5`, `"seconds": -1`},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(good, change[0], change[1], 1)
			if bad == good {
				t.Fatalf("no %s in the report", change[0])
			}
			if schematest.Validate("report", []byte(bad)) == nil {
				t.Error("it is taken")
			}
		})
	}
}

// Schema and Go types name the same fields, and agree on which are always there.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	schematest.SameFields(t, "report", map[string]reflect.Type{"": reflect.TypeFor[reports.Report]()})
}
