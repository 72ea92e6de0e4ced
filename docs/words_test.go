package docs

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

//go:embed words.tsv
var avoided string

var (
	cComment  = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"`)
	pyComment = regexp.MustCompile(`(?s)""".*?"""|#[^\n]*`)
)

// word is one to avoid.
type word struct {
	pattern      *regexp.Regexp
	instead, why string
	fine         []string // phrases in which it is fine
}

func readWords(table string) (words []word, err error) {
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 && len(fields) != 4 {
			return nil, fmt.Errorf("%q has not three or four fields", line)
		}
		pattern, err := regexp.Compile("(?i)" + fields[0])
		if err != nil {
			return nil, err
		}
		w := word{pattern: pattern, instead: fields[1], why: fields[2]}
		if len(fields) == 4 {
			w.fine = strings.Split(fields[3], "; ")
		}
		words = append(words, w)
	}
	return words, nil
}

// textsOf are the parts of a file that people read, by line number: all of Markdown, comments and strings of programs. Strings of
// Go's tests are input for the code under test.
func textsOf(file, text string) (map[int]string, error) {
	texts := map[int]string{}
	all := func(pattern *regexp.Regexp) {
		for _, found := range pattern.FindAllStringIndex(text, -1) {
			texts[1+strings.Count(text[:found[0]], "\n")] += text[found[0]:found[1]]
		}
	}
	switch path.Ext(file) {
	case ".md":
		texts[1] = text
	case ".py":
		all(pyComment)
	case ".cc", ".h", ".m", ".mm":
		all(cComment)
	case ".go":
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		add := func(node ast.Node, text string) { texts[files.Position(node.Pos()).Line] += text + "\n" }
		for _, group := range parsed.Comments {
			for _, comment := range group.List {
				add(comment, comment.Text)
			}
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING && !strings.HasSuffix(file, "_test.go") {
				add(literal, literal.Value)
			}
			return true
		})
	}
	return texts, nil
}

// findWords reports each use of a word to avoid.
func findWords(words []word, file, text string) (problems []string, err error) {
	texts, err := textsOf(file, text)
	if err != nil {
		return nil, err
	}
	for first, text := range texts {
		for i, line := range strings.Split(text, "\n") {
			for _, w := range words {
				rest := line
				for _, phrase := range w.fine {
					rest = strings.ReplaceAll(rest, phrase, "")
				}
				if found := w.pattern.FindString(rest); found != "" {
					problems = append(problems, fmt.Sprintf("%s:%d: %q: write %s (%s): %s", file, first+i, found, w.instead, w.why, strings.TrimSpace(line)))
				}
			}
		}
	}
	return problems, nil
}

// What people read says things in plain words (docs/words.tsv).
func TestWordsArePlain(t *testing.T) {
	words := require.One(readWords(avoided))(t)
	for file, text := range tracked(t) {
		if strings.Contains(file, "/testdata/") || strings.HasPrefix(file, "validate/judge/corpus/programs/") || strings.HasPrefix(file, "patches/v") {
			continue
		}
		problems := require.One(findWords(words, file, text))(t)
		for _, problem := range problems {
			t.Error(problem)
		}
	}
}

func TestPlantedWordsAreFound(t *testing.T) {
	words := require.One(readWords(avoided))(t)
	for name, c := range map[string]struct {
		file, text string
		line       string // of the finding; empty: there is none
	}{
		"a document":               {"a.md", "One.\nIt can not be.", "a.md:2:"},
		"a comment of Go":          {"a.go", "package a\n\n// f tells how.\nfunc f() {}\n", "a.go:3:"},
		"a message of Go":          {"a.go", "package a\n\nconst a = `one\nmended`\n", "a.go:4:"},
		"a docstring":              {"a.py", "\n\"\"\"What\nstands here.\"\"\"\n", "a.py:3:"},
		"a comment of C++":         {"a.cc", "int a;\n// The veneer.\n", "a.cc:2:"},
		"a name in Go":             {"a.go", "package a\n\nfunc told() {}\n", ""},
		"a string of a test in Go": {"a_test.go", "package a\n\nconst a = `told`\n", ""},
		"a phrase that is fine":    {"a.md", "A file that stands in for another.", ""},
	} {
		found, err := findWords(words, c.file, c.text)
		if err != nil || len(found) > 1 || strings.Join(found, "") != "" != (c.line != "") || !strings.HasPrefix(strings.Join(found, ""), c.line) {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}
