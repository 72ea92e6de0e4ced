package shaders

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The text of LLVM's code, as llvm-dis writes it: just so much of its grammar as the kernels of a metallib need. What is not
// understood is an error, never left as it is.

// typeSize is how many bytes a load or store of the type touches; 0: not known.
func typeSize(name string) int {
	switch name {
	case "half", "bfloat":
		return 2
	case "float":
		return 4
	case "double":
		return 8
	}
	if strings.HasPrefix(name, "ptr") {
		return 8
	}
	if bits, ok := strings.CutPrefix(name, "i"); ok {
		n, err := strconv.Atoi(bits)
		if err != nil {
			return 0
		}
		return (n + 7) / 8
	}
	if count, element := vectorType(name); count > 0 {
		if element == "i1" {
			return (count + 7) / 8
		}
		return count * typeSize(element)
	}
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		if count, element, ok := strings.Cut(name[1:len(name)-1], " x "); ok {
			n, err := strconv.Atoi(count)
			if err != nil {
				return 0
			}
			return n * typeSize(element)
		}
	}
	return 0
}

// mostLanes are those of a vector: a matrix of 8 x 8.
const mostLanes = 64

// vectorType takes <4 x float> apart; 0 for what is no vector.
func vectorType(name string) (count int, element string) {
	if !strings.HasPrefix(name, "<") || !strings.HasSuffix(name, ">") {
		return 0, name
	}
	number, element, ok := strings.Cut(name[1:len(name)-1], " x ")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n > mostLanes {
		return 0, name
	}
	return n, element
}

// elementType is a vector's, or the type itself.
func elementType(name string) string {
	_, element := vectorType(name)
	return element
}

// withElement is the type with another element.
func withElement(name, element string) string {
	if count, _ := vectorType(name); count > 0 {
		return fmt.Sprintf("<%d x %s>", count, element)
	}
	return element
}

// splat is a constant of the type with the number in each element.
func splat(typeName, number string) string {
	if count, element := vectorType(typeName); count > 0 {
		return fmt.Sprintf("splat (%s %s)", element, number)
	}
	return number
}

// cutType reads the type that a text begins with.
func cutType(text string) (name, rest string) {
	depth := 0
	for i, c := range text {
		switch c {
		case '<', '[', '{', '(':
			depth++
		case '>', ']', '}', ')':
			depth--
		case ' ', ',':
			if depth == 0 {
				return text[:i], text[i:]
			}
		}
	}
	return text, ""
}

// splitList splits at the commas that are in no bracket.
func splitList(text string) []string {
	var parts []string
	depth, start, quoted := 0, 0, false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("<[{(", c):
			depth++
		case strings.ContainsRune(">]})", c):
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	if last := strings.TrimSpace(text[start:]); last != "" {
		parts = append(parts, last)
	}
	return parts
}

// signature is a define or declare line, taken apart.
type signature struct {
	result     string
	name       string // with its @
	parameters []string
	attributes string // after the list
}

var (
	definition = regexp.MustCompile(
		`^(define|declare) (?:(?:weak_odr|internal|private|linkonce_odr|hidden|local_unnamed_addr|dso_local|fastcc|noundef|zeroext|signext|convergent|weak) )*`)
	functionID = regexp.MustCompile(`^ ?(@(?:"[^"]+"|[-\w$.]+))\(`)
)

func parseSignature(line string) (signature, error) {
	var s signature
	head := definition.FindString(line)
	rest := line[len(head):]
	s.result, rest = cutType(rest)
	found := functionID.FindStringSubmatch(rest)
	if head == "" || found == nil {
		return s, fmt.Errorf("not understood: %s", line)
	}
	s.name, rest = found[1], rest[len(found[0]):]
	end := matching(rest)
	if end < 0 {
		return s, fmt.Errorf("not understood: %s", line)
	}
	s.parameters, s.attributes = splitList(rest[:end]), rest[end+1:]
	return s, nil
}

// matching is where the bracket that was open before the text is closed.
func matching(text string) int {
	depth, quoted := 1, false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
