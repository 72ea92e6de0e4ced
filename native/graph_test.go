package native

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"mpsforge/internal/require"
)

// uncomputed are the operations that MPSGraph's methods record and nothing computes, each with the reason.
var uncomputed = map[string]string{}

var (
	recorderCall      = regexp.MustCompile(`(?m)\brecord(?:_all)?\(|^(?:UNARY|BINARY|REDUCTION)\(`)
	recordedOperation = regexp.MustCompile(`(?m)(?:\brecord(?:_all)?|^(?:UNARY|BINARY|REDUCTION))\(\s*\w+,\s*"(\w+)"`)
	tableEntry        = regexp.MustCompile(`\{\s*"(\w+)",\s*\{`)
)

// texts gives the text of each file that a pattern names.
func texts(t *testing.T, pattern string) map[string]string {
	t.Helper()
	found := map[string]string{}
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(names), err)
	}
	for _, name := range names {
		text := require.One(os.ReadFile(name))(t)
		found[name] = string(text)
	}
	return found
}

// A program that builds a graph with an operation that nobody computes gets an error; here it is seen before.
func TestEachRecordedGraphOperationIsComputed(t *testing.T) {
	computed := map[string]bool{}
	for _, text := range texts(t, "torch/evaluator_*.cc") {
		for _, match := range tableEntry.FindAllStringSubmatch(text, -1) {
			computed[match[1]] = true
		}
	}
	recorded := map[string]bool{}
	for name, text := range texts(t, "objc/graph/*_ops.mm") {
		names := recordedOperation.FindAllStringSubmatch(text, -1)
		if calls := recorderCall.FindAllString(text, -1); len(calls) != len(names) {
			t.Errorf("%s: %d of %d recorded operations have no literal name, so that this test cannot see them", name, len(calls)-len(names), len(calls))
		}
		for _, match := range names {
			operation := match[1]
			recorded[operation] = true
			switch reason := uncomputed[operation]; {
			case computed[operation] && reason != "":
				t.Errorf("%s is computed; take it from the list of those that are not", operation)
			case !computed[operation] && reason == "":
				t.Errorf("%s records %s, and no torch/evaluator_*.cc computes it", name, operation)
			}
		}
	}
	if len(recorded) < 150 {
		t.Errorf("only %d recorded operations were seen", len(recorded))
	}
	for operation := range uncomputed {
		if !recorded[operation] {
			t.Errorf("%s is listed as not computed, and nothing records it", operation)
		}
	}
}
