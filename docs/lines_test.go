package docs

import (
	"fmt"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

const (
	mostColumns = 160 // of a line of Go, a tab as four
	mostLines   = 600 // of a file of code
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

// A line that has to be scrolled and a file that nobody reads to its end hide what they hold.
func TestLinesAndFilesAreShort(t *testing.T) {
	for file, text := range tracked(t) {
		switch path.Ext(file) {
		case ".go":
			for _, line := range longLines(text) {
				t.Errorf("%s:%d has more than %d columns: break it", file, line, mostColumns)
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
		if found := fmt.Sprint(longLines(c.text)); found != c.want {
			t.Errorf("%s: lines %s, want %s", name, found, c.want)
		}
	}
}
