package checkout

import (
	"regexp"
	"slices"
	"strings"
)

// function is a function of the backend that has a body.
type function struct {
	file  string
	line  int
	name  string          // without namespaces and classes; of TORCH_IMPL_FUNC(NAME) the NAME
	local bool            // declared static: no other file can call it
	calls map[string]bool // what its body calls, or hands to another function by a name that begins an argument
}

// macroUse is a macro between functions, in capitals, with its arguments: a registration, or one that defines a function.
var macroUse = regexp.MustCompile(`\b([A-Z][A-Z0-9_]+)\(\s*&?(\w+)([^()]*)\)`)

// functionsOf finds the functions of one file, whose text has no comments, no strings and no macros any more. REGISTER_DISPATCH(stub, &kernel)
// and its like count as a function stub that calls kernel. What is written is counted in mentioned.
func functionsOf(file, text string, mentioned map[string]int) (functions []*function) {
	for _, word := range wordsIn(text) {
		mentioned[word]++
	}
	outside := []byte(text)
	walkBrackets(text, func(open opened, end int) {
		if open.bracket != '{' || open.name == "" {
			return
		}
		body := text[open.at : end+1]
		functions = append(functions, &function{file: file, line: 1 + strings.Count(text[:open.at], "\n"), name: unqualified(open.name),
			local: slices.Contains(strings.Fields(headOf(text, open)), "static"), calls: callsIn(body)})
		for i := open.at; i <= end; i++ {
			if outside[i] != '\n' {
				outside[i] = ' '
			}
		}
	}, nil)
	for _, at := range macroUse.FindAllSubmatchIndex(outside, -1) {
		if strings.HasPrefix(text[at[2]:at[3]], "DECLARE_") {
			continue
		}
		use := &function{file: file, line: 1 + strings.Count(text[:at[2]], "\n"), name: text[at[4]:at[5]], calls: map[string]bool{text[at[2]:at[3]]: true}}
		for _, argument := range wordsIn(text[at[6]:at[7]]) {
			use.calls[argument] = true
		}
		functions = append(functions, use)
	}
	return functions
}

// unqualified gives a name without namespaces and classes.
func unqualified(name string) string {
	return name[strings.LastIndexByte(name, ':')+1:]
}

// headOf gives the text in front of a function's body, back to the end of what is before the function.
func headOf(text string, body opened) string {
	return text[strings.LastIndexAny(text[:body.at], ";{}")+1 : body.at]
}

// walkBrackets reads a text without comments and strings. It calls closed for each pair of brackets, inner pairs first, and word for
// each word with the brackets that are open there. Either may be nil.
func walkBrackets(text string, closed func(open opened, end int), word func(begin, end int, within []opened)) {
	var stack []opened
	pairs := map[int]opened{} // by the place of the closing bracket
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '(' || c == '[':
			stack = append(stack, opened{bracket: c, at: i, name: calledAt(text, i, pairs)})
		case c == '{':
			stack = append(stack, bodyAt(text, i, stack, pairs))
		case c == ')' || c == ']' || c == '}':
			if len(stack) > 0 {
				pairs[i] = stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if closed != nil {
					closed(pairs[i], i)
				}
			}
		case isWord(c):
			end := wordEnd(text, i)
			if word != nil {
				word(i, end, stack)
			}
			i = end - 1
		}
	}
}

// wordEnd gives the end of the word that begins at begin.
func wordEnd(text string, begin int) int {
	for begin < len(text) && isWord(text[begin]) {
		begin++
	}
	return begin
}

// wordsIn gives the words of a text in their order.
func wordsIn(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r > 127 || !isWord(byte(r)) })
}

// calledAt gives the name in front of the bracket at i. A structured kernel is defined by TORCH_IMPL_FUNC(NAME)(parameters).
func calledAt(text string, i int, pairs map[int]opened) string {
	before := strings.TrimRight(text[:i], " \t\n")
	if macro, ok := pairs[len(before)-1]; ok && macro.name == "TORCH_IMPL_FUNC" {
		return strings.TrimSpace(text[macro.at+1 : len(before)-1])
	}
	return nameBefore(text, i)
}

// callsIn gives the names in front of brackets, template arguments between them or not, and those of which an address is taken.
func callsIn(text string) map[string]bool {
	calls := map[string]bool{}
	for i := 0; i < len(text); i++ {
		if !isWord(text[i]) {
			continue
		}
		begin := i
		dispatched := strings.HasSuffix(text[:i], "at::") // by the dispatcher, to a wrapper
		i = wordEnd(text, begin)
		after := strings.TrimLeft(text[i:], " \t\n")
		if dispatched {
			continue
		}
		if strings.HasPrefix(after, "(") || strings.HasPrefix(after, "<") || strings.HasPrefix(after, "{") || text[begin-1] == '&' {
			calls[text[begin:i]] = true
		}
		// A guard is the type of a variable; a stub is handed to a template.
		if text[begin:i] == guardType || strings.HasSuffix(text[begin:i], "_stub") {
			calls[text[begin:i]] = true
		}
	}
	return calls
}
