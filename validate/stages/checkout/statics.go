package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/reports"
)

// shaderUtils has the library of all shaders; the patch thread-leases makes it one that is never destroyed.
const shaderUtils = "aten/src/ATen/native/mps/OperationUtils.mm"

// lasting is an object of static storage that ends with the process.
type lasting struct {
	file, name, text string
	line             int
}

// endsUnused are objects that are destroyed, or may be, with the reason why no thread needs them then.
var endsUnused = []struct{ file, name, reason string }{
	{"OperationUtils.mm", "fast_math", "what its lambda gives is a bool"},
}

var (
	staticWord = regexp.MustCompile(`\bstatic\s[^;{}()=]*`)
	namespaced = regexp.MustCompile(`\b(?:namespace(?:\s+[\w:]+)?|extern)\s*$`)
	// plainObject has no destructor: numbers, pointers, and id, which is a pointer here, without ARC.
	plainObject = regexp.MustCompile(`\bconstexpr\b|\bvoid\b|\*\s*(?:const\s+)?\w+$|\bid<\w+>\s+\w+$|` +
		`^(?:(?:static|inline|const|volatile)\s+)*(?:unsigned\s+)?(?:bool|char|int|float|double|long|u?int\d+_t|size_t|std::atomic<\w+>|dispatch_\w+_t)\s`)
	// neverDestroyed is what a reference may be bound to: an object that nobody deletes, or the one that a function gives.
	neverDestroyed = regexp.MustCompile(`^\s*=\s*(?:\*\s*new\b|(?:\w+::)+get\w*\(\s*\)\s*;)`)
	pointerToNew   = regexp.MustCompile(`^\s*=\s*new\b`)
	parameter      = regexp.MustCompile(`[\w>][&*\s]+\w+\s*(?:,|=|$)`)
	fileObject     = regexp.MustCompile(`^(?:(?:const|inline)\s+)*(?:\w+::)*\w+(?:<[^;{}()=]*>)?[\s&]+\w+$`)
	noObject       = regexp.MustCompile(`^(?:static|struct|class|enum|union|using|typedef|template|extern|namespace|return|friend)\b`)
)

// lastingObjects finds them in one file, by its text alone.
func lastingObjects(file, source string) (found []lasting) {
	text := directive.ReplaceAllStringFunc(blankLiterals(source), func(line string) string {
		return strings.Repeat("\n", strings.Count(line, "\n")) + strings.Repeat(" ", len(line)-strings.Count(line, "\n"))
	})
	add := func(begin, end int) {
		declaration := strings.Join(strings.Fields(text[begin:end]), " ")
		if isFunction(text[end:], source[end:]) || destroyedNever(declaration, text[end:]) {
			return
		}
		words := wordsIn(declaration)
		found = append(found, lasting{file: file, line: 1 + strings.Count(text[:begin], "\n"), name: words[len(words)-1], text: declaration})
	}
	for _, at := range staticWord.FindAllStringIndex(text, -1) {
		add(at[0], at[1])
	}
	outside := outsideOfBodies(text)
	for begin := 0; begin < len(outside); {
		end := begin + strings.IndexAny(outside[begin:]+";", ";}")
		statement := outside[begin:end]
		begin += len(statement) - len(strings.TrimLeft(statement, " \t\n"))
		name := begin + strings.IndexAny(outside[begin:end]+";", ";{(=")
		if declaration := strings.TrimSpace(outside[begin:name]); fileObject.MatchString(declaration) && !noObject.MatchString(declaration) {
			add(begin, name)
		}
		begin = end + 1
	}
	return found
}

// outsideOfBodies blanks what is in braces, but those of namespaces, which become ends of statements.
func outsideOfBodies(text string) string {
	outside := []byte(text)
	walkBrackets(text, func(open opened, end int) {
		if open.bracket != '{' {
			return
		}
		if namespaced.MatchString(text[max(0, open.at-200):open.at]) {
			outside[open.at], outside[end] = ';', ';'
			return
		}
		for i := open.at + 1; i < end; i++ {
			if outside[i] != '\n' {
				outside[i] = ' '
			}
		}
	}, nil)
	return string(outside)
}

// isFunction says whether what follows a name in a declaration, here without literals and as written, makes it a function's.
func isFunction(rest, written string) bool {
	if !strings.HasPrefix(rest, "(") {
		return rest == "" || !strings.ContainsRune(";={", rune(rest[0]))
	}
	depth := 0
	for i, c := range rest {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				inside := strings.TrimSpace(rest[1:i])
				return !strings.HasPrefix(strings.TrimSpace(rest[i+1:]), ";") || strings.TrimSpace(written[1:i]) == "" || parameter.MatchString(inside)
			}
		}
	}
	return true
}

// destroyedNever says whether a declaration, with what comes behind its name, leaves nothing that the end of the process destroys.
func destroyedNever(declaration, rest string) bool {
	switch words := wordsIn(declaration); {
	case slices.Contains(words, "thread_local"): // ends with its thread
		return true
	case strings.Contains(declaration, "&"):
		return neverDestroyed.MatchString(rest)
	case slices.Contains(words, "auto") && pointerToNew.MatchString(rest):
		return true
	}
	return plainObject.MatchString(declaration)
}

// checkStatics adds the verdict on a checkout: no object that operators use is destroyed at the end of the process.
func checkStatics(dir string, report *reports.Stage) error {
	const name = "an object that ends with the process"
	utils, err := os.ReadFile(filepath.Join(dir, shaderUtils))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !strings.Contains(string(utils), "*new BundledShaderLibary") {
		report.Add(reports.Check{Name: name, Subject: "checkout", Rule: "24", Verdict: reports.Skipped,
			Detail: "the library of shaders is destroyed at the end of the process: the patch thread-leases is not applied"})
		return nil
	}
	var objects []lasting
	files, err := eachSource(dir, kernelFolders, func(file, text string) { objects = append(objects, lastingObjects(file, text)...) })
	if err != nil {
		return err
	}
	failed := 0
	for _, o := range objects {
		check := reports.Check{Name: name, Subject: fmt.Sprintf("%s:%d", o.file, o.line), Rule: "24", Verdict: reports.Passed}
		if reason := o.unused(); reason != "" {
			check.Detail = o.text + ": no fault, as " + reason
		} else {
			failed++
			check.Verdict = reports.Failed
			check.Detail = o.text + ": the end of the process destroys it, while other threads may still compute. Bind a reference to an object " +
				"that nobody deletes: static auto& " + o.name + " = *new ..."
		}
		report.Add(check)
	}
	if failed == 0 {
		report.Add(clean(name, "24", files, "source of an operator", "no object of the operators' files that has a destructor ends with the process"))
	}
	return nil
}

// unused gives the reason why no thread needs the object when it ends, if there is one.
func (o lasting) unused() string {
	for _, row := range endsUnused {
		if filepath.Base(o.file) == row.file && o.name == row.name {
			return row.reason
		}
	}
	return ""
}
