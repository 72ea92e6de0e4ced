package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// design is a name of what the design consists of.
	design = regexp.MustCompile(`\b(SPEC-\w+(?:\.md)?|DESIGN\.md|(?:shared|facts|seeds)/[\w./-]*\w)`)
	// citation is that, a document, or a path that begins with a folder of the repository.
	citation = regexp.MustCompile("(?:^|[\\s`'\"(])((?:\\./)?(?:shared|facts|seeds|docs|cmd|patches|fork|validate|native|reports|ci|internal)/[\\w./-]*\\w|SPEC-\\w+(?:\\.md)?|\\w+\\.md)\\b")
)

// madeByCommands are paths in examples that a command makes.
var madeByCommands = []string{"patches/main", "COMMANDS.md"}

// TestTextsCiteOnlyWhatIsThere looks for documents and files that a text for users names and the repository lacks: those who
// have cloned it have nothing else. Help texts are in COMMANDS.md; messages, questions and titles are strings of the sources.
func TestTextsCiteOnlyWhatIsThere(t *testing.T) {
	top := filepath.Join("..", "..")
	check := func(place, text string, cited *regexp.Regexp) {
		for _, match := range cited.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(top, match[1])); err != nil && !slices.Contains(madeByCommands, match[1]) {
				t.Errorf("%s cites %s, which is not in the repository", place, match[1])
			}
		}
	}
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || filepath.Dir(path) == top && (name == "build" || name == "pytorch")):
			return filepath.SkipDir // of another purpose, or not ours
		case strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".tmpl"):
			text, err := os.ReadFile(path)
			check(path, string(text), citation)
			return err
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if text, found := node.(*ast.BasicLit); found && text.Kind == token.STRING {
					check(path, text.Value, design)
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
