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
	class  bool // an Objective-C class: only pointers to it are types of arguments
	called bool // a function
}

var tokens = regexp.MustCompile(`[A-Za-z_]\w*|\d+|\.\.\.|\S`)

// arithmetic are C's own types by their sorted words, and those that stdint.h or Objective-C name, as the table spells them.
var arithmetic = map[string]string{
	"void": "v", "bool": "bool", "_Bool": "bool", "BOOL": "bool", "char": "char", "char signed": "i8", "char unsigned": "u8",
	"short": "i16", "short unsigned": "u16", "int": "i32", "signed": "i32", "unsigned": "u32", "int unsigned": "u32",
	"long": "i64", "long unsigned": "u64", "int long": "i64", "int long unsigned": "u64",
	"long long": "i64", "long long unsigned": "u64", "float": "f32", "double": "f64",
	"__builtin_va_list": "va_list", "__va_list_tag": "va_list", "id": "@", "instancetype": "@self", "Class": "#", "SEL": ":", "IMP": "^fn",
}

var (
	// opaqueTypes are kept as they are named: what is behind the name is the system's own business.
	opaqueTypes = regexp.MustCompile(`^(dispatch_(queue|queue_attr|queue_global|queue_main|data|semaphore|group|object)_t|os_log_t|CF\w+Ref)$`)
	qualifiers  = []string{"const", "volatile", "restrict", "__restrict", "inline", "static", "extern", "__strong", "__unsafe_unretained",
		"__autoreleasing", "__kindof", "__covariant", "_Nonnull", "_Nullable", "constexpr", "oneway"}
	words = []string{"unsigned", "signed", "char", "short", "int", "long", "float", "double", "void", "bool", "_Bool"}
)

// typeParser reads one type, with or without a name in it, as clang prints it.
type typeParser struct {
	names  *Headers
	tokens []string
	name   string
	args   []string // of a function
}

// parse gives the type, and the name that is declared with it.
func (h *Headers) parse(text string) (ctype, *typeParser, error) {
	p := &typeParser{names: h, tokens: tokens.FindAllString(attributes.ReplaceAllString(text, ""), -1)}
	base, err := p.base()
	if err != nil {
		return ctype{}, p, fmt.Errorf("%q: %w", text, err)
	}
	made, err := p.declarator(base)
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("unexpected %q", p.tokens[0])
	}
	if err != nil {
		return ctype{}, p, fmt.Errorf("%q: %w", text, err)
	}
	return made, p, nil
}

func (p *typeParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *typeParser) take() string {
	token := p.peek()
	if token != "" {
		p.tokens = p.tokens[1:]
	}
	return token
}

func (p *typeParser) skipQualifiers() {
	for slices.Contains(qualifiers, p.peek()) {
		p.take()
	}
}

// base reads what comes before the declarator.
func (p *typeParser) base() (ctype, error) {
	p.skipQualifiers()
	var found []string
	for slices.Contains(words, p.peek()) || slices.Contains(qualifiers, p.peek()) {
		if word := p.take(); !slices.Contains(qualifiers, word) {
			found = append(found, word)
		}
	}
	if len(found) > 0 {
		slices.Sort(found)
		text, ok := arithmetic[strings.Join(found, " ")]
		if !ok {
			return ctype{}, fmt.Errorf("no type %q", found)
		}
		return ctype{text: text}, nil
	}
	name := p.take()
	if name == "struct" || name == "enum" || name == "union" {
		name = p.take()
		p.skipQualifiers()
		if enum := p.names.Enums[name]; enum != nil {
			return ctype{text: "enum:" + name + "/" + enum.Underlying}, nil
		}
		return ctype{text: "{" + name + "}"}, nil
	}
	var protocols []string
	if p.peek() == "<" {
		for depth := 0; ; {
			token := p.take()
			switch token {
			case "<":
				depth++
			case ">":
				depth--
			case "":
				return ctype{}, fmt.Errorf("no end of <")
			default:
				protocols = append(protocols, token)
			}
			if depth == 0 {
				break
			}
		}
	}
	p.skipQualifiers()
	if (name == "id" || name == "KeyType") && len(protocols) > 0 {
		protocols = slices.DeleteFunc(protocols, func(token string) bool { return token == "," })
		slices.Sort(protocols)
		return ctype{text: "@<" + strings.Join(protocols, ",") + ">"}, nil
	}
	return p.names.named(name)
}

// named resolves a name as far as the table does.
func (h *Headers) named(name string) (ctype, error) {
	if text, ok := arithmetic[name]; ok {
		return ctype{text: text}, nil
	}
	if name == "ObjectType" || name == "KeyType" {
		return ctype{text: "@"}, nil
	}
	if opaqueTypes.MatchString(name) {
		return ctype{text: name}, nil
	}
	if enum := h.Enums[name]; enum != nil {
		return ctype{text: "enum:" + name + "/" + enum.Underlying}, nil
	}
	if h.Structs[name] != nil {
		return ctype{text: "{" + name + "}"}, nil
	}
	if h.Types[name] != nil || h.classes[name] || name == "Protocol" {
		return ctype{text: "@" + name, class: true}, nil
	}
	declared, ok := h.typedefs[name]
	if !ok {
		return ctype{}, fmt.Errorf("no type %q", name)
	}
	made, _, err := h.parse(declared)
	return made, err
}

// declarator reads pointers, blocks, arrays, functions and the name, from the inside out.
func (p *typeParser) declarator(base ctype) (ctype, error) {
	p.skipQualifiers()
	switch token := p.peek(); {
	case token == "*" || token == "&":
		p.take()
		return p.declarator(pointer(base))
	case token == "(" && len(p.tokens) > 1 && (p.tokens[1] == "^" || p.tokens[1] == "*"):
		p.take()
		block := p.take() == "^"
		p.skipQualifiers()
		inner := []string{}
		for depth := 0; p.peek() != ")" || depth > 0; {
			token := p.take()
			if token == "" {
				return ctype{}, fmt.Errorf("no end of (")
			}
			inner = append(inner, token)
			switch token {
			case "(":
				depth++
			case ")":
				depth--
			}
		}
		p.take()
		args, err := p.arguments()
		if err != nil {
			return ctype{}, err
		}
		made := ctype{text: "^fn"}
		if block {
			made.text = "@?(" + strings.Join(append([]string{base.text}, args...), ",") + ")"
		}
		rest := p.tokens
		p.tokens = inner
		made, err = p.declarator(made)
		p.tokens = append(p.tokens, rest...)
		return made, err
	}
	if name := p.peek(); name != "" && regexp.MustCompile(`^[A-Za-z_]`).MatchString(name) {
		p.name = p.take()
	}
	switch p.peek() {
	case "(":
		args, err := p.arguments()
		p.args = args
		base.called = true
		return base, err
	case "[":
		p.take()
		if p.peek() == "]" {
			p.take()
			return pointer(base), nil
		}
		count := p.take()
		p.take()
		return ctype{text: "[" + count + "]" + base.text}, nil
	}
	return base, nil
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
func (p *typeParser) arguments() ([]string, error) {
	if p.take() != "(" {
		return nil, fmt.Errorf("no arguments")
	}
	var all []string
	var one []string
	for depth, angle := 0, 0; ; {
		token := p.take()
		end := depth == 0 && token == ")"
		if token == "" {
			return nil, fmt.Errorf("no end of arguments")
		}
		if end || depth == 0 && angle == 0 && token == "," {
			if text := strings.Join(one, " "); text != "" && text != "void" && text != "..." {
				made, _, err := p.names.parse(text)
				if err != nil {
					return nil, err
				}
				all = append(all, made.text)
			} else if text == "..." {
				all = append(all, "...")
			}
			one = nil
			if end {
				return all, nil
			}
			continue
		}
		switch token {
		case "(":
			depth++
		case ")":
			depth--
		case "<":
			angle++
		case ">":
			angle--
		}
		one = append(one, token)
	}
}
