package checkout

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// macro is one definition of a macro.
type macro struct {
	takes      bool // it has a list of parameters
	parameters []string
	text       string // in one line
}

// macros are the definitions in force, by name. A name has several where a file defines it in the branches of an #if: all of them count.
type macros map[string][]macro

var (
	directive  = regexp.MustCompile(`(?m)^[ \t]*#(?:.*\\\n)*.*`)
	definition = regexp.MustCompile(`(?s)^\s*#\s*(define|undef)\s+(\w+)(\([^()]*\))?(.*)`)
	pasting    = regexp.MustCompile(`\s*##\s*`)
)

// expandMacros writes out the macros that a text without comments and strings uses: those of its headers, and its own from their definition
// on, which it returns too. Directives become blanks. What a macro makes is in the line where its use begins, and all lines stay where they are.
func expandMacros(text string, headers macros) (expanded string, own macros) {
	own = macros{}
	known := maps.Clone(headers)
	var out strings.Builder
	rest := 0
	for _, at := range directive.FindAllStringIndex(text, -1) {
		out.WriteString(known.expand(text[rest:at[0]], nil))
		rest = at[1]
		line := text[at[0]:at[1]]
		out.WriteString(strings.Repeat("\n", strings.Count(line, "\n")))
		parts := definition.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		name := parts[2]
		if parts[1] == "undef" {
			delete(known, name)
			delete(own, name)
			continue
		}
		m := macro{takes: parts[3] != "", text: strings.ReplaceAll(parts[4], "\\\n", " ")}
		if m.takes {
			m.parameters = splitArguments(parts[3][1 : len(parts[3])-1])
		}
		own[name] = append(own[name], m)
		known[name] = own[name]
	}
	out.WriteString(known.expand(text[rest:], nil))
	return out.String(), own
}

// expand writes out the uses of macros in a text. Those that it is in the result of stay as they are.
func (known macros) expand(text string, within []string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if !isWord(text[i]) {
			out.WriteByte(text[i])
			i++
			continue
		}
		end := wordEnd(text, i)
		name := text[i:end]
		definitions := known[name]
		if len(definitions) == 0 || slices.Contains(within, name) {
			out.WriteString(name)
			i = end
			continue
		}
		arguments, after := argumentsAt(text, end)
		for _, m := range definitions {
			if !m.takes {
				out.WriteString(" " + known.expand(m.text, append(slices.Clone(within), name)) + " ")
				after = end
			} else if after > end {
				out.WriteString(" " + known.expand(m.with(arguments), append(slices.Clone(within), name)) + " ")
			}
		}
		if after == end && definitions[0].takes {
			out.WriteString(name) // without brackets it is not a use of the macro
		}
		out.WriteString(strings.Repeat("\n", strings.Count(text[end:after], "\n")))
		i = after
	}
	return out.String()
}

// with gives what the macro makes of arguments.
func (m macro) with(arguments []string) string {
	value := func(name string) (string, bool) {
		i := slices.Index(m.parameters, name)
		if name == "__VA_ARGS__" {
			if i = slices.Index(m.parameters, "..."); i >= 0 && i < len(arguments) {
				return strings.Join(arguments[i:], ", "), true
			}
		}
		if i < 0 || i >= len(arguments) {
			return "", i >= 0
		}
		return arguments[i], true
	}
	var out strings.Builder
	for i := 0; i < len(m.text); {
		end := max(wordEnd(m.text, i), i+1)
		argument, isParameter := value(m.text[i:end])
		before := strings.TrimRight(m.text[:i], " \t")
		switch {
		case !isParameter:
			out.WriteString(m.text[i:end])
		case strings.HasSuffix(before, "#") && !strings.HasSuffix(before, "##"): // a string is made of it
		default:
			out.WriteString(argument)
		}
		i = end
	}
	return pasting.ReplaceAllString(out.String(), "")
}

// argumentsAt reads the arguments in the brackets behind the name that ends at end, and says where they end: at end, if none are there.
func argumentsAt(text string, end int) (arguments []string, after int) {
	begin := end + len(text[end:]) - len(strings.TrimLeft(text[end:], " \t\n"))
	if begin == len(text) || text[begin] != '(' {
		return nil, end
	}
	depth := 0
	for i := begin; i < len(text); i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return splitArguments(strings.ReplaceAll(text[begin+1:i], "\n", " ")), i + 1
			}
		}
	}
	return nil, end
}

// splitArguments cuts a list at its commas outside brackets.
func splitArguments(list string) (arguments []string) {
	depth, begin := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				arguments = append(arguments, strings.TrimSpace(list[begin:i]))
				begin = i + 1
			}
		}
	}
	return append(arguments, strings.TrimSpace(list[begin:]))
}
