// Package schematest compares what is written, and the Go types that it is written from, with the schemas. It is for tests.
package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mpsforge/internal/require"
	"mpsforge/internal/schemas"
)

var (
	mutex sync.Mutex // guards what the compiler keeps
	// compiler has all schemas, and keeps what it has compiled.
	compiler = sync.OnceValues(newCompiler)
)

func newCompiler() (*jsonschema.Compiler, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for _, name := range schemas.Names() {
		text, err := schemas.Text(name)
		if err != nil {
			return nil, err
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
		if err := compiler.AddResource(name+".json", document); err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
	}
	return compiler, nil
}

// Validate says what is wrong with a JSON text by the schema of that name.
func Validate(name string, text []byte) error {
	mutex.Lock()
	defer mutex.Unlock()
	compiler, err := compiler()
	if err != nil {
		return err
	}
	schema, err := compiler.Compile(name + ".json")
	if err != nil {
		return fmt.Errorf("schema %s: %w", name, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// object is the part of a schema that says what an object holds.
type object struct {
	Properties map[string]struct {
		Ref   string `json:"$ref"`
		Items *struct {
			Ref string `json:"$ref"`
		} `json:"items"`
	} `json:"properties"`
	Required []string          `json:"required"`
	Defs     map[string]object `json:"$defs"`
}

// SameFields fails the test unless a schema and Go types name the same fields and agree on which are always there. Types are by
// the names of their definitions, "" for the schema itself; those that their fields refer to are compared, too.
func SameFields(t *testing.T, name string, types map[string]reflect.Type) {
	t.Helper()
	text := require.One(schemas.Text(name))(t)
	var root object
	require.NoError(t, json.Unmarshal(text, &root))
	seen := map[string]bool{"": true}
	var compare func(where string, object object, kind reflect.Type)
	compare = func(where string, object object, kind reflect.Type) {
		var fields, always []string
		for _, field := range reflect.VisibleFields(kind) {
			if field.Anonymous {
				continue // its own fields are listed
			}
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
			definition := strings.TrimPrefix(ref, "#/$defs/")
			if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() && !seen[definition] {
				seen[definition] = true
				compare(definition, root.Defs[definition], inner)
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
	for definition, kind := range types {
		if definition == "" {
			compare(name, root, kind)
		} else {
			compare(definition, root.Defs[definition], kind)
		}
	}
}
