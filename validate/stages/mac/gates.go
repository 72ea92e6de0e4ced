package mac

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/mac"
	"mpsforge/patches"
)

// built is what the gates look at: sources compiled.
type built struct {
	objects map[string]*mac.Image // by source
}

// defines reports whether one of the objects defines a symbol that others can bind to.
func (b built) defines(name string) bool {
	for _, object := range b.objects {
		if _, ok := object.Defined[name]; ok {
			return true
		}
	}
	return false
}

// lost are the symbols that a library of the wheel exports, that stock's sources define, and patched ones do not. Those of inline functions
// and templates do not count: whoever uses one has it compiled for itself.
func lost(stock, patched built, libraries []*mac.Image) (names []string, kept int) {
	for _, object := range stock.objects {
		for name, weak := range object.Defined {
			exported := slices.ContainsFunc(libraries, func(library *mac.Image) bool { _, ok := library.Defined[name]; return ok })
			switch {
			case weak || !exported:
			case patched.defines(name):
				kept++
			default:
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), kept
}

// plainIntegers are names as on both systems: int64_t is long long on macOS, and long on Linux, where lost_symbols was written.
func plainIntegers(name string) string { return strings.ReplaceAll(name, "long long", "long") }

// unexplained are the lost names without a reason, and the reasons of mac.json that nothing needs.
func unexplained(lost []string, facts patches.MacFacts, classes patches.HostFacts) (problems []string) {
	reasons := map[string]bool{}
	for name := range facts.Lost {
		reasons[plainIntegers(name)] = true
		if !slices.Contains(lost, name) {
			problems = append(problems, name+" is listed under lost in mac.json, but is not lost")
		}
	}
	for name := range classes.LostSymbols {
		reasons[plainIntegers(name)] = true
	}
	for _, name := range lost {
		if !reasons[plainIntegers(name)] {
			problems = append(problems, name)
		}
	}
	return problems
}

// unlisted are the bound names that mac.json does not list, and those that it lists for nothing.
func unlisted(bound []string, listed []string) (problems []string) {
	for _, name := range bound {
		if !slices.Contains(listed, name) {
			problems = append(problems, name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(bound, name) {
			problems = append(problems, name+" is listed under bound in mac.json, but is not bound")
		}
	}
	return problems
}

// table is a comparison of one class's virtual functions.
type table struct {
	Class   string // its mangled name
	Problem string
	Slots   int // in the wheel
	Named   int // of these with a name on both sides
}

// tables compares the tables of virtual functions of the backend's classes with those in the wheel's data.
func tables(b built, wheel *mac.Image) (all []table, err error) {
	seen := map[string]bool{}
	for _, source := range slices.Sorted(maps.Keys(b.objects)) {
		object := b.objects[source]
		for _, name := range slices.Sorted(maps.Keys(object.Vtables())) {
			// A class of a function or of a namespace without a name is nobody else's.
			if _, inWheel := wheel.Vtables()[name]; !inWheel || seen[name] || !strings.HasPrefix(name, "__ZTVN2at") || strings.Contains(name, "_GLOBAL__N_1") {
				continue
			}
			seen[name] = true
			before, err := wheel.Vtable(name)
			if err != nil {
				return nil, err
			}
			after, err := object.Vtable(name)
			if err != nil {
				return nil, err
			}
			t := table{Class: "__Z" + strings.TrimPrefix(name, "__ZTV"), Slots: len(before)}
			t.Problem, t.Named = mac.CompareVtables(before, after)
			all = append(all, t)
		}
	}
	return all, nil
}

// layouts says how classes changed that extensions are built with.
func layouts(stock, patched []host.Layout) (details []string, fits bool) {
	fits = true
	for _, before := range stock {
		detail, same := "the class is gone", false
		if i := slices.IndexFunc(patched, func(l host.Layout) bool { return l.Class == before.Class }); i >= 0 {
			detail, same = host.CompareLayouts(before, patched[i])
		}
		if !same {
			fits = false
			details = append(details, fmt.Sprintf("%s: %s", before.Class, detail))
		}
	}
	return details, fits && len(stock) > 0
}
