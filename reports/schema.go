package reports

import (
	_ "embed"
	"encoding/json"
)

//go:embed schema.json
var schemaText []byte

// JSONSchema describes the JSON form of a report, for readers in other languages.
func JSONSchema() json.RawMessage { return schemaText }
