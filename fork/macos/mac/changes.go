package mac

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"mpsforge/patches"
)

// Change is a name that two wheels do not have alike.
type Change struct {
	Kind    string   `json:"kind"` // export, virtual functions, selector, class or binding
	Name    string   `json:"name"`
	What    string   `json:"what"`     // new, gone or other parameters; of a class or table which functions are
	NamedBy []string `json:"named_by"` // patches, and mac.json for what overlays take from the wheel
}

const (
	isNew   = "new"
	isGone  = "gone"
	isOther = "other parameters"
)

// Changes compares what two wheels say of their MPS backends, as far as it touches a series: a patch names a function or its class on a line
// of C++ that it adds or takes away, a selector, a class of Objective-C or one with virtual functions on any line of its hunks; or bound names it, which
// lists what overlays take from the wheel.
func Changes(before, after *WheelFacts, series *patches.Series, bound []string) []Change {
	changes := []Change{}
	add := func(kind, name, what string, by []string) {
		if slices.ContainsFunc(bound, func(one string) bool { return strings.HasPrefix(one, name+"(") }) {
			by = append(by, "mac.json")
		}
		if len(by) > 0 {
			changes = append(changes, Change{kind, name, what, by})
		}
	}
	naming := namingOf(series)
	members := map[string]map[string]string{}
	for name, what := range exportChanges(before.Exports, after.Exports) {
		class, function := splitName(name)
		if class == "" {
			add("export", name, what, naming.word(function))
			continue
		}
		if members[class] == nil {
			members[class] = map[string]string{}
		}
		members[class][function] = what
	}
	for class, what := range members {
		add("export", class, inWords(what), naming.word(path.Base(strings.ReplaceAll(class, "::", "/"))))
	}
	for _, table := range slices.Sorted(maps.Keys(before.Vtables)) {
		class, _ := nestedName(strings.Replace(table, vtablePrefix, "__Z", 1))
		if what := tableChange(before.Vtables[table], after.Vtables[table], class); what != "" {
			add("virtual functions", strings.Join(class, "::"), what, naming.anywhere(class[len(class)-1]))
		}
	}
	for name, what := range difference(before.Selectors, after.Selectors) {
		add("selector", name, what, naming.selector(name))
	}
	for name, what := range difference(before.Classes, after.Classes) {
		add("class", name, what, naming.anywhere(name))
	}
	for name, what := range difference(before.Bindings, after.Bindings) {
		add("binding", name, what, naming.word(name))
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name)) })
	return changes
}

// exportChanges says how names differ: one name may have several functions.
func exportChanges(before, after map[string][]string) map[string]string {
	functions := func(exports map[string][]string) map[string][]string {
		named := map[string][]string{}
		for _, symbol := range slices.Sorted(maps.Keys(merged(exports))) {
			name := symbol
			if parts, _ := nestedName(symbol); len(parts) > 0 {
				name = strings.Join(parts, "::")
			}
			named[name] = append(named[name], symbol)
		}
		return named
	}
	old, new := functions(before), functions(after)
	found := difference(slices.Collect(maps.Keys(old)), slices.Collect(maps.Keys(new)))
	for name, symbols := range old {
		if found[name] == "" && !slices.Equal(symbols, new[name]) {
			found[name] = isOther
		}
	}
	return found
}

// merged are the names of all libraries.
func merged(exports map[string][]string) map[string]bool {
	all := map[string]bool{}
	for _, names := range exports {
		for _, name := range names {
			all[name] = true
		}
	}
	return all
}

// difference says which names only one of two lists has.
func difference(before, after []string) map[string]string {
	found := map[string]string{}
	for _, name := range after {
		found[name] = isNew
	}
	for _, name := range before {
		if slices.Contains(after, name) {
			delete(found, name)
		} else {
			found[name] = isGone
		}
	}
	return found
}

// tableChange says what is not as before of a class's table of virtual functions. Where the linker has put equal functions together a slot has the
// names of all of them: those of the class itself count, else the name of a slot that has only one.
func tableChange(before, after [][]string, class []string) string {
	if len(after) == 0 {
		return isGone
	}
	functions := func(table [][]string) (sure, all map[string]string) { // how a function differs from others, to its name
		sure, all = map[string]string{}, map[string]string{}
		for _, slot := range table {
			for _, symbol := range slot {
				parts, rest := nestedName(symbol)
				key := virtualName(symbol) + rest
				if all[key] = virtualName(symbol); len(slot) == 1 || len(parts) > 0 && slices.Equal(parts[:len(parts)-1], class) {
					sure[key] = all[key]
				}
			}
		}
		return sure, all
	}
	sureBefore, allBefore := functions(before)
	sureAfter, allAfter := functions(after)
	changed := map[string]string{}
	for key, name := range sureBefore {
		if allAfter[key] == "" && !strings.HasPrefix(name, "destructor") {
			changed[name] = isGone
		}
	}
	for key, name := range sureAfter {
		if allBefore[key] != "" || strings.HasPrefix(name, "destructor") {
			continue
		}
		if changed[name] == isGone {
			changed[name] = isOther
		} else {
			changed[name] = isNew
		}
	}
	if len(before) == len(after) && len(changed) == 0 {
		if problem, _ := CompareVtables(before, after); problem != "" {
			return "in another order"
		}
		return ""
	}
	what := fmt.Sprintf("%d functions, %d before", len(after), len(before))
	if len(changed) > 0 {
		what += "; " + inWords(changed)
	}
	return what
}

// inWords lists what became of functions.
func inWords(changed map[string]string) string {
	var what []string
	for _, kind := range []string{isNew, isGone, isOther} {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(changed)) {
			if changed[name] == kind {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			what = append(what, kind+": "+strings.Join(names, ", "))
		}
	}
	return strings.Join(what, "; ")
}

// splitName parts a function's name from its class; class is empty for a function in one of the backend's namespaces.
func splitName(name string) (class, function string) {
	at := strings.LastIndex(name, "::")
	if at < 0 {
		return "", name
	}
	class, function = name[:at], name[at+2:]
	if slices.Contains([]string{"c10", "at", "at::mps", "at::native", "at::native::mps", "at::mps::detail"}, class) {
		return "", function
	}
	return class, function
}

// naming is what the patches of a series say in C++ and Objective-C.
type naming []named

type named struct {
	patch string
	words map[string]bool // on lines that it adds or takes away
	text  string          // of all lines, and of the headings that git gives hunks
}

var (
	identifier = regexp.MustCompile(`[A-Za-z_]\w+`)
	remark     = regexp.MustCompile(`//.*`)
)

func namingOf(series *patches.Series) naming {
	all := make(naming, len(series.Patches))
	for i, patch := range series.Patches {
		one := &all[i]
		one.patch, one.words = patch.Name, map[string]bool{}
		var text strings.Builder
		for _, file := range patch.Files {
			if !slices.Contains([]string{".h", ".mm", ".cpp"}, path.Ext(file.Path())) {
				continue
			}
			for _, hunk := range file.TextFragments {
				fmt.Fprintln(&text, hunk.Comment)
				for _, line := range hunk.Lines {
					code := remark.ReplaceAllString(line.Line, "")
					text.WriteString(code)
					if line.Op == gitdiff.OpContext {
						continue
					}
					for _, word := range identifier.FindAllString(code, -1) {
						one.words[word] = true
					}
				}
			}
		}
		one.text = text.String()
	}
	return all
}

// word gives the patches that add or take away a line with a word.
func (n naming) word(word string) []string {
	return n.where(func(one named) bool { return one.words[word] })
}

// anywhere gives the patches with a word on any line.
func (n naming) anywhere(word string) []string {
	whole := regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`)
	return n.where(func(one named) bool { return whole.MatchString(one.text) })
}

// selector gives the patches with a message of that name, or something much like one, on any line.
func (n naming) selector(name string) []string {
	ends := strings.SplitAfter(name, ":")
	if ends = ends[:len(ends)-1]; len(ends) == 0 {
		ends = []string{" " + name + "]"}
	}
	return n.where(func(one named) bool {
		return !slices.ContainsFunc(ends, func(end string) bool { return !strings.Contains(one.text, end) })
	})
}

func (n naming) where(is func(named) bool) []string {
	by := []string{}
	for _, one := range n {
		if is(one) {
			by = append(by, one.patch)
		}
	}
	return by
}
