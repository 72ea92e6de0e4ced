package reports_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mpsforge/reports"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(reports.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("report.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func validate(t *testing.T, text []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema(t).Validate(value)
}

// What is written is what the schema says: reports of real runs, old ones too.
func TestRealReportsKeepTheSchema(t *testing.T) {
	for _, path := range realReports(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := validate(t, []byte(rendered(t, grown(), "json"))); err != nil {
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
			if validate(t, []byte(bad)) == nil {
				t.Error("it is taken")
			}
		})
	}
}

// schemaObject is the part of a schema that says what an object holds.
type schemaObject struct {
	Properties map[string]struct {
		Ref   string `json:"$ref"`
		Items *struct {
			Ref string `json:"$ref"`
		} `json:"items"`
	} `json:"properties"`
	Required []string                `json:"required"`
	Defs     map[string]schemaObject `json:"$defs"`
}

// Schema and Go types name the same fields, and agree on which are always there.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	var root schemaObject
	if err := json.Unmarshal(reports.JSONSchema(), &root); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var compare func(where string, object schemaObject, kind reflect.Type)
	compare = func(where string, object schemaObject, kind reflect.Type) {
		var fields, always []string
		for i := range kind.NumField() {
			field := kind.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields = append(fields, name)
			if options != "omitempty" {
				always = append(always, name)
			}
			property, ok := object.Properties[name]
			if !ok {
				t.Errorf("%s: the schema lacks %s", where, name)
				continue
			}
			inner, ref := field.Type, property.Ref
			if inner.Kind() == reflect.Slice {
				inner = inner.Elem()
				if property.Items != nil {
					ref = property.Items.Ref
				}
			}
			if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
				definition := strings.TrimPrefix(ref, "#/$defs/")
				if !seen[definition] {
					seen[definition] = true
					compare(definition, root.Defs[definition], inner)
				}
			}
		}
		for name := range object.Properties {
			if !slices.Contains(fields, name) {
				t.Errorf("%s: the schema has %s, the type has not", where, name)
			}
		}
		slices.Sort(always)
		slices.Sort(object.Required)
		if !slices.Equal(always, object.Required) {
			t.Errorf("%s: always there are %v, required are %v", where, always, object.Required)
		}
	}
	compare("report", root, reflect.TypeFor[reports.Report]())
}
