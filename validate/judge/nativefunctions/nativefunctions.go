// Package nativefunctions reads native_functions.yaml, PyTorch's list of its operators
// (https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md says what each entry means).
package nativefunctions

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Operator is one entry.
type Operator struct {
	Name     string              // with its overload, such as add.out
	Returns  string              // as the file has it, such as Tensor(a!)
	Kernels  map[string][]string // the dispatch keys of each kernel; nil where the entry says nothing of dispatch
	Delegate string              // the operator whose structured kernel it uses; empty if none
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
		name, _, _ := strings.Cut(entry.Func, "(")
		at := strings.LastIndex(entry.Func, " -> ")
		if at < 0 {
			return nil, fmt.Errorf("native_functions.yaml: %q returns nothing: not a schema", entry.Func)
		}
		one := Operator{Name: name, Returns: entry.Func[at+len(" -> "):], Delegate: entry.Delegate}
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
