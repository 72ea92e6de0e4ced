package upstream

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mpsforge/internal/words"
	"mpsforge/native/script"
	"mpsforge/validate/judge/crash"
	"mpsforge/validate/judge/nativefunctions"
)

// end is what a test's end means: whether it is what PyTorch's suite expects on a Mac and, where it is not, why.
type end struct {
	kind  kind
	cause string // of a bad end: "GROUP" or "GROUP: NAME"
}

// kind says in one word or two how a test ended.
type kind string

// The kinds. The first three are what the suite itself expects.
const (
	passed            kind = "passed"
	expectedFailure   kind = "expected failure"
	skipped           kind = "skipped"
	failed            kind = "failed" // an assertion of the test
	raised            kind = "error"
	crashed           kind = "crash"
	hung              kind = "hang"
	tooMuchMemory     kind = "memory"
	unexpectedSuccess kind = "unexpected success"
	foreignSkip       kind = "skipped from outside"         // by a condition that is not in the test's file
	foreignFailure    kind = "expected failure, host build" // it fails as expected, but for a reason that a Mac does not have
	offDevice         kind = "did not use mps"              // a test of another device that was to be pointed at mps
	found             kind = "finding"                      // it ended as expected, and the software Metal found something
)

// kinds in the order of tables.
var kinds = []kind{passed, expectedFailure, skipped, foreignSkip, foreignFailure, unexpectedSuccess, failed, raised, crashed, hung, tooMuchMemory,
	offDevice, found}

// expected reports whether the suite expects this end on a Mac.
func (e end) expected() bool {
	return e.kind == passed || e.kind == expectedFailure || e.kind == skipped
}

func (e end) String() string {
	if e.cause == "" {
		return string(e.kind)
	}
	return fmt.Sprintf("%s (%s)", e.kind, e.cause)
}

// group is the part of a cause that says what kind of thing is missing or wrong.
func group(cause string) string {
	name, _, _ := strings.Cut(cause, ": ")
	return name
}

// The groups of causes. What begins with one of host is missing from the host build alone, so that no Mac has it.
const (
	missingKernel   = "missing kernel"
	missingOperator = "not implemented on the host build's MPS"
	missingPackage  = "missing Python package"
	notOnMac        = "not implemented for MPS, on a Mac neither"
	otherValues     = "differs from expected values"
	macSpecific     = "macOS specifics"
)

// causes are recognised by what an exception says, the first that matches; its first group, or the one given, is the name.
var causes = []struct {
	group string
	words *regexp.Regexp
	name  string
}{
	{missingKernel, regexp.MustCompile(`mpsforge has no host kernel for the Metal function (\w+)`), ""},
	{missingKernel, regexp.MustCompile(`Failed to create function state object for: (\w+)`), ""},
	{missingOperator, regexp.MustCompile(`The operator '([\w:.]+)' is not currently implemented for the MPS device`), ""},
	{missingOperator, regexp.MustCompile(`DispatchStub\.cpp.* An unexpected device type was provided mps`), "a kernel of a dispatch stub"},
	{missingOperator, regexp.MustCompile(`host build: ([^\n]+)`), ""},
	{missingPackage, regexp.MustCompile(`No module named '?([\w.]+)`), ""},
	{missingPackage, regexp.MustCompile(`(?i)(?:requires|needs|no|not found:?) (scipy|sklearn|librosa|numba|cv2|PIL|torchvision)\b`), ""},
	{missingPackage, regexp.MustCompile(`(?i)\b(scipy|torchvision|numba|librosa) (?:is )?not (?:found|available|installed)`), ""},
	{macSpecific, regexp.MustCompile(`\b(sysctl|xcrun|os_signpost|MTLCaptureManager|coremltools)\b`), ""},
	{otherValues, regexp.MustCompile(`^(?:Tensor-likes|Scalars|Booleans|None|Object|String|The values for attribute)[^\n]*(?:not close|not ` +
		`equal|mismatch|differ|do not match)`), ""},
	{otherValues, regexp.MustCompile(`^(?:Tensor-likes|Scalars|Booleans) `), ""},
}

// judge says what an end means. onMac are the operators that have a kernel for MPS on a Mac.
func judge(e ended, onMac map[string]bool) end {
	judged := judgeOutcome(e, onMac)
	if e.Unused && (judged.kind == passed || judged.kind == expectedFailure) {
		return end{offDevice, string(offDevice)}
	}
	if judged.expected() && len(e.Findings) > 0 {
		return end{found, findingCause(e.Findings[0])}
	}
	return judged
}

func judgeOutcome(e ended, onMac map[string]bool) end {
	switch e.Outcome {
	case "passed":
		return end{kind: passed}
	case "skipped":
		if cause, host := causeOf(e, onMac); host {
			return end{foreignSkip, cause}
		}
		if !e.Own {
			return end{foreignSkip, "skipped by a condition outside the test's file: " + plain(e.Text)}
		}
		return end{kind: skipped}
	case "expected failure":
		if cause, host := causeOf(e, onMac); host {
			return end{foreignFailure, cause}
		}
		return end{kind: expectedFailure}
	case "unexpected success":
		return end{unexpectedSuccess, string(unexpectedSuccess)}
	case "crash":
		// An exception that no one catches ends the process.
		if cause, host := causeOf(ended{Text: e.Output}, onMac); host {
			return end{crashed, cause}
		}
		return end{crashed, "crash: " + crashName(e)}
	case "hang":
		return end{hung, string(hung)}
	case "memory":
		return end{tooMuchMemory, "too much memory"}
	case "failed", "error":
		cause, _ := causeOf(e, onMac)
		if e.Type == "AssertionError" {
			return end{failed, cause}
		}
		return end{raised, cause}
	}
	return end{raised, fmt.Sprintf("suite.py reported an outcome that this mpsforge does not know: %s", e.Outcome)}
}

// causeOf names why an exception was raised, and says whether only the host build has that reason.
func causeOf(e ended, onMac map[string]bool) (cause string, host bool) {
	for _, c := range causes {
		match := c.words.FindStringSubmatch(e.Text)
		if match == nil {
			continue
		}
		name := ""
		if c.name != "" {
			name = ": " + c.name
		} else if len(match) > 1 {
			name = ": " + plain(match[1])
		}
		if c.group == missingOperator && strings.HasPrefix(match[0], "The operator") && !onMac[match[1]] {
			return notOnMac + name, false
		}
		return c.group + name, c.group == missingKernel || c.group == missingOperator || c.group == missingPackage
	}
	return plain(strings.TrimSpace(e.Type + ": " + e.Text)), false
}

// numbers vary from run to run; a cause is the same.
var numbers = regexp.MustCompile(`0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?`)

// plain is the first line of a text, short, without numbers.
func plain(text string) string {
	line := []rune(words.FirstLine(strings.TrimSpace(text)))
	if len(line) > 160 {
		line = append(line[:160], '…')
	}
	text = string(line)
	if regexp.MustCompile(`^[\w:.]+$`).MatchString(text) { // a name
		return text
	}
	return numbers.ReplaceAllString(text, "N")
}

func findingCause(f script.Finding) string { return string(f.Kind) + ": " + plain(f.Message) }

var backtrace = regexp.MustCompile(`(?m)^(?:frame #\d+:|Exception raised from) .*\n?`)

// crashName is the crash's signature, or what the process said before it died.
func crashName(e ended) string {
	if found, err := crash.Read("output", []byte(e.Output)); err == nil && len(found.Matches) > 0 {
		return found.Matches[0].Signature
	}
	before, _, _ := strings.Cut(e.Output, "\nFatal Python error")
	// What the exception of PyTorch's says about its place holds folders of the cache.
	before = strings.TrimSpace(backtrace.ReplaceAllString(before, ""))
	if line := words.LastLines(before, 1); line != "" && len(before) < len(e.Output) {
		return plain(line)
	}
	return plain(e.Text)
}

// pythonKernel is how torch/backends/mps/__init__.py registers a kernel that is written in Python.
var pythonKernel = regexp.MustCompile(`\.impl\("(\w+)", \w+, "MPS"\)`)

// operatorsOnMac are the operators with a kernel for MPS: by native_functions.yaml those whose dispatch names MPS and those that
// are structured by one, and by the package torch.backends.mps those that it registers. What a C++ source registers manually is
// not among them.
func operatorsOnMac(operators []nativefunctions.Operator, python string) map[string]bool {
	own := map[string]bool{}
	for _, o := range operators {
		for _, keys := range o.Kernels {
			if slices.Contains(keys, "MPS") {
				own["aten::"+o.Name] = true
			}
		}
	}
	for _, o := range operators {
		if own["aten::"+o.Delegate] {
			own["aten::"+o.Name] = true
		}
	}
	for _, match := range pythonKernel.FindAllStringSubmatch(python, -1) {
		own["aten::"+match[1]] = true
	}
	return own
}
