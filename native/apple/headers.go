package apple

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Headers are declarations as clang prints them.
type Headers struct {
	Table
	typedefs map[string]string
	classes  map[string]bool // named ahead, with @class
}

var (
	attributes   = regexp.MustCompile(`__attribute__\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)|\b(?:noexcept|throw)\b(?:\([^()]*\))?|__asm__\([^()]*\)`)
	interface_   = regexp.MustCompile(`^@(interface|protocol) (\w+)\s*(?:<([^>]*)>)?\s*(\(\w*\))?\s*(?::\s*(\w+))?\s*(?:<([^{]*)>)?\s*(\{)?$`)
	enumHead     = regexp.MustCompile(`^(?:typedef )?enum ?(\w*)(?: : (.+?))? \{$`)
	optionsType  = regexp.MustCompile(`^typedef (NSUInteger) (\w+);$`) // what NS_OPTIONS prints before its constants
	structHead   = regexp.MustCompile(`^(?:typedef )?struct ?(\w*) ?(?:__attribute__.*)?\{$`)
	closing      = regexp.MustCompile(`^\} ?(\w*).*;$`)
	methodPart   = regexp.MustCompile(`(\w*):\(`)
	literals     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
	functionName = regexp.MustCompile(`\b(\w+)\(`)
)

// ParseHeaders reads what clang -ast-print writes. Declarations of functions, structures and constants that base has, too, are
// the system's and not looked at; base may be nil.
func ParseHeaders(printed string, base *Headers) (*Headers, error) {
	r := headerReader{Headers: &Headers{Table: newTable(), typedefs: map[string]string{}, classes: map[string]bool{}}, base: base,
		lines: strings.Split(printed, "\n")}
	for ; r.at < len(r.lines); r.at++ {
		if err := r.declaration(); err != nil {
			return nil, err
		}
	}
	var unread []error
	for _, add := range r.members {
		if err := add(); err != nil && base != nil {
			unread = append(unread, err)
		}
	}
	if base != nil {
		maps.DeleteFunc(r.Constants, func(name string, _ int64) bool { _, known := base.Constants[name]; return known })
		maps.DeleteFunc(r.Enums, func(name string, _ *Enum) bool { return base.Enums[name] != nil })
	}
	return r.Headers, errors.Join(unread...)
}

// headerReader reads the lines once for the names; members come afterwards, as a type may be used before its structure is printed.
type headerReader struct {
	*Headers
	base    *Headers
	lines   []string
	at      int    // the line
	stack   []bool // for each open brace: whether its declarations count
	members []func() error
}

// current is the line without the space around it; past the end it is empty.
func (r *headerReader) current() string {
	if r.at < len(r.lines) {
		return strings.TrimSpace(r.lines[r.at])
	}
	return ""
}

// block goes to the line that ends the block which this one begins, and returns what is between them.
func (r *headerReader) block() []string {
	begin, depth := r.at+1, 1
	for r.at++; r.at < len(r.lines); r.at++ {
		plain := literals.ReplaceAllString(r.lines[r.at], "")
		if depth += strings.Count(plain, "{") - strings.Count(plain, "}"); depth == 0 {
			break
		}
	}
	return r.lines[begin:min(r.at, len(r.lines))]
}

func (r *headerReader) close(line string) error {
	if len(r.stack) == 0 {
		return fmt.Errorf("line %d closes what is not open: %q", r.at+1, line)
	}
	r.stack = r.stack[:len(r.stack)-1]
	return nil
}

// skip reads a line of a block that does not count.
func (r *headerReader) skip(line, plain string) error {
	for _, c := range plain {
		switch c {
		case '{':
			r.stack = append(r.stack, false)
		case '}':
			if err := r.close(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// declaration reads the one that begins on this line, to its last line.
func (r *headerReader) declaration() error {
	line := r.current()
	if rest, found := strings.CutPrefix(line, `extern "C" `); found && rest != "{" {
		line = rest
	}
	plain := literals.ReplaceAllString(line, `""`)
	if slices.Contains(r.stack, false) {
		return r.skip(line, plain)
	}
	switch {
	case line == "" || strings.HasPrefix(line, "template") && !strings.HasSuffix(line, "{"):
	case strings.HasPrefix(line, `extern "C" {`), strings.HasPrefix(line, `extern "C++" {`):
		r.stack = append(r.stack, strings.Contains(line, `"C" `))
	case strings.HasPrefix(line, "}"):
		return r.close(line)
	case strings.HasPrefix(line, "@class "):
		for _, name := range tokens.FindAllString(line[len("@class "):], -1) {
			r.classes[name] = true
		}
	case strings.HasPrefix(line, "@protocol") && strings.HasSuffix(line, ";"):
	case strings.HasPrefix(line, "@interface"), strings.HasPrefix(line, "@protocol"):
		return r.classOrProtocol(line)
	case enumHead.MatchString(line):
		return r.enumeration(line)
	case structHead.MatchString(line) && !strings.HasPrefix(line, "template"):
		r.structure(line)
	case strings.HasPrefix(line, "typedef ") && strings.HasSuffix(line, "{"): // a union
		r.block()
		if end := closing.FindStringSubmatch(r.current()); end != nil {
			r.typedefs[end[1]] = "struct " + end[1]
		}
	case strings.HasPrefix(line, "typedef "):
		r.addTypedef(strings.TrimSuffix(line, ";"))
	default:
		r.function(line, plain)
	}
	return nil
}

func (r *headerReader) classOrProtocol(line string) error {
	head := interface_.FindStringSubmatch(line)
	if head == nil {
		return fmt.Errorf("not a declaration of a class or protocol: %q", line)
	}
	t := r.addType(head)
	if head[7] != "" {
		r.block()
	}
	for r.at++; r.at < len(r.lines) && r.current() != "@end"; r.at++ {
		text := r.current()
		if strings.HasSuffix(text, "{") { // the type of a variable
			r.block()
		} else if text != "" && strings.ContainsAny(text[:1], "+-@") && text != "@optional" && text != "@required" {
			r.members = append(r.members, func() error { return r.addMember(t, text) })
		}
	}
	return nil
}

func (r *headerReader) enumeration(line string) error {
	before := ""
	if r.at > 0 {
		before = strings.TrimSpace(r.lines[r.at-1])
	}
	head := enumHead.FindStringSubmatch(line)
	constants := r.block()
	name := head[1]
	if name == "" {
		end := closing.FindStringSubmatch(r.current())
		if end == nil {
			return fmt.Errorf("line %d ends no enumeration: %q", r.at+1, r.current())
		}
		name = end[1]
	}
	if options := optionsType.FindStringSubmatch(before); name == "" && options != nil && options[1] == head[2] {
		name = options[2]
	}
	if err := r.addEnum(name, head[2], constants); err != nil && (r.base == nil || r.base.Enums[name] == nil) {
		return err
	}
	return nil
}

func (r *headerReader) structure(line string) {
	names := []string{structHead.FindStringSubmatch(line)[1]}
	fields := r.block()
	if strings.HasPrefix(line, "typedef ") {
		// "} one, *pointer;"
		for _, name := range strings.Split(strings.Trim(r.current(), "}; "), ",") {
			if pointed, found := strings.CutPrefix(strings.TrimSpace(name), "*"); found {
				r.typedefs[pointed] = "struct " + names[0] + " *"
			} else {
				names = append(names, strings.TrimSpace(name))
			}
		}
	}
	s := &Struct{}
	r.members = append(r.members, func() error { return r.addFields(names, s, fields) })
	for _, name := range names {
		if name != "" && (r.base == nil || r.base.Structs[name] == nil) {
			r.Structs[name] = s
		}
	}
}

func (r *headerReader) function(line, plain string) {
	name := functionName.FindStringSubmatch(attributes.ReplaceAllString(line, ""))
	of := name != nil && !strings.Contains(plain, "operator") && !strings.Contains(plain, "::")
	if of && (r.base == nil || r.base.Functions[name[1]] == nil) {
		text := strings.TrimSuffix(strings.TrimSuffix(line, ";"), "{")
		inline := strings.HasSuffix(line, "{")
		r.Functions[name[1]] = &Function{}
		r.members = append(r.members, func() error { return r.addFunction(text, inline) })
	}
	for range strings.Count(plain, "{") - strings.Count(plain, "}") {
		r.stack = append(r.stack, false)
	}
}

func (h *Headers) addType(head []string) *Type {
	t := h.Types[head[2]]
	// Apple's and our protocol NSObject is the table's NSObjectProtocol, as it is Swift's.
	name := head[2]
	if head[1] == "protocol" && name == "NSObject" {
		name = "NSObjectProtocol"
		t = h.Types[name]
	}
	if t == nil {
		t = &Type{Kind: strings.Replace(head[1], "interface", "class", 1), Name: name, Methods: map[string]*Method{}}
		h.Types[name] = t
	}
	if head[5] != "" {
		t.Super = head[5]
	}
	protocols := head[6]
	if head[4] == "" && head[5] == "" { // else it is the parameters of the class
		protocols = head[3]
	}
	for _, p := range strings.Split(strings.ReplaceAll(protocols, " ", ""), ",") {
		if p == "NSObject" {
			p = "NSObjectProtocol"
		}
		if p != "" && p != "ObjectType" && p != "KeyType" {
			t.Protocols = append(t.Protocols, p)
		}
	}
	return t
}

// addTypedef keeps a type's declaration by its name.
func (h *Headers) addTypedef(text string) {
	declared := strings.TrimPrefix(text, "typedef ")
	plain := attributes.ReplaceAllString(declared, "")
	if block := regexp.MustCompile(`\([\^*]\s*(\w+)\)`).FindStringSubmatchIndex(plain); block != nil {
		h.typedefs[plain[block[2]:block[3]]] = plain[:block[2]] + plain[block[3]:]
		return
	}
	last := regexp.MustCompile(`(\w+)\s*(\[\w*\])?\s*$`).FindStringSubmatchIndex(plain)
	if last == nil {
		return
	}
	name := plain[last[2]:last[3]]
	target := strings.TrimSpace(plain[:last[2]] + plain[last[3]:])
	if strings.HasPrefix(target, "enum ") {
		return // the enum has the same name
	}
	h.typedefs[name] = target
}

func (h *Headers) addEnum(name, underlying string, constants []string) error {
	enum := &Enum{Underlying: "u32"}
	if underlying != "" {
		made, _, err := h.parse(underlying)
		if err != nil {
			return fmt.Errorf("enum %s: %w", name, err)
		}
		enum.Underlying = made.text
	}
	next := int64(0)
	for _, line := range constants {
		line = attributes.ReplaceAllString(line, "")
		constant, text, has := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ","), "=")
		constant = strings.TrimSpace(constant)
		if constant == "" {
			continue
		}
		if has {
			value, err := h.value(text)
			if err != nil {
				return fmt.Errorf("constant %s: %w", constant, err)
			}
			if value < 0 && underlying == "" {
				enum.Underlying = "i32"
			}
			next = value
		}
		h.Constants[constant] = next
		next++
	}
	if name != "" {
		h.Enums[name] = enum
	}
	return nil
}

var number = regexp.MustCompile(`^(0[xX][0-9a-fA-F]+|\d+)[uUlL]*`)

// value computes a constant's value: numbers, other constants, |, +, -, ~, shifts, parentheses.
func (h *Headers) value(text string) (int64, error) {
	e := &expression{h, strings.TrimSpace(text)}
	value, err := e.or()
	if err == nil && e.rest != "" {
		err = fmt.Errorf("%q has a rest %q", text, e.rest)
	}
	return value, err
}

type expression struct {
	h    *Headers
	rest string
}

func (e *expression) eat(what string) bool {
	rest, found := strings.CutPrefix(e.rest, what)
	if found {
		e.rest = strings.TrimSpace(rest)
	}
	return found
}

func (e *expression) or() (int64, error) {
	value, err := e.shift()
	for err == nil && e.eat("|") {
		var more int64
		more, err = e.shift()
		value |= more
	}
	return value, err
}

func (e *expression) shift() (int64, error) {
	value, err := e.sum()
	for err == nil && e.eat("<<") {
		var by int64
		by, err = e.sum()
		value <<= uint64(by)
	}
	return value, err
}

func (e *expression) sum() (int64, error) {
	value, err := e.one()
	for err == nil {
		var more int64
		switch {
		case e.eat("+"):
			more, err = e.one()
		case e.eat("-"):
			more, err = e.one()
			more = -more
		default:
			return value, nil
		}
		value += more
	}
	return value, err
}

func (e *expression) one() (int64, error) {
	switch {
	case e.eat("-"):
		value, err := e.one()
		return -value, err
	case e.eat("~"):
		value, err := e.one()
		return ^value, err
	case e.eat("("):
		value, err := e.or()
		if err == nil && !e.eat(")") {
			err = fmt.Errorf("no ) at %q", e.rest)
		}
		return value, err
	}
	if found := number.FindStringSubmatch(e.rest); found != nil {
		e.eat(found[0])
		value, err := strconv.ParseUint(found[1], 0, 64)
		return int64(value), err
	}
	name := regexp.MustCompile(`^\w+`).FindString(e.rest)
	value, known := e.h.Constants[name]
	if !known || name == "" {
		return 0, fmt.Errorf("unknown at %q", e.rest)
	}
	e.eat(name)
	return value, nil
}

// addFields reads the fields of a structure with all its names; the system's have none here.
func (h *Headers) addFields(names []string, s *Struct, fields []string) error {
	if !slices.ContainsFunc(names, func(name string) bool { return h.Structs[name] == s }) {
		return nil
	}
	for _, line := range fields {
		made, p, err := h.parse(strings.TrimSuffix(strings.TrimSpace(line), ";"))
		if err != nil {
			return fmt.Errorf("structure %s: %w", names, err)
		}
		s.Fields = append(s.Fields, p.name+":"+made.text)
	}
	return nil
}

func (h *Headers) addFunction(text string, inline bool) error {
	made, p, err := h.parse(text)
	if err != nil {
		return fmt.Errorf("function %w", err)
	}
	h.Functions[p.name] = &Function{Result: made.text, Args: p.args, Inline: inline}
	return nil
}

// addMember reads a method or a property, which is one method or two.
func (h *Headers) addMember(t *Type, text string) error {
	text = strings.TrimSuffix(attributes.ReplaceAllString(text, ""), ";")
	if rest, found := strings.CutPrefix(text, "@property"); found {
		return h.addProperty(t, rest)
	}
	if text[0] != '-' && text[0] != '+' {
		return fmt.Errorf("%s: not a method: %q", t.Name, text)
	}
	sign, rest := text[:1], strings.TrimSpace(text[1:])
	result, rest, err := h.parenthesised(rest)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	method := &Method{Result: result}
	selector := rest
	if strings.Contains(rest, ":") {
		selector = ""
		for rest = strings.TrimSpace(rest); rest != "" && !strings.HasPrefix(rest, ","); {
			part := methodPart.FindStringSubmatchIndex(rest)
			if part == nil {
				return fmt.Errorf("%s: not a part of a selector: %q", t.Name, rest)
			}
			selector += rest[part[2]:part[3]] + ":"
			var arg string
			if arg, rest, err = h.parenthesised(rest[part[1]-1:]); err != nil {
				return fmt.Errorf("%s %s: %w", t.Name, selector, err)
			}
			method.Args = append(method.Args, arg)
			// The argument's name.
			rest = strings.TrimSpace(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"))
		}
		if strings.HasPrefix(rest, ",") {
			method.Args = append(method.Args, "...")
		}
	}
	t.Methods[sign+strings.TrimSpace(selector)] = method
	return nil
}

// parenthesised reads a type in parentheses and gives what comes after it.
func (h *Headers) parenthesised(text string) (made, rest string, err error) {
	if !strings.HasPrefix(text, "(") {
		return "", "", fmt.Errorf("no ( begins %q", text)
	}
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			parsed, _, err := h.parse(text[1:i])
			return parsed.text, strings.TrimSpace(text[i+1:]), err
		}
	}
	return "", "", fmt.Errorf("no end of ( in %q", text)
}

func (h *Headers) addProperty(t *Type, text string) error {
	list, declared, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "("), ")")
	made, p, err := h.parse(declared)
	if err != nil {
		return fmt.Errorf("%s: property %w", t.Name, err)
	}
	getter, setter, sign := p.name, "set"+strings.ToUpper(p.name[:1])+p.name[1:]+":", "-"
	settable := true
	for _, attribute := range strings.Split(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(attribute), "=")
		switch strings.TrimSpace(name) {
		case "getter":
			getter = strings.TrimSpace(value)
		case "setter":
			setter = strings.TrimSpace(value)
		case "readonly":
			settable = false
		case "class":
			sign = "+"
		}
	}
	t.Methods[sign+getter] = &Method{Result: made.text}
	if settable {
		t.Methods[sign+setter] = &Method{Result: "v", Args: []string{made.text}}
	}
	return nil
}
