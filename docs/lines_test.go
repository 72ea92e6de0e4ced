package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

const (
	mostColumns     = 160 // of a line of Go, a tab as four
	mostLines       = 600 // of a file of code
	mostOfAFunction = 80  // lines, of Go's that are no tests
)

// unbreakable is what may make a line long: an address, and directives that Go reads from one line.
var unbreakable = regexp.MustCompile(`https://[^"]{60}|^//go:|^// #cgo`)

// longLines are the lines of a file of Go with too many columns. What a raw string holds is another language's.
func longLines(text string) (lines []int) {
	raw := map[int]bool{}
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			break
		}
		if kind == token.STRING && literal[0] == '`' {
			for i := range 1 + strings.Count(literal, "\n") {
				raw[file.Line(at)+i] = strings.Contains(literal, "\n")
			}
		}
	}
	for i, line := range strings.Split(text, "\n") {
		if len([]rune(strings.ReplaceAll(line, "\t", "    "))) > mostColumns && !raw[i+1] && !unbreakable.MatchString(strings.TrimSpace(line)) {
			lines = append(lines, i+1)
		}
	}
	return lines
}

// longFunctions are those with too many lines. One that is more table than code is a table.
func longFunctions(file, text string) (names []string, err error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, 0)
	if err != nil {
		return nil, err
	}
	linesOf := func(node ast.Node) int { return files.Position(node.End()).Line - files.Position(node.Pos()).Line + 1 }
	for _, declared := range parsed.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok || linesOf(function) <= mostOfAFunction {
			continue
		}
		inTables := 0
		ast.Inspect(function, func(node ast.Node) bool {
			table, ok := node.(*ast.CompositeLit)
			if ok {
				inTables += linesOf(table)
			}
			return !ok
		})
		if 2*inTables < linesOf(function) {
			names = append(names, function.Name.Name)
		}
	}
	return names, nil
}

// A line that has to be scrolled, and a file or function that nobody reads to its end, hide what they hold.
func TestLinesAndFilesAreShort(t *testing.T) {
	for file, text := range tracked(t) {
		switch path.Ext(file) {
		case ".go":
			for _, line := range longLines(text) {
				t.Errorf("%s:%d has more than %d columns: break it", file, line, mostColumns)
			}
			if strings.HasSuffix(file, "_test.go") {
				break
			}
			functions := require.One(longFunctions(file, text))(t)
			for _, name := range functions {
				t.Errorf("%s: %s has more than %d lines: divide it", file, name, mostOfAFunction)
			}
		case ".cc", ".h", ".m", ".mm", ".py", ".sh":
		default:
			continue
		}
		if lines := strings.Count(text, "\n"); lines > mostLines {
			t.Errorf("%s has %d lines, %d are the most: divide it", file, lines, mostLines)
		}
	}
}

func TestPlantedLongLinesAreFound(t *testing.T) {
	long := strings.Repeat("x", mostColumns-10)
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"a string":                  {"package a\n\nconst b = \"" + long + "\"\n", "[3]"},
		"tabs":                      {"package a\n\nfunc b() {\n\t\t\treturn \"" + long[:mostColumns-20] + "\"\n}\n", "[4]"},
		"a comment":                 {"package a\n\n// " + long + " and more\n", "[3]"},
		"a raw string of one line":  {"package a\n\nconst b = `" + long + "`\n", "[3]"},
		"a raw string of two lines": {"package a\n\nconst b = `\n" + long + long + "\n`\n", "[]"},
		"an address":                {"package a\n\nconst b = \"https://" + long + "\"\n", "[]"},
		"short lines":               {"package a\n", "[]"},
	} {
		require.Equal(t, fmt.Sprint(longLines(c.text)), c.want, name, "lines")
	}
	for name, c := range map[string]struct{ text, want string }{
		"a long function": {"package a\n\nfunc b() {\n" + strings.Repeat("\tc()\n", mostOfAFunction) + "}\n", "[b]"},
		"a table":         {"package a\n\nfunc b() []int {\n\treturn []int{\n" + strings.Repeat("\t\t1,\n", mostOfAFunction) + "\t}\n}\n", "[]"},
	} {
		if found, err := longFunctions("a.go", c.text); err != nil || fmt.Sprint(found) != c.want {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}
