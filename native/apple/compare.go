package apple

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Own are the declarations of ours that Apple does not have, or has otherwise, each with its reason, by the name that Compare gives
// them.
func Own() (map[string]string, error) {
	reasons := map[string]string{}
	for i, line := range strings.Split(own, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		name, reason, found := strings.Cut(line, "\t")
		if !found || reason == "" || reasons[name] != "" {
			return nil, fmt.Errorf("own.tsv:%d: %q has no reason, or is there twice", i+1, name)
		}
		reasons[name] = reason
	}
	return reasons, nil
}

// Compare names what the headers declare and Apple's table does not have so, with what is wrong.
func Compare(headers *Headers, apple *Table) map[string]string {
	found := map[string]string{}
	differ := func(name, what, ours, theirs string) {
		found[name] = fmt.Sprintf("%s %s here, %s in Apple's API", what, ours, theirs)
	}
	for name, t := range headers.Types {
		theirs := apple.Types[name]
		if theirs == nil || theirs.Kind != t.Kind {
			found[name] = "no such " + t.Kind + " in Apple's API"
			continue
		}
		if t.Super != theirs.Super {
			differ(name+" superclass", "is", t.Super, theirs.Super)
		}
		for _, p := range t.Protocols {
			if !apple.conforms(name, p) {
				found[name+" <"+p+">"] = "Apple's does not conform to it"
			}
		}
		for selector, m := range t.Methods {
			where := name + " " + selector
			a := apple.method(name, selector)
			if a == nil {
				found[where] = "no such method in Apple's API"
				continue
			}
			if problem := signature(name, m.Result, m.Args, a.Result, a.Args); problem != "" {
				found[where] = problem
			}
		}
	}
	for name, e := range headers.Enums {
		if theirs := apple.Enums[name]; theirs == nil {
			found["enum "+name] = "no such enum in Apple's API"
		} else if theirs.Underlying != e.Underlying {
			differ("enum "+name, "is of", e.Underlying, theirs.Underlying)
		}
	}
	for name, value := range headers.Constants {
		if theirs, known := apple.Constants[name]; !known {
			found[name] = fmt.Sprintf("no such constant in Apple's API; it is %d here", value)
		} else if theirs != value {
			differ(name, "is", fmt.Sprint(value), fmt.Sprint(theirs))
		}
	}
	for name, s := range headers.Structs {
		if theirs := apple.Structs[name]; theirs == nil {
			// A second name of a structure that is known.
			if !headers.sameStruct(s, apple) {
				found["struct "+name] = "no such structure in Apple's API"
			}
		} else if ours, wanted := plain(strings.Join(s.Fields, " ")), plain(strings.Join(theirs.Fields, " ")); ours != wanted {
			differ("struct "+name, "has", ours, wanted)
		}
	}
	for name, f := range headers.Functions {
		where := name + "()"
		if theirs := apple.Functions[name]; theirs == nil {
			found[where] = "no such function in Apple's API"
		} else if problem := signature("", f.Result, f.Args, theirs.Result, theirs.Args); problem != "" {
			found[where] = problem
		}
	}
	return found
}

// Unexplained leaves out what is listed as our own, and adds what is listed and is not there any more.
func Unexplained(found, reasons map[string]string) []string {
	var all []string
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		explained := false
		for reason := range reasons {
			if stem, family := strings.CutSuffix(reason, "*"); reason == name || family && strings.HasPrefix(name, stem) {
				explained, used[reason] = true, true
			}
		}
		if !explained {
			all = append(all, name+": "+found[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !used[name] {
			all = append(all, name+": listed in own.tsv, but there is no difference any more")
		}
	}
	return all
}

// WrongMarks names the methods of the table that are marked as declared nowhere and are declared, or the other way round. Methods of
// types whose names the headers do not have are not looked at.
func WrongMarks(headers *Headers, apple *Table) []string {
	selectors := map[string]bool{}
	for _, t := range headers.Types {
		for selector := range t.Methods {
			selectors[selector[1:]] = true
		}
	}
	var all []string
	for name, t := range apple.Types {
		for selector, m := range t.Methods {
			if declared := selectors[selector[1:]]; declared == m.Undeclared {
				all = append(all, fmt.Sprintf("%s %s: declared in our headers: %v; the mark u in the table contradicts that", name, selector, declared))
			}
		}
	}
	slices.Sort(all)
	return all
}

func (h *Headers) sameStruct(s *Struct, apple *Table) bool {
	for name, other := range h.Structs {
		if other == s && apple.Structs[name] != nil {
			return true
		}
	}
	return false
}

// method finds what a type, its superclass or its protocols have.
func (t *Table) method(name, selector string) *Method {
	for found := t.Types[name]; found != nil; found = t.Types[found.Super] {
		if m := found.Methods[selector]; m != nil {
			return m
		}
		for _, p := range found.Protocols {
			if m := t.method(p, selector); m != nil {
				return m
			}
		}
	}
	return nil
}

func (t *Table) conforms(name, protocol string) bool {
	for found := t.Types[name]; found != nil; found = t.Types[found.Super] {
		for _, p := range found.Protocols {
			if p == protocol || t.conforms(p, protocol) {
				return true
			}
		}
	}
	return false
}

var constness = regexp.MustCompile(`\^[cm]:`)

// plain is a type without what the table's sources do not say everywhere: const.
func plain(text string) string {
	text = strings.ReplaceAll(constness.ReplaceAllString(text, "^"), "{_", "{")
	return strings.ReplaceAll(text, "CFTypeRef", "^v")
}

// signature compares results and arguments. self means the class itself.
func signature(class, result string, args []string, theirResult string, theirArgs []string) string {
	ours, theirs := append([]string{result}, args...), append([]string{theirResult}, theirArgs...)
	if len(ours) != len(theirs) {
		return fmt.Sprintf("%d arguments here, %d in Apple's API", len(ours)-1, len(theirs)-1)
	}
	for i := range ours {
		one, other := plain(ours[i]), plain(theirs[i])
		if one == other || class != "" && strings.ReplaceAll(one, "@self", "@"+class) == strings.ReplaceAll(other, "@self", "@"+class) {
			continue
		}
		what := "returns"
		if i > 0 {
			what = fmt.Sprintf("argument %d is", i)
		}
		return fmt.Sprintf("%s %s here, %s in Apple's API", what, ours[i], theirs[i])
	}
	return ""
}
