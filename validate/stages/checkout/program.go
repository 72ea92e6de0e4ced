package checkout

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// program is all that the check of noexcept functions reads.
type program struct {
	bodies  []*body
	byName  map[string][]*body
	classes map[string]bool
	types   map[string][]string // the classes of variables, members and results, by their names
}

// standardMethods are names that types of the standard library have, too: a call on an object of no known class says nothing of whose they are.
var standardMethods = []string{"get", "find", "reset", "release", "wait", "lock", "unlock", "erase", "insert", "clear", "size", "push", "pop", "free",
	"add", "keep", "notify", "stream", "begin", "end"}

// readProgram reads the texts of files by their names. stock gives the baseline's text of a file, or none.
func readProgram(sources map[string]string, stock func(file string) (string, error)) (*program, error) {
	p := &program{byName: map[string][]*body{}, classes: map[string]bool{}, types: map[string][]string{}}
	headers := &names{}
	for file, source := range sources {
		if strings.HasSuffix(file, ".h") {
			headers.read(blankLiterals(source))
		}
	}
	for file, source := range sources {
		n := headers.and(blankLiterals(source))
		before, err := stock(file)
		if err != nil {
			return nil, err
		}
		p.bodies = append(p.bodies, bodiesOf(file, source, before, n)...)
	}
	slices.SortFunc(p.bodies, func(a, b *body) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
	for _, b := range p.bodies {
		p.byName[b.name] = append(p.byName[b.name], b)
		if b.class != "" {
			p.classes[b.class] = true
		}
	}
	for _, pattern := range []*regexp.Regexp{declared, deduced} {
		for _, file := range slices.Sorted(maps.Keys(sources)) {
			p.readTypes(pattern, blankLiterals(sources[file]))
		}
	}
	return p, nil
}

var (
	declared = regexp.MustCompile(`\b(?P<class>\w+)(?:<[^;{}()]*>)?(?:[&*\s]|\bconst\b)*[&*\s](?P<name>\w+)\s*[;,=({)\[:]`)
	deduced  = regexp.MustCompile(`\bauto(?:[&*\s]|\bconst\b)*[&*\s](?P<name>\w+)\s*=\s*[&*]?(?P<class>\w+)(?:::|\()`)
)

// readTypes notes which names a text gives a class of the sources, in words or, with auto, by the class of what they are made from.
func (p *program) readTypes(pattern *regexp.Regexp, text string) {
	for _, at := range pattern.FindAllStringSubmatch(text, -1) {
		name, from := at[pattern.SubexpIndex("name")], at[pattern.SubexpIndex("class")]
		if p.classes[from] {
			p.types[name] = append(p.types[name], from)
		} else { // what a function gives
			p.types[name] = append(p.types[name], p.types[from]...)
		}
	}
}

// called gives the functions that a call in b may mean.
func (p *program) called(b *body, c call) []*body {
	var all []*body
	for _, one := range p.byName[c.name] {
		if !one.local || one.file == b.file {
			all = append(all, one)
		}
	}
	of := func(classes ...string) (found []*body) {
		for _, one := range all {
			if slices.Contains(classes, one.class) {
				found = append(found, one)
			}
		}
		return found
	}
	isStandard := slices.Contains(standardMethods, c.name)
	switch {
	case len(all) == 0 || c.qualifier == "std":
		return nil
	case c.declares:
		return of(c.name) // constructors
	case p.classes[c.qualifier]:
		return of(c.qualifier)
	case c.qualifier != "":
		return of("", c.name)
	case c.object == "":
		if own := of("", b.class, c.name); len(own) > 0 || isStandard {
			return own
		}
		if b.class == "" {
			return nil // a variable's
		}
		return all // a base's
	}
	classes := p.types[c.object]
	if c.object == "this" {
		classes = []string{b.class}
	}
	if own := of(classes...); len(own) > 0 || isStandard {
		return own
	}
	return all
}

// escape is a function that no exception may leave, and a fault that it reaches.
type escape struct {
	*body
	way   []string // the functions on the way
	where *body    // the last of them
	fault fault
	stock bool // all of them are as in the baseline
}

// first is what the function calls on the way, or its own fault.
func (e escape) first() string {
	if len(e.way) > 1 {
		return e.way[1]
	}
	return fmt.Sprint(e.fault.line)
}

// weight orders the faults that one call reaches: those that are harmless, the baseline's, the series' in a forked child, the series' anywhere.
func (e escape) weight() int {
	switch {
	case e.harmless() != "":
		return 0
	case e.stock:
		return 1
	case e.fault.fork:
		return 2
	}
	return 3
}

// step is a function on a way, and what is known there.
type step struct {
	b       *body
	stock   bool // and all before it
	checked bool // this is no forked child
}

// reached gives the faults that a function reaches. A silent function on a way is judged on its own.
func (p *program) reached(start *body) (found []escape) {
	from := map[step]step{}
	first := step{b: start, stock: start.stock}
	from[first] = step{}
	found = first.faults(found, from)
	for open := []step{first}; len(open) > 0; open = open[1:] {
		at := open[0]
		for _, c := range at.b.calls {
			for _, b := range p.called(at.b, c) {
				next := step{b, at.stock && b.stock, at.checked || c.at > at.b.forkCheck}
				if _, seen := from[next]; b.silent || seen {
					continue
				}
				from[next] = at
				open = append(open, next)
				found = next.faults(found, from)
			}
		}
	}
	return found
}

// faults adds those of the function at this step: of all that a call of the first function reaches the weightiest.
func (s step) faults(found []escape, from map[step]step) []escape {
	var way []string
	start := s
	for at := s; at.b != nil; at = from[at] {
		way = append([]string{at.b.name}, way...)
		start = at
	}
	for _, f := range s.b.faults {
		if f.fork && (s.checked || f.at > s.b.forkCheck) {
			continue
		}
		one := escape{start.b, way, s.b, f, s.stock}
		if i := slices.IndexFunc(found, func(other escape) bool { return other.first() == one.first() }); i < 0 {
			found = append(found, one)
		} else if one.weight() > found[i].weight() {
			found[i] = one
		}
	}
	return found
}
