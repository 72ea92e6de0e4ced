package apple

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Headers are declarations as clang understood them.
type Headers struct{ Table }

// ParseHeaders reads what clang -Xclang -ast-dump writes, and gives what the files of the folder declare, the folder's name being
// as clang was given it with -I. It is not -ast-dump=json, because clang 19 crashes when it writes a protocol's method as JSON
// (https://github.com/llvm/llvm-project/issues/63540).
func ParseHeaders(dump, folder string) (*Headers, error) {
	root, err := readTree(dump, folder)
	if err != nil {
		return nil, err
	}
	r := &headerReader{Headers: &Headers{newTable()}, all: ofC(root), structs: map[*node]*Struct{}, enums: map[string]*Enum{},
		typedefs: map[string]string{}, classes: map[string]bool{}}
	for i, n := range r.all {
		r.names(i, n)
	}
	for _, n := range r.all {
		if n.ours {
			r.declaration(n)
		}
	}
	return r.Headers, errors.Join(r.wrong...)
}

// headerReader goes through the declarations once for the names of types and once for what uses them, as a method may name a
// structure that comes later.
type headerReader struct {
	*Headers
	all      []*node
	structs  map[*node]*Struct // ours
	enums    map[string]*Enum  // the system's, too
	typedefs map[string]string
	classes  map[string]bool
	wrong    []error
}

// ofC are the declarations that C and Objective-C know, which are not in a namespace.
func ofC(n *node) []*node {
	var all []*node
	for _, declared := range n.inner {
		if declared.kind != "LinkageSpecDecl" {
			all = append(all, declared)
		} else if declared.name == "C" {
			all = append(all, ofC(declared)...)
		}
	}
	return all
}

// names reads the names of the types that a declaration makes.
func (r *headerReader) names(i int, n *node) {
	switch n.kind {
	case "TypedefDecl":
		r.typedefs[n.name] = n.typ
	case "ObjCInterfaceDecl":
		r.classes[n.name] = true
		for _, part := range n.inner {
			if part.kind == "ObjCTypeParamDecl" {
				r.typedefs[part.name] = part.typ
			}
		}
	case "EnumDecl":
		r.enumeration(i, n)
	case "CXXRecordDecl":
		if n.ours && n.name == "definition" && slices.Contains(n.words, "struct") {
			r.structure(i, n.words[len(n.words)-2])
		}
	}
}

// typedefAt is a typedef before or after another declaration, if there is one.
func (r *headerReader) typedefAt(i int) (n *node, found bool) {
	if i < 0 || i >= len(r.all) || r.all[i].kind != "TypedefDecl" {
		return &node{}, false
	}
	return r.all[i], true
}

// enumeration keeps the constants and the type. One without a name has that of the typedef after it, or before it, which
// NS_OPTIONS makes.
func (r *headerReader) enumeration(i int, n *node) {
	name, enum, next := n.name, &Enum{Underlying: "u32"}, int64(0)
	if after, found := r.typedefAt(i + 1); name == "" && found && after.typ == "enum "+after.name {
		name = after.name
	} else if before, found := r.typedefAt(i - 1); name == "" && found && before.typ == n.typ {
		name = before.name
	}
	if n.typ != "" {
		enum.Underlying = r.typeOf(n, n).text
	}
	for _, constant := range n.inner {
		if constant.kind != "EnumConstantDecl" {
			continue
		}
		if text := constant.value(); text != "" {
			var err error
			if next, err = parseConstant(text); err != nil {
				r.wrong = append(r.wrong, fmt.Errorf("constant %s: %w", constant.name, err))
			}
		}
		if next < 0 && n.typ == "" {
			enum.Underlying = "i32"
		}
		if constant.ours {
			r.Constants[constant.name] = next
		}
		next++
	}
	if name != "" {
		r.enums[name] = enum
		if n.ours {
			r.Enums[name] = enum
		}
	}
}

// value is what clang computed of an expression in the node; "" if there is none.
func (n *node) value() string {
	if n.kind == "value:" {
		return n.name
	}
	for _, part := range n.inner {
		if text := part.value(); text != "" {
			return text
		}
	}
	return ""
}

// structure stores a structure under its name and under the names of the typedefs that follow it. Without a name, it has the word
// struct in place of one.
func (r *headerReader) structure(i int, name string) {
	s := &Struct{}
	r.structs[r.all[i]] = s
	if name != "struct" {
		r.Structs[name] = s
	}
	for i++; ; i++ {
		after, found := r.typedefAt(i)
		if !found || after.typ != "struct "+name && (name != "struct" || after.typ != "struct "+after.name) {
			return
		}
		r.Structs[after.name] = s
	}
}

// declaration reads what uses types.
func (r *headerReader) declaration(n *node) {
	switch n.kind {
	case "CXXRecordDecl":
		for _, part := range n.inner {
			if s := r.structs[n]; part.kind == "FieldDecl" && s != nil {
				s.Fields = append(s.Fields, part.name+":"+r.typeOf(n, part).text)
			}
		}
	case "FunctionDecl":
		if !strings.HasPrefix(n.name, "operator") && !strings.Contains(n.typ, "::") { // which are of C++
			made := r.typeOf(n, n)
			r.Functions[n.name] = &Function{Result: made.text, Args: made.args}
		}
	case "ObjCInterfaceDecl", "ObjCProtocolDecl", "ObjCCategoryDecl":
		if !n.forward {
			r.members(n)
		}
	}
}

// typeOf returns the type of a part of a declaration. It collects the errors, so that all of them are reported together.
func (r *headerReader) typeOf(n, part *node) ctype {
	made, err := r.parse(part.typ)
	if err != nil && n.ours {
		r.wrong = append(r.wrong, fmt.Errorf("%s %s: %s: %w", n.kind, n.name, part.name, err))
	}
	return made
}

// members reads a class, a protocol or a category. For a property there are the methods that clang adds.
func (r *headerReader) members(n *node) {
	kind, name := "class", n.name
	if n.kind == "ObjCProtocolDecl" {
		kind, name = "protocol", protocol(name)
	}
	if n.kind == "ObjCCategoryDecl" && len(n.inner) > 0 {
		name = n.inner[0].typ
	}
	t := r.Types[name]
	if t == nil {
		t = &Type{Kind: kind, Name: name, Methods: map[string]*Method{}}
		r.Types[name] = t
	}
	for _, part := range n.inner {
		switch part.kind {
		case "super":
			t.Super = part.typ
		case "ObjCProtocol":
			t.Protocols = append(t.Protocols, protocol(part.typ))
		case "ObjCMethodDecl":
			m := &Method{Result: r.typeOf(n, part).text}
			for _, argument := range part.inner {
				if argument.kind == "ParmVarDecl" {
					m.Args = append(m.Args, r.typeOf(n, argument).text)
				}
			}
			if strings.Contains(part.more, " variadic") {
				m.Args = append(m.Args, "...")
			}
			t.Methods[strings.Join(part.words[max(0, len(part.words)-2):], "")] = m // its sign and selector
		}
	}
}

// protocol is the table's name: Apple's and our protocol NSObject is NSObjectProtocol there, as it is in Swift.
func protocol(name string) string {
	if name == "NSObject" {
		return "NSObjectProtocol"
	}
	return name
}
