// Package nativefunctions reads native_functions.yaml, PyTorch's list of its operators
// (https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md says what each entry means).
package nativefunctions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Operator is one entry.
type Operator struct {
	Name     string              // with its overload, such as add.out
	Returns  string              // as the file has it, such as Tensor(a!)
	Tensors  []Tensor            // the arguments that are tensors, lists of them, or storages, in their order
	Kernels  map[string][]string // the dispatch keys of each kernel; nil where the entry says nothing of dispatch
	Delegate string              // the operator whose structured kernel it uses; empty if none
}

// Tensor is an argument that names memory: a tensor or a storage, optional or a list of them or neither.
type Tensor struct {
	Name    string
	Written bool // as the schema says: Tensor(a!)
}

// File is its path in a checkout.
const File = "aten/src/ATen/native/native_functions.yaml"

// Read gives the operators of the checkout in dir, or of a folder with this file of it.
func Read(dir string) ([]Operator, error) {
	text, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Parse reads the file's text.
func Parse(text []byte) ([]Operator, error) {
	var entries []struct {
		Func     string            `yaml:"func"`
		Dispatch map[string]string `yaml:"dispatch"`
		Delegate string            `yaml:"structured_delegate"`
	}
	if err := yaml.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("native_functions.yaml: %w", err)
	}
	var operators []Operator
	for _, entry := range entries {
		name, rest, _ := strings.Cut(entry.Func, "(")
		at := strings.LastIndex(entry.Func, " -> ")
		if at < 0 {
			return nil, fmt.Errorf("native_functions.yaml: %q returns nothing: not a schema", entry.Func)
		}
		one := Operator{Name: name, Returns: entry.Func[at+len(" -> "):], Tensors: tensors(rest), Delegate: entry.Delegate}
		if entry.Dispatch != nil {
			one.Kernels = map[string][]string{}
		}
		for keys, kernel := range entry.Dispatch {
			for key := range strings.SplitSeq(keys, ",") {
				one.Kernels[kernel] = append(one.Kernels[kernel], strings.TrimSpace(key))
			}
		}
		operators = append(operators, one)
	}
	return operators, nil
}

// tensors reads a schema behind its first bracket, up to the bracket that closes that one.
func tensors(schema string) (found []Tensor) {
	depth, begin := 0, 0
	for i, c := range schema {
		switch {
		case c == '(' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == ')'):
			if one, ok := tensor(schema[begin:i]); ok {
				found = append(found, one)
			}
			if c == ')' {
				return found
			}
			begin = i + 1
		case c == ')' || c == ']':
			depth--
		}
	}
	return found
}

// tensor reads one argument, such as Tensor(a!)[] out, if its type is about memory.
func tensor(argument string) (Tensor, bool) {
	argument, _, _ = strings.Cut(argument, "=")
	argument = strings.TrimSpace(argument)
	space := max(0, strings.LastIndexByte(argument, ' '))
	base, annotation, _ := strings.Cut(strings.TrimRight(argument[:space], "?[]0123456789"), "(")
	return Tensor{Name: strings.TrimSpace(argument[space:]), Written: strings.Contains(annotation, "!")}, base == "Tensor" || base == "Storage"
}
