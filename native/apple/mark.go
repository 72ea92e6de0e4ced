package apple

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	typeStart    = regexp.MustCompile(`^@(?:interface|protocol) (\w+)[^;]*$`)
	memberStart  = regexp.MustCompile(`^(?:[-+] *\(|@property\b)`)
	comment      = regexp.MustCompile(`//[^\n]*|(?s:/\*.*?\*/)`)
	getterOf     = regexp.MustCompile(`getter *= *(\w+)`)
	lastName     = regexp.MustCompile(`(\w+)\W*$`)
	leadingName  = regexp.MustCompile(`^\s*(\w+)`)
	argumentName = regexp.MustCompile(`(\w+)\s*:`)
)

// MarkAvailability writes into a header since which macOS a method or class exists, as clang reads it, where the table says that it is
// newer than macOS oldest. It also names the marked ones, as "Class -selector" and "Class".
func (t *Table) MarkAvailability(header string, oldest Version) (marked string, names []string, err error) {
	var out strings.Builder
	lines := strings.SplitAfter(header, "\n")
	var current *Type
	mark := func(since string) (string, error) {
		version, err := ParseVersion(since)
		if err != nil || since == "" || !oldest.Before(version) {
			return "", err
		}
		return fmt.Sprintf("__attribute__((availability(macos,introduced=%s)))", since), nil
	}
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if match := typeStart.FindStringSubmatch(line); match != nil {
			current = t.Types[match[1]]
			if current != nil && !strings.Contains(line, "(") { // a category is no declaration of the class
				attribute, err := mark(current.Since)
				if err != nil {
					return "", nil, err
				}
				if attribute != "" {
					out.WriteString(attribute + "\n")
					names = append(names, current.Name)
				}
			}
		}
		if strings.HasPrefix(line, "@end") {
			current = nil
		}
		if current == nil || !memberStart.MatchString(line) {
			out.WriteString(line)
			continue
		}
		for !strings.Contains(comment.ReplaceAllString(line, ""), ";") && i+1 < len(lines) {
			i++
			line += lines[i]
		}
		attribute := ""
		for _, selector := range selectorsOfMember(comment.ReplaceAllString(line, "")) {
			method := current.Methods[selector]
			if method == nil {
				continue
			}
			found, err := mark(method.Since)
			if err != nil {
				return "", nil, err
			}
			if found != "" {
				attribute = found
				names = append(names, current.Name+" "+selector)
			}
		}
		if attribute != "" {
			line = strings.Replace(line, ";", " "+attribute+";", 1)
		}
		out.WriteString(line)
	}
	return out.String(), names, nil
}

// selectorsOfMember are those that a declaration of a method or a property makes, with + or - before them.
func selectorsOfMember(text string) []string {
	text, _, _ = strings.Cut(text, ";")
	if rest, property := strings.CutPrefix(text, "@property"); property {
		getter := ""
		if match := getterOf.FindStringSubmatch(rest); match != nil {
			getter = match[1]
		}
		name := lastName.FindStringSubmatch(rest)
		if name == nil {
			return nil
		}
		if getter == "" {
			getter = name[1]
		}
		return []string{"-" + getter, "-set" + strings.ToUpper(name[1][:1]) + name[1][1:] + ":"}
	}
	kind, rest := text[:1], withoutParentheses(text[1:])
	if arguments := argumentName.FindAllStringSubmatch(rest, -1); arguments != nil {
		selector := kind
		for _, argument := range arguments {
			selector += argument[1] + ":"
		}
		return []string{selector}
	}
	if name := leadingName.FindStringSubmatch(rest); name != nil {
		return []string{kind + name[1]}
	}
	return nil
}

func withoutParentheses(text string) string {
	var out strings.Builder
	depth := 0
	for _, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// Newer names what the headers declare and macOS oldest does not have, as MarkAvailability names it, in order.
func (t *Table) Newer(oldest Version) ([]string, error) {
	var names []string
	for name, found := range t.Types {
		if version, err := ParseVersion(found.Since); err != nil {
			return nil, err
		} else if oldest.Before(version) {
			names = append(names, name)
		}
		for selector, method := range found.Methods {
			version, err := ParseVersion(method.Since)
			if err != nil {
				return nil, err
			}
			if !method.Undeclared && oldest.Before(version) {
				names = append(names, name+" "+selector)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// Version is one of macOS.
type Version struct{ Major, Minor int }

// ParseVersion reads 14.0; "" is older than all.
func ParseVersion(text string) (Version, error) {
	var v Version
	if text == "" {
		return v, nil
	}
	if count, err := fmt.Sscanf(text+" ", "%d.%d ", &v.Major, &v.Minor); count != 2 || err != nil {
		return v, fmt.Errorf("%q is not a version of macOS", text)
	}
	return v, nil
}

// Before compares.
func (v Version) Before(other Version) bool {
	return v.Major < other.Major || v.Major == other.Major && v.Minor < other.Minor
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }
