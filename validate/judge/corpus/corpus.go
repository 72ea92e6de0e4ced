// Package corpus holds the programs that the stage reference runs over the software Metal and the reference pool, one a
// file, each with what must come of it.
package corpus

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mpsforge/internal/suggest"
)

// The groups of programs, each a folder.
const (
	Order     = "order"     // the race detector: programs with and without a race
	Metal     = "metal"     // a rule of Metal each, broken or as close to it as can be
	Pool      = "pool"      // the rules of the pool
	Schedules = "schedules" // small cases over the pool, whose schedules are enumerated
)

// Program is a program in the language of native/script/script.h.
type Program struct {
	Group  string      `json:"group"`
	Name   string      `json:"name"`
	Rules  string      `json:"rules"` // of the pool, that it is an example of; may be empty
	Finds  []string    `json:"finds"` // the planted faults that it is there to find
	Expect Expectation `json:"expect"`
	Freely bool        `json:"freely"` // it forks, or reads the clock, which nothing under the scheduler does
	Text   string      `json:"text"`
}

// A file is a program with a front matter of comments before it: lines "# KEY: VALUE", each key once but finds. The
// program begins behind them and ends before the file's last line feed.
//
//	name    the program's name; in lower case, with hyphens for all but letters and digits, the file's name
//	rules   of the pool, or none
//	finds   a planted fault that the program finds, or none
//	expect  what must come of it; see Expectation
//	runs    freely; optional
//
//go:embed order/*.txt metal/*.txt pool/*.txt schedules/*.txt
var files embed.FS

// ErrNoProgram is returned, wrapped, for a name that no program has.
var ErrNoProgram = errors.New("the corpus has no program")

// Programs are all programs, by group and file name.
var Programs = sync.OnceValues(func() ([]Program, error) { return load(files) })

// FileName is the name of the program's file, without .txt.
func (p Program) FileName() string { return fileName(p.Name) }

// Of returns a group's programs.
func Of(programs []Program, group string) []Program {
	return slices.DeleteFunc(slices.Clone(programs), func(p Program) bool { return p.Group != group })
}

// Find returns the program with a name, as the front matter or the file has it.
func Find(name string) (Program, error) {
	programs, err := Programs()
	if err != nil {
		return Program{}, err
	}
	var names []string
	for _, program := range programs {
		if name == program.Name || name == program.FileName() {
			return program, nil
		}
		names = append(names, program.Name)
	}
	return Program{}, fmt.Errorf("%w %q%s; mpsforge metal run --list names them", ErrNoProgram, name, suggest.Meant(name, names))
}

var notInFileNames = regexp.MustCompile(`[^a-z0-9]+`)

// fileName is the name of a program's file, without .txt.
func fileName(name string) string {
	return strings.Trim(notInFileNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

func load(from fs.FS) ([]Program, error) {
	var programs []Program
	first := map[string]string{} // the file with a name
	for _, group := range []string{Order, Metal, Pool, Schedules} {
		paths, err := fs.Glob(from, group+"/*.txt")
		if err != nil {
			return nil, err
		}
		for _, file := range paths {
			data, err := fs.ReadFile(from, file)
			if err != nil {
				return nil, err
			}
			program, line, err := parse(file, string(data))
			if err != nil {
				return nil, err
			}
			if other, twice := first[program.Name]; twice {
				return nil, fmt.Errorf("corpus/%s:%d: %s has the name %q, too", file, line, other, program.Name)
			}
			first[program.Name] = file
			programs = append(programs, program)
		}
	}
	return programs, nil
}

// none is the value of a key that must be there and says nothing.
const none = "none"

// parse reads a file; it returns the program and the line of its name.
func parse(file, data string) (p Program, nameLine int, err error) {
	number := 0
	wrong := func(format string, args ...any) (Program, int, error) {
		return Program{}, 0, fmt.Errorf("corpus/%s:%d: %w", file, number, fmt.Errorf(format, args...))
	}
	p = Program{Group: path.Dir(file), Finds: []string{}}
	seen := map[string]bool{}
	for strings.HasPrefix(data, "#") {
		number++
		var line string
		line, data, _ = strings.Cut(data, "\n")
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": ")
		if !strings.HasPrefix(line, "# ") || !ok || value == "" || strings.TrimSpace(value) != value {
			return wrong("%q is not a line of a front matter: # KEY: VALUE", line)
		}
		if seen[key] && (key != "finds" || value == none || len(p.Finds) == 0) {
			return wrong("a second %s", key)
		}
		seen[key] = true
		switch key {
		case "name":
			if nameLine = number; fileName(value)+".txt" != path.Base(file) {
				return wrong("the name %q belongs in the file %s.txt", value, fileName(value))
			}
			p.Name = value
		case "rules":
			if value != none {
				p.Rules = value
			}
		case "finds":
			if slices.Contains(p.Finds, value) {
				return wrong("a second %s", line)
			}
			if value != none {
				p.Finds = append(p.Finds, value)
			}
		case "expect":
			if p.Expect, err = ParseExpectation(value); err != nil {
				return wrong("%w", err)
			}
		case "runs":
			if value != "freely" {
				return wrong("runs is %q; only freely, or no such line", value)
			}
			p.Freely = true
		default:
			return wrong("unknown key %q; keys are name, rules, finds, expect and runs", key)
		}
	}
	number++
	for _, key := range []string{"name", "rules", "finds", "expect"} {
		if !seen[key] {
			return wrong("the front matter ends without %s", key)
		}
	}
	text, whole := strings.CutSuffix(data, "\n")
	if strings.TrimSpace(text) == "" || !whole {
		return wrong("there is no program, or it does not end with a line feed")
	}
	p.Text = text
	return p, nameLine, nil
}
