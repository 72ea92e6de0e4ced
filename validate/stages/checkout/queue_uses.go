package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/reports"
)

// queueRunners are the calls that run the block they are given on the stream's queue.
var queueRunners = []string{"dispatch_sync", "dispatch_sync_with_rethrow", "dispatch_async", "runOnStreamQueue", "runAndAwait", "runCommandBlock"}

// onQueueFunction is a function that fetches a stream's encoder or command buffer outside any block of its own, with the
// reason why that happens on the queue nevertheless.
type onQueueFunction struct{ file, function, reason string }

// onQueueFunctions are those of the patched sources.
var onQueueFunctions = []onQueueFunction{
	{"aten/src/ATen/mps/MPSStream.mm", "MPSStream::commandEncoder", "called off the queue, it goes to the queue first (rule 10)"},
	{"aten/src/ATen/mps/MPSStream.mm", "MPSStream::commit", "private; called by MPSStream::synchronize alone, which goes to the queue first"},
	{"aten/src/ATen/native/mps/OperationUtils.mm", "blockEncoder",
		"the stream of the block that the thread is in; outside any block commandEncoder() goes to the queue itself"},
}

// queueUse is one call of commandEncoder() or commandBuffer().
type queueUse struct {
	file     string
	line     int
	call     string
	function string // that it is in
	onQueue  bool   // it is in a block that a queueRunner runs
}

// eachSource calls read with each source of folders of the checkout in dir, and says how many there are.
func eachSource(dir string, folders []string, read func(file, text string)) (files int, err error) {
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(dir, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains([]string{".h", ".mm", ".cpp"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			files++
			read(filepath.ToSlash(relative), string(text))
			return nil
		})
		// A checkout may hold only a part of PyTorch.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("read the MPS backend of %s: %w", dir, err)
		}
	}
	return files, nil
}

// checkQueueUses adds the verdict on a checkout: every use of an encoder or a command buffer is on its stream's queue.
func checkQueueUses(dir string, folders []string, report *reports.Stage) error {
	var uses []queueUse
	files, err := eachSource(dir, folders, func(file, text string) { uses = append(uses, queueUses(file, text)...) })
	if err != nil {
		return err
	}
	report.Count("files searched for uses off the queue", int64(files))
	report.Count("uses of encoders and command buffers", int64(len(uses)))
	outside := 0
	for _, use := range uses {
		if use.onQueue {
			continue
		}
		outside++
		check := reports.Check{Name: "use off the queue", Subject: fmt.Sprintf("%s:%d", use.file, use.line), Rule: "10", Verdict: reports.Failed,
			Detail: fmt.Sprintf("%s() in %s is outside every block on the stream's queue", use.call, use.function)}
		if i := slices.IndexFunc(onQueueFunctions, func(f onQueueFunction) bool { return f.file == use.file && f.function == use.function }); i >= 0 {
			check.Verdict = reports.Passed
			check.Detail = fmt.Sprintf("%s() in %s: %s", use.call, use.function, onQueueFunctions[i].reason)
		}
		report.Add(check)
	}
	if outside == 0 {
		report.Add(clean("use off the queue", "10", len(uses), "use of an encoder or a command buffer",
			"every encoder and command buffer is fetched in a block on its stream's queue"))
	}
	return nil
}

// opened is a bracket that is not closed yet.
type opened struct {
	bracket byte
	at      int
	name    string // '(': what is called or declared; '{': the function whose body it opens, if it does
	onQueue bool   // '{': the body of a block that a queueRunner is given
}

// queueUses reads one file. It needs no compiler: brackets are matched in the text without comments, strings and shaders.
func queueUses(file, source string) []queueUse {
	text := blankLiterals(source)
	var uses []queueUse
	walkBrackets(text, nil, func(begin, end int, within []opened) {
		word := text[begin:end]
		if word != "commandEncoder" && word != "commandBuffer" || !isCall(text, begin, end) {
			return
		}
		use := queueUse{file: file, line: 1 + strings.Count(text[:begin], "\n"), call: word, function: "no function"}
		for _, o := range within {
			if o.bracket == '{' && o.name != "" {
				use.function = o.name
			}
			use.onQueue = use.onQueue || o.onQueue
		}
		uses = append(uses, use)
	})
	return uses
}

// isCall distinguishes a call from a definition, a declaration and a variable.
func isCall(text string, begin, end int) bool {
	if rest := strings.TrimLeft(text[end:], " \t\n"); !strings.HasPrefix(rest, "(") {
		return false
	}
	before := strings.TrimRight(text[:begin], " \t\n")
	switch {
	case before == "":
		return false
	case strings.HasSuffix(before, "->"), strings.HasSuffix(before, "return"):
		return true
	}
	// A type, the rest of a type, or the class of a definition are before a name that is declared.
	last := before[len(before)-1]
	return !isWord(last) && !strings.ContainsRune("*&>:", rune(last))
}

// bodyAt says what the brace at i opens.
func bodyAt(text string, i int, stack []opened, closed map[int]opened) opened {
	o := opened{bracket: '{', at: i}
	before := strings.TrimRight(text[:i], " \t\n")
	block := strings.HasSuffix(before, "^")
	if at := len(before) - 1; !block && strings.HasSuffix(before, ")") {
		if parameters, ok := closed[at]; ok {
			head := strings.TrimRight(text[:parameters.at], " \t\n")
			block = strings.HasSuffix(head, "^")
		}
	}
	if block {
		for j := len(stack) - 1; j >= 0 && stack[j].bracket != '{'; j-- {
			if stack[j].bracket == '(' {
				o.onQueue = slices.Contains(queueRunners, unqualified(stack[j].name))
				break
			}
		}
		return o
	}
	for _, enclosing := range stack {
		if enclosing.name != "" && enclosing.bracket == '{' || enclosing.bracket == '(' {
			return o // within a function, or an initializer in a call
		}
	}
	for trimmed := ""; trimmed != before; {
		trimmed = before
		for _, word := range []string{"const", "noexcept", "override", "final"} {
			before = strings.TrimRight(strings.TrimSuffix(before, word), " \t\n")
		}
	}
	for {
		last, ok := closed[len(before)-1]
		if !ok || last.bracket != '(' {
			return o
		}
		o.name = last.name
		// A constructor's members are between its parameters and its body.
		head := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(text[:last.at], " \t\n"), last.name), " \t\n")
		if !strings.HasSuffix(head, ",") && (!strings.HasSuffix(head, ":") || strings.HasSuffix(head, "::")) {
			return o
		}
		before = strings.TrimRight(head[:len(head)-1], " \t\n")
	}
}

// nameBefore gives the name, qualified or not, that ends before i.
func nameBefore(text string, i int) string {
	end := len(strings.TrimRight(text[:i], " \t\n"))
	begin := end
	for begin > 0 && (isWord(text[begin-1]) || text[begin-1] == ':' || text[begin-1] == '~') {
		begin--
	}
	name := strings.Trim(text[begin:end], ":")
	if slices.Contains([]string{"if", "for", "while", "switch", "catch"}, name) {
		return ""
	}
	return name
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// blankLiterals replaces comments, strings, raw strings and character literals by spaces; lines stay where they are.
func blankLiterals(source string) string {
	text := []byte(source)
	blank := func(from, to int) {
		for i := from; i < min(to, len(text)); i++ {
			if text[i] != '\n' {
				text[i] = ' '
			}
		}
	}
	through := func(from int, end string) int {
		if at := strings.Index(source[min(from, len(source)):], end); at >= 0 {
			return from + at + len(end)
		}
		return len(source)
	}
	for i := 0; i < len(source); i++ {
		end := i
		switch {
		case strings.HasPrefix(source[i:], "//"):
			end = through(i, "\n") - 1
		case strings.HasPrefix(source[i:], "/*"):
			end = through(i+2, "*/")
		case strings.HasPrefix(source[i:], `R"`) && (i == 0 || !isWord(source[i-1])):
			if delimiter, _, found := strings.Cut(source[i+2:], "("); found {
				end = through(i, ")"+delimiter+`"`)
			}
		case source[i] == '"', source[i] == '\'' && (i == 0 || !isWord(source[i-1])):
			end = i + 1
			for end < len(source) && source[end] != source[i] && source[end] != '\n' {
				if source[end] == '\\' {
					end++
				}
				end++
			}
			end++
		}
		if end > i {
			blank(i, end)
			i = end - 1
		}
	}
	return string(text)
}
