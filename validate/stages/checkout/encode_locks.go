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

const utilsHeader = "aten/src/ATen/native/mps/OperationUtils.h"

// kernelFolders hold what encodes kernels of Apple's.
var kernelFolders = []string{"aten/src/ATen/native/mps", "aten/src/ATen/native/sparse/mps"}

// serialKernels are what two threads must not encode at once: the class of a kernel, or the pipeline of one, and its enumerator of SerialEncode.
var serialKernels = map[string]string{
	"MPSNDArrayMatrixMultiplication": "NDArrayMatrixMultiplication",
	"MPSNDArrayIdentity":             "NDArrayIdentity",
	"MPSMatrixDecompositionLU":       "MatrixDecompositionLU",
	"MPSMatrixSolveLU":               "MatrixSolveLU",
	"MPSMatrixSolveTriangular":       "MatrixSolveTriangular",
	"layerNormKernel":                "LayerNorm", // PyTorch's own, of its library of shaders
}

// encodeCall is a place that encodes a kernel which others must not encode meanwhile.
type encodeCall struct {
	file     string
	line     int
	kernel   string // its class; "": not known
	function string
	fault    string // what is wrong with its lock
}

var (
	encodesKernel = regexp.MustCompile(`\b(?:encode\w*To\w*Command\w+|reshapeWithCommand\w+)\s*:|\bsetComputePipelineState:\s*(layerNormKernel)\b`)
	receiver      = regexp.MustCompile(`\[\s*(\w+)\s+$`)
	kernelMade    = regexp.MustCompile(`(?:kernel<\s*(\w+)\s*>\s*\(|\[\s*(\w+)\s+(?:alloc|new)\b)`)
	lockTaken     = regexp.MustCompile(`\b(?:(auto)\s+)?(\w+)\s*=\s*(?:\w+::)*lockEncode\(\s*(?:\w+::)*SerialEncode::(\w+)\s*\)\s*;`)
	serialEnum    = regexp.MustCompile(`enum class SerialEncode[^{]*\{([^}]*)\}`)
)

// encodeCalls finds those of one file, and judges their locks.
func encodeCalls(file, source string) (calls []encodeCall) {
	text := blankLiterals(source)
	found := encodesKernel.FindAllStringSubmatchIndex(text, -1)
	if found == nil {
		return nil
	}
	closures := map[int]bool{} // by the brace
	for _, c := range closuresIn(text) {
		closures[c.open] = true
	}
	var places []opened
	walkBrackets(text, func(open opened, end int) {
		if open.bracket == '{' {
			places = append(places, opened{bracket: '{', at: open.at, name: open.name}, opened{bracket: '}', at: end})
		}
	}, nil)
	slices.SortFunc(places, func(a, b opened) int { return a.at - b.at })
	around := func(at int) (braces []opened) { // outer ones first
		for _, p := range places {
			if p.at >= at {
				break
			}
			if p.bracket == '{' {
				braces = append(braces, p)
			} else {
				braces = braces[:len(braces)-1]
			}
		}
		return braces
	}
	for _, at := range found {
		braces := around(at[0])
		if len(braces) == 0 {
			continue // a declaration in an @interface
		}
		call := encodeCall{file: file, line: 1 + strings.Count(text[:at[0]], "\n"), function: "no function"}
		begin := 0
		for _, b := range braces {
			if b.name != "" {
				begin, call.function = b.at, b.name
			}
		}
		if at[2] >= 0 {
			call.kernel = text[at[2]:at[3]]
		} else if variable := receiver.FindStringSubmatch(text[begin:at[0]]); variable != nil {
			call.kernel = classOf(text[begin:at[0]], variable[1])
		}
		// What a block or a lambda holds it takes itself: it may run later than the lines around it.
		for _, b := range braces {
			if closures[b.at] {
				begin = max(begin, b.at)
			}
		}
		var held []string
		for _, lock := range locksIn(text, begin, at[0]) {
			if outer := around(lock.at); len(outer) <= len(braces) && slices.Equal(outer, braces[:len(outer)]) {
				held = append(held, lock.name)
			}
		}
		call.fault = lockFault(call.kernel, held)
		calls = append(calls, call)
	}
	return calls
}

// locksIn gives the locks that a part of a text has when it ends: where the variable of each is declared, and what it locks.
func locksIn(text string, begin, end int) (locks map[string]opened) {
	part := text[begin:end]
	locks = map[string]opened{}
	for _, at := range lockTaken.FindAllStringSubmatchIndex(part, -1) {
		name, what := part[at[4]:at[5]], part[at[6]:at[7]]
		lock := opened{at: locks[name].at, name: what}
		if at[2] >= 0 || lock.at == 0 {
			lock.at = begin + at[4]
		}
		locks[name] = lock
	}
	for name := range locks {
		taken := regexp.MustCompile(`\b`+name+`\s*=\s*(?:\w+::)*lockEncode\(|\b`+name+`\s*\.\s*lock\s*\(`).FindAllStringIndex(part, -1)
		left := regexp.MustCompile(`\b`+name+`\s*\.\s*(?:unlock|release|swap)\s*\(|\bmove\(\s*`+name+`\s*\)`).FindAllStringIndex(part, -1)
		if len(left) > 0 && left[len(left)-1][0] > taken[len(taken)-1][0] {
			delete(locks, name)
		}
	}
	return locks
}

// classOf gives the class that a text makes the variable of, the last time that it does.
func classOf(text, variable string) (class string) {
	made := regexp.MustCompile(`\b(?:(\w+)\s*\*|auto\s*\*?)\s*(?:const\s+)?` + variable + `\s*=\s*([^;]*)`)
	for _, at := range made.FindAllStringSubmatch(text, -1) {
		class = at[1]
		if from := kernelMade.FindStringSubmatch(at[2]); class == "" && from != nil {
			class = from[1] + from[2]
		}
	}
	return class
}

// lockFault says what is wrong when a kernel is encoded with these locks.
func lockFault(kernel string, held []string) string {
	want, known := serialKernels[kernel]
	switch {
	case kernel == "":
		return "of what class the kernel is cannot be read: make it in the same function"
	case !known:
		return kernel + " is not in the table of kernels (validate/stages/checkout/encode_locks.go): give it an enumerator of SerialEncode"
	case len(held) == 0:
		return kernel + " is encoded without lockEncode(SerialEncode::" + want + "), which must be held"
	case !slices.Contains(held, want):
		return kernel + " is encoded with the lock of " + strings.Join(held, " and ") + ", and needs that of " + want
	}
	return ""
}

// checkEncodeLocks adds the verdict on a checkout: what two threads must not encode at once is encoded with the lock of its kind.
func checkEncodeLocks(dir string, report *reports.Stage) error {
	const name = "a kernel encoded without its lock"
	header, err := os.ReadFile(filepath.Join(dir, utilsHeader))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kinds := serialEnum.FindStringSubmatch(blankLiterals(string(header)))
	if kinds == nil {
		report.Add(reports.Check{Name: name, Subject: "checkout", Rule: "20", Verdict: reports.Skipped,
			Detail: utilsHeader + " of the checkout has no locks: the patch kernel-locks is not applied"})
		return nil
	}
	var calls []encodeCall
	if _, err := eachSource(dir, kernelFolders, func(file, text string) { calls = append(calls, encodeCalls(file, text)...) }); err != nil {
		return err
	}
	report.Count("kernels encoded one thread at a time", int64(len(calls)))
	failed := 0
	fail := func(subject, detail string) {
		failed++
		report.Add(reports.Check{Name: name, Subject: subject, Rule: "20", Verdict: reports.Failed, Detail: detail})
	}
	for _, call := range calls {
		if call.fault != "" {
			fail(fmt.Sprintf("%s:%d", call.file, call.line), "in "+call.function+" "+call.fault)
		}
	}
	known := []string{"Count"}
	for _, kind := range serialKernels {
		known = append(known, kind)
	}
	for _, kind := range wordsIn(kinds[1]) {
		if !slices.Contains(known, kind) {
			fail(utilsHeader, "SerialEncode::"+kind+" is of no kernel that the table knows (validate/stages/checkout/encode_locks.go)")
		}
	}
	if failed == 0 {
		report.Add(clean(name, "20", len(calls), "kernel of MetalPerformanceShaders",
			"each kernel of MetalPerformanceShaders is encoded with the lock that SerialEncode has for its class"))
	}
	return nil
}
