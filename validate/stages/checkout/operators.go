package checkout

import (
	"regexp"
	"slices"
	"strings"

	"mpsforge/validate/judge/nativefunctions"
)

// wayIn says how the dispatcher comes to a function that native_functions.yaml names.
type wayIn struct {
	guarded bool // through a generated wrapper with a guard
	bare    bool // with tensors of MPS and no guard: a composite operator, or a view
	others  bool // with tensors of other devices
}

var (
	viewReturned = regexp.MustCompile(`\([a-z]\w*\)`) // Tensor(a), and not Tensor(a!)

	// guardedKeys are the dispatch keys whose wrappers begin with a guard, except for views that write nothing.
	guardedKeys = []string{"MPS", "SparseMPS", "SparseCsrMPS"}
	// otherDevices are keys for which no tensor of MPS is dispatched: CPU, QuantizedCPU, SparseCsrMeta and so on.
	otherDevices = regexp.MustCompile(`(CPU|CUDA|HIP|XLA|MTIA|IPU|XPU|HPU|VE|Lazy|Meta|PrivateUse\d)$`)
)

// waysIn reads native_functions.yaml, by the functions' names. Overloads of operators may share one.
func waysIn(dir string) (map[string]*wayIn, error) {
	operators, err := nativefunctions.Read(dir)
	if err != nil {
		return nil, err
	}
	ways := map[string]*wayIn{}
	way := func(function string) *wayIn {
		if ways[function] == nil {
			ways[function] = &wayIn{}
		}
		return ways[function]
	}
	for _, o := range operators {
		if o.Kernels == nil && o.Delegate == "" { // one function for all devices
			function, overload, _ := strings.Cut(o.Name, ".")
			if strings.HasSuffix(overload, "out") {
				function += "_out"
			}
			way(function).bare = true
		}
		view := viewReturned.MatchString(o.Returns)
		for kernel, keys := range o.Kernels {
			for _, key := range keys {
				w := way(kernel)
				w.guarded = w.guarded || slices.Contains(guardedKeys, key) && !view
				w.others = w.others || otherDevices.MatchString(key)
				w.bare = w.bare || (view || !slices.Contains(guardedKeys, key)) && !otherDevices.MatchString(key)
			}
		}
	}
	return ways, nil
}
