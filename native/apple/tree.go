package apple

import (
	"fmt"
	"slices"
	"strings"
)

// node is one line of what clang -ast-dump writes, with the lines below it. A line is
//
//	kind 0xaddress prev 0xaddress <range> location words name 'type':'the type without typedefs' more
//
// of which all but the kind may be absent; what is no declaration has no location.
type node struct {
	kind    string
	ours    bool // it is in a file of the folder
	forward bool // the range ends with the name: a class or protocol that is only announced
	words   []string
	name    string // the last word
	typ     string // in quotes: the type, or the name of the declaration that the line refers to
	more    string
	inner   []*node
}

// treeReader reads line by line, as a location does not repeat the file of the one before it.
type treeReader struct {
	folder string
	ours   bool
}

// readTree gives the root of the tree.
func readTree(dump, folder string) (*node, error) {
	r := &treeReader{folder: strings.TrimSuffix(folder, "/") + "/"}
	above := []*node{{}} // of the next line, by depth
	for line := range strings.Lines(dump) {
		content := strings.TrimLeft(line, " |`-")
		depth := (len(line) - len(content)) / 2
		if depth >= len(above) {
			return nil, fmt.Errorf("a line of clang's -ast-dump is below no other: %q", line)
		}
		n := r.node(strings.TrimSuffix(content, "\n"))
		above[depth].inner = append(above[depth].inner, n)
		above = append(above[:depth+1], n)
	}
	if top := above[0].inner; len(top) == 1 && top[0].kind == "TranslationUnitDecl" {
		return top[0], nil
	}
	return nil, fmt.Errorf("no TranslationUnitDecl is the root of all: the text must be what clang writes with -Xclang -ast-dump")
}

func (r *treeReader) node(text string) *node {
	kind, rest, _ := strings.Cut(text, " ")
	n := &node{kind: kind}
	word, more, _ := strings.Cut(rest, " ")
	for word == "prev" || word == "parent" || strings.HasPrefix(word, "0x") {
		rest = more
		word, more, _ = strings.Cut(rest, " ")
	}
	if strings.HasPrefix(rest, "<") {
		var between string
		between, rest, _ = strings.Cut(rest[1:]+" ", "> ")
		begin, end, _ := strings.Cut(between, ", ")
		r.location(begin)
		r.location(end)
		if strings.HasSuffix(kind, "Decl") {
			var where string
			where, rest = r.location(rest)
			column, sameLine := strings.CutPrefix(where, "col")
			n.ours, n.forward = r.ours, sameLine && strings.HasSuffix(between, column)
		}
	}
	before, quoted, _ := strings.Cut(rest, "'")
	n.words = strings.Fields(before)
	n.typ, n.more, _ = strings.Cut(quoted, "'")
	// What has no name may have a word about it.
	if last := len(n.words) - 1; last >= 0 && !slices.Contains([]string{"implicit", "referenced", "used", "invalid"}, n.words[last]) {
		n.name = n.words[last]
	}
	return n
}

// location cuts the place at the start of text off, and keeps whether it is in the folder. The folder's name may have a space.
func (r *treeReader) location(text string) (where, rest string) {
	skip := 0
	// What is in <> was made by a macro, in no file.
	if text != "" && !strings.HasPrefix(text, "line:") && !strings.HasPrefix(text, "col:") && !strings.HasPrefix(text, "<") {
		if r.ours = strings.HasPrefix(text, r.folder); r.ours {
			skip = len(r.folder)
		}
	}
	where, rest, _ = strings.Cut(text[skip:], " ")
	return where, rest
}
