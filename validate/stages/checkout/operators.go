package checkout

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wayIn says how the dispatcher comes to a function that native_functions.yaml names.
type wayIn struct {
	guarded bool // through a generated wrapper with a guard
	bare    bool // with tensors of MPS and no guard: a composite operator, or a view
	others  bool // with tensors of other devices
}

var (
	operatorLine = regexp.MustCompile(`^- func: (\w+)(\.\w+)?\(.*\) -> (.*)$`)
	viewReturned = regexp.MustCompile(`\([a-z]\w*\)`) // Tensor(a), and not Tensor(a!)
	kernelLine   = regexp.MustCompile(`^    ([A-Z][A-Za-z, ]*): (\w+)`)

	// guardedKeys are the dispatch keys whose wrappers begin with a guard, except for views that write nothing.
	guardedKeys = []string{"MPS", "SparseMPS", "SparseCsrMPS"}
	// otherDevices are keys for which no tensor of MPS is dispatched: CPU, QuantizedCPU, SparseCsrMeta and so on.
	otherDevices = regexp.MustCompile(`(CPU|CUDA|HIP|XLA|MTIA|IPU|XPU|HPU|VE|Lazy|Meta|PrivateUse\d)$`)
)

// waysIn reads native_functions.yaml, by the functions' names. Overloads of operators may share one.
func waysIn(dir string) (map[string]*wayIn, error) {
	file, err := os.Open(filepath.Join(dir, operatorsFile))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	ways := map[string]*wayIn{}
	way := func(function string) *wayIn {
		if ways[function] == nil {
			ways[function] = &wayIn{}
		}
		return ways[function]
	}
	composite, view := "", false // of an operator without kernels, the function that it calls for all devices
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for more := true; more; {
		more = lines.Scan()
		operator := operatorLine.FindStringSubmatch(lines.Text())
		if composite != "" && (operator != nil || !more) {
			way(composite).bare = true
		}
		kernel := kernelLine.FindStringSubmatch(lines.Text())
		switch {
		case operator != nil:
			composite, view = operator[1], viewReturned.MatchString(operator[3])
			if strings.HasSuffix(operator[2], "out") {
				composite += "_out"
			}
		case strings.HasPrefix(lines.Text(), "  dispatch:"), strings.HasPrefix(lines.Text(), "  structured_delegate:"):
			composite = ""
		case kernel != nil:
			for key := range strings.SplitSeq(kernel[1], ",") {
				key = strings.TrimSpace(key)
				w := way(kernel[2])
				w.guarded = w.guarded || slices.Contains(guardedKeys, key) && !view
				w.others = w.others || otherDevices.MatchString(key)
				w.bare = w.bare || (view || !slices.Contains(guardedKeys, key)) && !otherDevices.MatchString(key)
			}
		}
	}
	return ways, lines.Err()
}
