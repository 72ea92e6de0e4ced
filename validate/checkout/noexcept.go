package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/reports"
)

// runtimeFolder holds the streams, guards, events and memory: what runs at the end of guards and threads.
const runtimeFolder = "aten/src/ATen/mps"

// raisers are what raises by itself.
var raisers = regexp.MustCompile(`\b(TORCH_CHECK\w*|TORCH_INTERNAL_ASSERT|rethrow_exception)\s*\(|\bthrow\b`)

// standardMethods are names that types of the standard library have, too: a call on an object says nothing of whose they are.
var standardMethods = []string{"get", "find", "reset", "release", "wait", "lock", "unlock", "erase", "insert", "clear", "size", "push", "pop", "free", "add", "keep", "notify", "stream", "begin", "end"}

// standardCall is a call of one of them.
var standardCall = regexp.MustCompile(`\b(` + strings.Join(standardMethods, "|") + `)\s*\(`)

// knownToEnd are functions that may end the process, and why that is as it should be; file and name.
var knownToEnd = map[string]string{
	"MPSAllocator.h ~MPSHeapAllocatorImpl": "the allocator is never destroyed (pool rule 24)",
	"MPSAllocator.mm ~MPSAllocator":        "the allocator is never destroyed (pool rule 24)",
	"MPSEvent.mm ~MPSEventPool":            "the pool of events is never destroyed (pool rule 24)",
}

// silent is a function that no exception may leave.
type silent struct {
	file, name string
	line       int
	way        []string // what it calls, up to what raises
}

// known gives the reason why the function may end the process, if there is one.
func (f silent) known() (reason string, known bool) {
	reason, known = knownToEnd[path.Base(f.file)+" "+f.name]
	return reason, known
}

// tryBlock finds where a try block begins.
var tryBlock = regexp.MustCompile(`\btry\s*\{`)

// withoutTries blanks the try blocks of a text: what they call cannot leave them, as the sources catch everything there.
func withoutTries(text string) string {
	blanked := []byte(text)
	for _, at := range tryBlock.FindAllStringIndex(text, -1) {
		depth := 0
		for i := at[1] - 1; i < len(text); i++ {
			switch text[i] {
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth == 0 {
				break
			}
			if text[i] != '\n' {
				blanked[i] = ' '
			}
		}
	}
	return string(blanked)
}

// body is a function of the runtime, as this check reads it.
type body struct {
	silent
	quiet  bool // noexcept, or a destructor
	raises bool
	calls  []string
}

// bodiesOf reads one file.
func bodiesOf(file, source string) (bodies []*body) {
	text := blankLiterals(source)
	walkBrackets(text, func(open opened, end int) {
		if open.bracket != '{' || open.name == "" {
			return
		}
		inside := withoutTries(text[open.at : end+1])
		name := unqualified(open.name)
		b := &body{silent: silent{file: file, name: name, line: 1 + strings.Count(text[:open.at], "\n")},
			quiet: slices.Contains(wordsIn(headOf(text, open)), "noexcept") || strings.HasPrefix(name, "~"), raises: raisers.MatchString(inside)}
		for called := range callsIn(inside) {
			if callsOwn(inside, called) {
				b.calls = append(b.calls, called)
			}
		}
		slices.Sort(b.calls)
		bodies = append(bodies, b)
	}, nil)
	return bodies
}

// callsOwn is whether a text calls the name as a function of its own, and not only as a method that standard types have as well.
func callsOwn(text, name string) bool {
	if !slices.Contains(standardMethods, name) {
		return true
	}
	for _, at := range standardCall.FindAllStringSubmatchIndex(text, -1) {
		before := strings.TrimRight(text[:at[0]], " \t\n")
		if text[at[2]:at[3]] != name {
			continue
		}
		if strings.HasSuffix(before, "MPSStreamState::") || before == "" || strings.ContainsRune(";{}(!", rune(before[len(before)-1])) {
			return true
		}
	}
	return false
}

// loudFunctions finds functions that no exception may leave, and that reach what raises.
func loudFunctions(dir string) (found []silent, read int, err error) {
	byName := map[string][]*body{}
	var all []*body
	if _, err = eachSource(dir, []string{runtimeFolder}, func(file, text string) { all = append(all, bodiesOf(file, text)...) }); err != nil {
		return nil, 0, err
	}
	for _, b := range all {
		byName[b.name] = append(byName[b.name], b)
	}
	for _, b := range all {
		if !b.quiet {
			continue
		}
		read++
		if way := wayToRaise(b, byName, map[*body]bool{}); way != nil {
			b.way = way
			found = append(found, b.silent)
		}
	}
	return found, read, nil
}

// wayToRaise is the calls by which a function reaches what raises, or nil. A quiet function on the way is a finding of its own.
func wayToRaise(b *body, byName map[string][]*body, seen map[*body]bool) []string {
	if seen[b] {
		return nil
	}
	seen[b] = true
	if b.raises {
		return []string{b.name}
	}
	for _, name := range b.calls {
		for _, called := range byName[name] {
			if called.quiet {
				continue
			}
			if way := wayToRaise(called, byName, seen); way != nil {
				return append([]string{b.name}, way...)
			}
		}
	}
	return nil
}

// checkSilentFunctions adds the verdict on a checkout: no function that an exception may not leave reaches what raises.
func checkSilentFunctions(dir string, report *reports.Stage) error {
	const name = "an exception where none may be"
	pool, err := os.ReadFile(filepath.Join(dir, runtimeFolder, "MPSStreamPool.h"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !strings.Contains(string(pool), "deferMPSError") {
		report.Add(reports.Check{Name: name, Subject: "checkout", Rule: "31", Verdict: reports.Skipped, Detail: "the patch deferred-errors is not applied"})
		return nil
	}
	found, read, err := loudFunctions(dir)
	if err != nil {
		return err
	}
	report.Count("functions that no exception may leave", int64(read))
	failed := 0
	for _, f := range found {
		check := reports.Check{Name: name, Subject: fmt.Sprintf("%s:%d", f.file, f.line), Rule: "31", Verdict: reports.Failed,
			Detail: fmt.Sprintf("%s is noexcept or a destructor, and an exception would end the process: %s raises. Catch it and keep it (deferMPSError)", f.name, strings.Join(f.way, " > "))}
		if reason, known := f.known(); known {
			check.Verdict, check.Detail = reports.Passed, f.name+": "+reason
		} else {
			failed++
		}
		report.Add(check)
	}
	if failed == 0 {
		report.Add(reports.Check{Name: name, Subject: "checkout", Rule: "31", Verdict: reports.Passed, Detail: "no function that is noexcept, and no destructor, reaches what raises, outside of a try block"})
	}
	return nil
}
