package checkout

import (
	"regexp"
	"slices"
	"strings"
)

// keepers are functions, and labels of Objective-C's messages, that keep a block or a lambda for later.
var keepers = []string{"dispatch_async", "addCompletedHandler", "addScheduledHandler", "notifyListener", "notifyLocked", "block", "deallocator",
	"pthread_atfork", "push_back", "emplace_back"}

// closure is a lambda or a block in a function's text, or the destructor of a class that is declared there.
type closure struct {
	begin, open, end int    // its first sign, its braces
	given            string // the function or the label that it is an argument of
	assigned         string // the name that it is assigned to
	apart            bool   // it is a deleter or a destructor
	silent           string // what it is, if no exception may leave it
}

var (
	destructor   = regexp.MustCompile(`(~\w+)\s*\(\s*\)\s*(?:noexcept|override|\s)*$`)
	lambdaTail   = regexp.MustCompile(`(?:->[\w:<>&*,\s]+|\bmutable|\bnoexcept)$`)
	blockResult  = regexp.MustCompile(`\^[\w:*&<>\s]*$`)
	assignment   = regexp.MustCompile(`(\w+)\s*=$`)
	messageLabel = regexp.MustCompile(`(?:^|[^:])\b(\w+)\s*:$`)
	ownedPointer = regexp.MustCompile(`\b(?:shared_ptr|unique_ptr)<[^;{}]*>\s*\w*$`)
)

// closuresIn finds the lambdas and blocks of a text, by where they begin.
func closuresIn(text string) (closures []closure) {
	pairs := map[int]int{}
	walkBrackets(text, func(open opened, end int) { pairs[end] = open.at }, nil)
	walkBrackets(text, func(open opened, end int) {
		if open.bracket != '{' {
			return
		}
		if at := destructor.FindStringSubmatchIndex(text[:open.at]); at != nil {
			closures = append(closures, closure{begin: at[0], open: open.at, end: end, apart: true, silent: text[at[2]:at[3]] + " in"})
			return
		}
		begin, ok := closureBefore(text, open.at, pairs)
		if !ok {
			return
		}
		c := closure{begin: begin, open: open.at, end: end}
		before := strings.TrimRight(text[:begin], " \t\n*")
		if name := assignment.FindStringSubmatch(before); name != nil {
			c.assigned = name[1]
			c.apart = strings.Contains(strings.ToLower(c.assigned), "deleter")
		} else if label := messageLabel.FindStringSubmatch(before); label != nil {
			c.given = label[1]
		} else if at := callAround(text, begin); at >= 0 {
			c.given = unqualified(nameBefore(text, at))
			c.apart = ownedPointer.MatchString(strings.TrimRight(text[:at], " \t\n"))
		}
		if c.apart {
			c.silent = "the deleter in"
		} else if strings.HasSuffix(strings.TrimRight(text[:open.at], " \t\n"), "noexcept") {
			c.silent = "the lambda in"
		}
		closures = append(closures, c)
	}, nil)
	slices.SortFunc(closures, func(a, b closure) int { return a.begin - b.begin })
	return closures
}

// closureBefore says where the lambda or block begins whose body the brace opens.
func closureBefore(text string, brace int, pairs map[int]int) (begin int, ok bool) {
	before := strings.TrimRight(text[:brace], " \t\n")
	if tail := lambdaTail.FindStringIndex(before); tail != nil {
		before = strings.TrimRight(before[:tail[0]], " \t\n")
	}
	if at, closed := pairs[len(before)-1]; closed && strings.HasSuffix(before, ")") {
		before = strings.TrimRight(before[:at], " \t\n")
	}
	if at, closed := pairs[len(before)-1]; closed && strings.HasSuffix(before, "]") {
		return at, at == 0 || !isWord(text[at-1])
	}
	at := blockResult.FindStringIndex(before)
	if at == nil {
		return 0, false
	}
	return at[0], true
}

// callAround gives the bracket of the call that the place is an argument of, or -1.
func callAround(text string, place int) int {
	depth := 0
	for i := place - 1; i >= 0; i-- {
		switch text[i] {
		case ')', ']', '}':
			depth++
		case '(', '[', '{':
			if depth == 0 {
				if text[i] != '(' {
					return -1
				}
				return i
			}
			depth--
		case ';':
			if depth == 0 {
				return -1
			}
		}
	}
	return -1
}

// kept is whether the closure is only kept in the text, for others to run.
func (c closure) kept(text string) bool {
	if c.assigned != "" {
		words := slices.Concat(wordsIn(text[:c.begin]), wordsIn(text[c.end:]))
		first := slices.Index(words, c.assigned)
		return !slices.Contains(words[first+1:], c.assigned)
	}
	before := strings.TrimRight(text[:c.begin], " \t\n")
	return c.apart || slices.Contains(keepers, c.given) || strings.HasSuffix(before, "return")
}

var (
	tryBlock = regexp.MustCompile(`\btry\s*\{`)
	handler  = regexp.MustCompile(`^\s*catch\s*\(([^)]*)\)\s*\{`)
)

// executed blanks what no exception leaves the function from: closures that are only kept, and try blocks with catch (...). What dispatch_sync
// runs stays, as libdispatch ends the process when an exception reaches it.
func executed(text string, closures []closure) string {
	ends := map[int]int{}
	walkBrackets(text, func(open opened, end int) { ends[open.at] = end }, nil)
	hidden := make([]bool, len(text))
	type region struct {
		open int
		hide bool
	}
	var regions, kept []region
	for _, at := range tryBlock.FindAllStringIndex(text, -1) {
		if catchesAll(text, ends, ends[at[1]-1]) {
			regions = append(regions, region{at[1] - 1, true})
		}
	}
	for _, c := range closures {
		if c.kept(text) {
			kept = append(kept, region{c.open, true})
		} else if strings.HasPrefix(c.given, "dispatch_sync") {
			regions = append(regions, region{c.open, false})
		}
	}
	slices.SortFunc(regions, func(a, b region) int { return a.open - b.open }) // outer ones first
	for _, r := range append(regions, kept...) {
		for i := r.open + 1; i < ends[r.open]; i++ {
			hidden[i] = r.hide
		}
	}
	blanked := []byte(text)
	for i, hide := range hidden {
		if hide && text[i] != '\n' {
			blanked[i] = ' '
		}
	}
	return string(blanked)
}

// catchesAll is whether one of the handlers behind a try block takes every exception.
func catchesAll(text string, ends map[int]int, end int) bool {
	for {
		at := handler.FindStringSubmatchIndex(text[end+1:])
		if at == nil {
			return false
		}
		if strings.TrimSpace(text[end+1+at[2]:end+1+at[3]]) == "..." {
			return true
		}
		end = ends[end+at[1]]
	}
}
