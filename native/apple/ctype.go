package apple

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ctype is a C type in the table's spelling, with what a pointer to it must know.
type ctype struct {
	text   string
	class  bool     // an Objective-C class: only pointers to it are types of arguments
	called bool     // a function; text is its result
	args   []string // of a function
}

var tokens = regexp.MustCompile(`[A-Za-z_]\w*|\d+|\.\.\.|\S`)

// arithmetic are C's own types and those of Objective-C, as clang spells them, in the table's spelling.
var arithmetic = map[string]string{
	"void": "v", "bool": "bool", "char": "char", "signed char": "i8", "unsigned char": "u8", "short": "i16", "unsigned short": "u16",
	"int": "i32", "unsigned int": "u32", "long": "i64", "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64",
	"float": "f32", "double": "f64", "__builtin_va_list": "va_list", "__va_list_tag": "va_list",
	"id": "@", "instancetype": "@self", "Class": "#", "SEL": ":",
}

var (
	// opaqueTypes are kept as they are named: what is behind the name is the system's own business.
	opaqueTypes = regexp.MustCompile(`^(dispatch_(queue|queue_attr|queue_global|queue_main|data|semaphore|group|object)_t|os_log_t|CF\w+Ref)$`)
	qualifiers  = []string{"const", "volatile", "restrict", "__restrict", "__strong", "__unsafe_unretained", "__autoreleasing", "__kindof",
		"_Nonnull", "_Nullable"}
	secondWords = []string{"char", "short", "int", "long"} // after unsigned, and in long long
)

// typeParser reads types as clang spells them, without the names of what has them. After an error there are no more tokens.
type typeParser struct {
	names  *headerReader
	tokens []string
	err    error
}

func (r *headerReader) parse(text string) (ctype, error) {
	p := &typeParser{names: r, tokens: tokens.FindAllString(text, -1)}
	made := p.whole()
	if next := p.peek(); next != "" && next != "noexcept" && next != "__attribute__" {
		p.fail("unexpected %q", next)
	}
	if p.err != nil {
		return ctype{}, fmt.Errorf("type %q: %w", text, p.err)
	}
	return made, nil
}

func (p *typeParser) fail(format string, args ...any) {
	p.tokens = nil
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *typeParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *typeParser) take() string {
	token := p.peek()
	p.tokens = p.tokens[min(1, len(p.tokens)):]
	return token
}

func (p *typeParser) expect(token string) {
	if found := p.take(); found != token {
		p.fail("%q where %q must be", found, token)
	}
}

func (p *typeParser) skipQualifiers() {
	for slices.Contains(qualifiers, p.peek()) {
		p.take()
	}
}

func (p *typeParser) whole() ctype {
	base := p.base()
	return p.declarator()(base)
}

// base reads what comes before the declarator.
func (p *typeParser) base() ctype {
	p.skipQualifiers()
	name := p.take()
	for slices.Contains(secondWords, p.peek()) {
		name += " " + p.take()
	}
	if name == "struct" || name == "enum" || name == "union" {
		if name = p.take(); p.names.enums[name] == nil {
			return ctype{text: "{" + name + "}"}
		}
	}
	made, err := p.names.named(name)
	if err != nil {
		p.fail("%w", err)
	}
	var protocols []string // or the types of what a collection holds, which the table does not have
	for depth := 0; depth > 0 || p.peek() == "<"; {
		switch token := p.take(); token {
		case "<":
			depth++
		case ">":
			depth--
		case ",":
		case "":
			p.fail("no end of <")
			depth = 0
		default:
			protocols = append(protocols, token)
		}
	}
	if made.text == "@" && len(protocols) > 0 {
		slices.Sort(protocols)
		made.text = "@<" + strings.Join(protocols, ",") + ">"
	}
	return made
}

// named resolves a name as far as the table does.
func (r *headerReader) named(name string) (ctype, error) {
	if text, ok := arithmetic[name]; ok {
		return ctype{text: text}, nil
	}
	if opaqueTypes.MatchString(name) {
		return ctype{text: name}, nil
	}
	if enum := r.enums[name]; enum != nil {
		return ctype{text: "enum:" + name + "/" + enum.Underlying}, nil
	}
	if r.Structs[name] != nil {
		return ctype{text: "{" + name + "}"}, nil
	}
	if r.classes[name] {
		return ctype{text: "@" + name, class: true}, nil
	}
	declared, ok := r.typedefs[name]
	if !ok {
		return ctype{}, fmt.Errorf("no type %q: if clang has it by itself, it must be in native/apple/ctype.go, too", name)
	}
	delete(r.typedefs, name) // one that names itself must not go on for ever
	made, err := r.parse(declared)
	r.typedefs[name] = declared
	return made, err
}

// declarator reads pointers, blocks, arrays and functions, and gives what they make of the type before them.
func (p *typeParser) declarator() func(ctype) ctype {
	p.skipQualifiers()
	switch token := p.peek(); {
	case token == "*" || token == "&":
		p.take()
		around := p.declarator()
		return func(base ctype) ctype { return around(pointer(base)) }
	case token == "(" && len(p.tokens) > 1 && (p.tokens[1] == "^" || p.tokens[1] == "*"):
		p.take()
		block := p.take() == "^"
		around := p.declarator()
		p.expect(")")
		to := p.declarator() // a function or an array
		return func(base ctype) ctype {
			made := to(base)
			if block {
				return around(ctype{text: "@?(" + strings.Join(append([]string{made.text}, made.args...), ",") + ")"})
			}
			return around(pointer(made))
		}
	case token == "(":
		args := p.arguments()
		return func(base ctype) ctype { return ctype{text: base.text, called: true, args: args} }
	case token == "[":
		p.take()
		count := p.take()
		if count == "]" {
			return pointer
		}
		p.expect("]")
		of := p.declarator()
		return func(base ctype) ctype { return ctype{text: "[" + count + "]" + of(base).text} }
	}
	return func(base ctype) ctype { return base }
}

func pointer(to ctype) ctype {
	switch {
	case to.class:
		return ctype{text: to.text}
	case to.text == "va_list": // which is an array of one on some machines
		return to
	case to.called:
		return ctype{text: "^fn"}
	}
	return ctype{text: "^" + to.text}
}

// arguments reads a list of arguments in parentheses.
func (p *typeParser) arguments() []string {
	var all []string
	for p.expect("("); p.err == nil && p.peek() != ")"; {
		if p.peek() == "..." {
			all = append(all, p.take())
		} else {
			all = append(all, p.whole().text)
		}
		if p.peek() != ")" {
			p.expect(",")
		}
	}
	p.take()
	if slices.Equal(all, []string{"v"}) {
		return nil
	}
	return all
}
