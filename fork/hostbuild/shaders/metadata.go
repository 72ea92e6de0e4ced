package shaders

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// argument is one of a kernel, by its metadata.
type argument struct {
	kind     string // buffer, or what the thread is given: thread_position_in_grid
	location int
	space    int // 1 device, 2 constant, 3 threadgroup
	writes   bool
	size     int // of the type, 0: not known
	typeName string
	name     string
}

var metadataLine = regexp.MustCompile(`^(!\d+) = (?:distinct )?!\{(.*)\}$`)

// metadata holds the numbered nodes of a module.
type metadata map[string][]string

func (m metadata) add(line string) {
	if found := metadataLine.FindStringSubmatch(line); found != nil {
		m[found[1]] = splitList(found[2])
	}
}

// arguments gives those of the kernel whose entry in !air.kernel the node is, and its function's name.
func (m metadata) arguments(node string) (function string, all []argument, err error) {
	entry := m[node]
	if len(entry) < 3 {
		return "", nil, fmt.Errorf("metadata %s belongs to no kernel", node)
	}
	function = strings.TrimPrefix(entry[0], "ptr ")
	for place, reference := range m[entry[2]] {
		fields := m[reference]
		if len(fields) < 2 {
			return "", nil, fmt.Errorf("argument %d of %s has no metadata", place, function)
		}
		var a argument
		if a.kind, err = strconv.Unquote(strings.TrimPrefix(fields[1], "!")); err != nil {
			return "", nil, fmt.Errorf("argument %d of %s: %s: %w", place, function, fields[1], err)
		}
		a.kind = strings.TrimPrefix(a.kind, "air.")
		if a.kind == "indirect_buffer" {
			a.kind = "buffer"
		}
		for i := 2; i < len(fields); i++ {
			following := func() string {
				if i+1 < len(fields) {
					return strings.Trim(strings.TrimPrefix(strings.TrimPrefix(fields[i+1], "i32 "), "!"), `"`)
				}
				return ""
			}
			number := func() int {
				n, _ := strconv.Atoi(following()) // 0 where there is none
				return n
			}
			switch fields[i] {
			case `!"air.location_index"`:
				a.location = number()
			case `!"air.address_space"`:
				a.space = number()
			case `!"air.read_write"`, `!"air.write"`:
				a.writes = true
			case `!"air.arg_type_size"`:
				a.size = number()
			case `!"air.arg_type_name"`:
				a.typeName = following()
			case `!"air.arg_name"`:
				a.name = following()
			}
		}
		all = append(all, a)
	}
	return function, all, nil
}
