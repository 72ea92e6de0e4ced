// Package apple holds Apple's API as a table, as far as native/objc/include declares it, and compares the two: a method that
// Apple does not have, or has with other types, would let PyTorch's sources compile here and not on a Mac.
package apple

import (
	_ "embed" // the table
	"fmt"
	"strconv"
	"strings"
)

//go:embed api.tsv
var table string

//go:embed own.tsv
var own string

// Type is a class or a protocol.
type Type struct {
	Kind      string // class or protocol
	Name      string
	Super     string
	Protocols []string
	Since     string // the macOS that it appeared in; "": unknown, or older than the sources say
	Methods   map[string]*Method
}

// Method has its types in the table's spelling.
type Method struct {
	Result string
	Args   []string
	Since  string // as Type's
	// Undeclared: our headers declare the selector nowhere; it is here because a wheel of PyTorch uses it.
	Undeclared bool
}

// Enum is an enumeration; its constants are in Table.Constants.
type Enum struct{ Underlying string }

// Struct has fields as name:type.
type Struct struct{ Fields []string }

// Function is a C function.
type Function struct {
	Result string
	Args   []string
}

// Table is what is declared, by name.
type Table struct {
	Types     map[string]*Type
	Enums     map[string]*Enum
	Constants map[string]int64
	Structs   map[string]*Struct
	Functions map[string]*Function
}

func newTable() Table {
	return Table{Types: map[string]*Type{}, Enums: map[string]*Enum{}, Constants: map[string]int64{}, Structs: map[string]*Struct{},
		Functions: map[string]*Function{}}
}

// parseConstant reads a number of 64 bits, with a sign or without.
func parseConstant(text string) (int64, error) {
	value, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return value, nil
	}
	unsigned, wrong := strconv.ParseUint(text, 10, 64)
	if wrong != nil { // it is not only too large
		return 0, err
	}
	return int64(unsigned), nil
}

// Load gives the table of Apple's API.
func Load() (*Table, error) { return parseTable(table) }

// parseTable reads lines of fields between tabs; the table's head says what they mean.
func parseTable(text string) (*Table, error) {
	t := newTable()
	var last *Type
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := append(strings.Split(line, "\t"), "", "", "", "", "")
		since := func(text string) string { return strings.TrimPrefix(text, "-") }
		switch f[0] {
		case "T":
			last = &Type{Kind: f[1], Name: f[2], Super: f[3], Since: since(f[5]), Methods: map[string]*Method{}}
			if f[4] != "" {
				last.Protocols = strings.Split(f[4], ",")
			}
			if t.Types[f[2]] != nil {
				return nil, fmt.Errorf("api.tsv:%d: %s is there twice", i+1, f[2])
			}
			t.Types[f[2]] = last
		case "M":
			if last == nil || last.Methods[f[1]] != nil {
				return nil, fmt.Errorf("api.tsv:%d: %s has no type before it, or is there twice", i+1, f[1])
			}
			last.Methods[f[1]] = &Method{Result: f[2], Args: strings.Fields(f[3]), Since: since(f[4]), Undeclared: strings.Contains(f[5], "u")}
		case "E":
			t.Enums[f[1]] = &Enum{Underlying: f[2]}
		case "C":
			value, err := parseConstant(f[2])
			if err != nil {
				return nil, fmt.Errorf("api.tsv:%d: %w", i+1, err)
			}
			t.Constants[f[1]] = value
		case "S":
			t.Structs[f[1]] = &Struct{Fields: strings.Fields(f[2])}
		case "F":
			t.Functions[f[1]] = &Function{Result: f[2], Args: strings.Fields(f[3])}
		default:
			return nil, fmt.Errorf("api.tsv:%d: no kind of line is called %q", i+1, f[0])
		}
	}
	return &t, nil
}
