package checkout

import (
	"regexp"
	"slices"
	"strings"
)

// body is a function of the runtime, as the check of noexcept functions reads it.
type body struct {
	file, class, name string
	line              int
	silent            bool // no exception may leave it
	local             bool // no other file can call it
	stock             bool // the baseline's file has the same text
	faults            []fault
	calls             []call
	forkCheck         int // where it first asks whether this is a forked child, else its end
}

// call is a use of a function in a text.
type call struct {
	name      string
	object    string // of a method's call: the last name before the dot or the arrow; "?" if there is none
	qualifier string // in front of ::
	declares  bool   // it may be the type of a variable
	at        int
}

var (
	classHead  = regexp.MustCompile(`\b(?:struct|class)\s+(?:\w+_API\s+)?(\w+)[^;()]*$`)
	noexceptIn = regexp.MustCompile(`\)[^()]*\bnoexcept\b(?:\s*\(\s*(\w+)\s*\))?`)
	askForFork = regexp.MustCompile(`\b(?:isInForkedChild|checkNotForked)\s*\(`)
)

// silentByCaller are functions that others call where no exception may leave them.
var silentByCaller = []string{
	"exchangeStream",    // by the destructors of c10's stream guards
	"Delete",            // by DataPtr's destructor
	"hasPrimaryContext", // by the backward pass of programs that do not use MPS
}

// bodiesOf reads the functions of one file. before is the baseline's text of it.
func bodiesOf(file, source, before string, n *names) (bodies []*body) {
	text := blankLiterals(source)
	type scope struct {
		begin, end int
		class      string // "": a namespace without a name
	}
	var scopes []scope
	var functions []opened
	ends := map[int]int{}
	walkBrackets(text, func(open opened, end int) {
		head := headOf(text, open)
		ends[open.at] = end
		if open.bracket != '{' {
			return
		}
		if open.name != "" {
			functions = append(functions, open)
		} else if class := classHead.FindStringSubmatch(head); class != nil {
			scopes = append(scopes, scope{open.at, end, class[1]})
		} else if strings.HasSuffix(strings.TrimSpace(head), "namespace") {
			scopes = append(scopes, scope{open.at, end, ""})
		}
	}, nil)
	for _, open := range functions {
		head := headOf(text, open)
		begin := open.at - len(strings.TrimLeft(head, " \t\n"))
		end := ends[open.at] + 1
		b := &body{file: file, line: 1 + strings.Count(text[:open.at], "\n"), name: unqualified(open.name),
			local: slices.Contains(strings.Fields(head), "static"), stock: strings.Contains(before, source[begin:end])}
		if qualifier := strings.TrimSuffix(strings.TrimSuffix(open.name, b.name), "::"); qualifier != "" {
			b.class = unqualified(qualifier)
		}
		for _, s := range scopes { // inner ones first
			if s.begin < open.at && open.at < s.end {
				b.local = b.local || s.class == ""
				if b.class == "" {
					b.class = s.class
				}
			}
		}
		said := noexceptIn.FindStringSubmatch(head)
		b.silent = strings.HasPrefix(b.name, "~") || slices.Contains(silentByCaller, b.name) || said != nil && said[1] != "false"
		inside := text[open.at:end]
		closures := closuresIn(inside)
		bodies = append(bodies, b.read(executed(inside, closures), n))
		if strings.Contains(head, "std::function<") {
			b.faults = append(b.faults, fault{what: "allocates: std::function of what its caller gives", line: b.line})
		}
		for _, c := range closures {
			if c.silent != "" {
				own := &body{file: file, class: b.class, name: c.silent + " " + b.name, line: b.line + strings.Count(inside[:c.open], "\n"),
					silent: true, stock: b.stock}
				inner := inside[c.open : c.end+1]
				bodies = append(bodies, own.read(executed(inner, closuresIn(inner)), n))
			}
		}
	}
	return bodies
}

// read takes what the executed text of the function may raise, and what it calls.
func (b *body) read(text string, n *names) *body {
	b.faults, b.calls, b.forkCheck = faultsIn(text, b.line, n), callsOf(text), len(text)
	if at := askForFork.FindStringIndex(text); at != nil {
		b.forkCheck = at[0]
	}
	return b
}

// callsOf gives what may be a call in a text.
func callsOf(text string) (calls []call) {
	pairs := map[int]int{}
	walkBrackets(text, func(open opened, end int) { pairs[end] = open.at }, nil)
	walkBrackets(text, nil, func(at, end int, _ []opened) {
		before, after := strings.TrimRight(text[:at], " \t\n"), strings.TrimLeft(text[end:], " \t\n")
		if after == "" {
			return
		}
		c := call{name: text[at:end], at: at, declares: isWord(after[0])}
		if !c.declares && !strings.ContainsRune("(<{", rune(after[0])) && text[at-1] != '&' {
			return
		}
		object := strings.TrimSuffix(strings.TrimSuffix(before, "."), "->")
		switch {
		case strings.HasSuffix(before, "~"):
			c.name = "~" + c.name
		case strings.HasSuffix(before, "::"):
			c.qualifier = unqualified(nameBefore(text, len(before)-2))
			if c.qualifier == "" {
				c.qualifier = "?" // of a template, or of none
			}
		case object != before:
			if open, ok := pairs[len(object)-1]; ok {
				object = text[:open]
			}
			if c.object = unqualified(nameBefore(object, len(object))); c.object == "" {
				c.object = "?"
			}
		}
		calls = append(calls, c)
	})
	return calls
}
