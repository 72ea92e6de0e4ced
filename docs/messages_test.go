package docs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write messages.txt anew")

// twoWords is what makes a string a text: the shortest message is a name and what is wrong with it.
var twoWords = regexp.MustCompile(`\pL{2,}[,;:]? [\pL%…(]`)

// messagesOf are a Go file's texts for people, in their order. What is put together with + is one text, with … for the parts
// that are not known before. Patterns of regexp are no messages.
func messagesOf(file, text string) (messages []string, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec, *ast.Field: // paths, tags
			return false
		case *ast.CallExpr:
			selector, ok := node.Fun.(*ast.SelectorExpr)
			return !ok || selector.Sel.Name != "MustCompile"
		case *ast.BinaryExpr:
			if found := written(node); twoWords.MatchString(found) {
				messages = append(messages, found)
				return false
			}
		case *ast.BasicLit:
			if found := written(node); twoWords.MatchString(found) {
				messages = append(messages, found)
			}
		}
		return true
	})
	return messages, nil
}

// written is the text of an expression as far as the source has it.
func written(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(expression.Value); err == nil && expression.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if expression.Op == token.ADD {
			return written(expression.X) + written(expression.Y)
		}
	}
	return "…"
}

// docs/dev/messages.txt has all texts of the program in one place, so that they can be read together. A text of several lines is
// indented from its second one on.
func TestMessagesAreListed(t *testing.T) {
	var list bytes.Buffer
	list.WriteString("The texts of mpsforge, by package. Written by: go test ./docs -run TestMessagesAreListed -update\n")
	files, folder := tracked(t), ""
	for _, file := range slices.SortedFunc(maps.Keys(files), func(a, b string) int { return strings.Compare(path.Dir(a)+"\x00"+a, path.Dir(b)+"\x00"+b) }) {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") {
			continue
		}
		messages, err := messagesOf(file, files[file])
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) > 0 && path.Dir(file) != folder {
			folder = path.Dir(file)
			fmt.Fprintf(&list, "\n== %s ==\n", folder)
		}
		for _, message := range messages {
			list.WriteString(strings.NewReplacer("\n", "\n    ", "\x00", "␀").Replace(strings.TrimSpace(message)) + "\n")
		}
	}
	if *update {
		if err := os.WriteFile("dev/messages.txt", list.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile("dev/messages.txt"); err != nil || !bytes.Equal(kept, list.Bytes()) {
		t.Errorf("messages.txt is stale (%v); write it with: go test ./docs -run TestMessagesAreListed -update", err)
	}
}

func TestMessagesAreFound(t *testing.T) {
	for source, want := range map[string]string{
		"const a = \"it failed\"":                               "it failed",
		"var a = \"no place for \" + name + \" here\"":          "no place for … here",
		"var a = f(\"%s: not \" + `there`)":                     "%s: not there",
		"const a = \"word\"":                                    "",
		"var a = regexp.MustCompile(\"one or two\")":            "",
		"type t struct { A string `the tag` }":                  "",
		"var a = map[string]int{\"the key\": len(b + \"one\")}": "the key",
	} {
		found, err := messagesOf("a.go", "package a\n"+source)
		if err != nil || strings.Join(found, "|") != want {
			t.Errorf("%s: %q, %v, want %q", source, found, err, want)
		}
	}
}
