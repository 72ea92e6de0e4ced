package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"mpsforge/fork/host"
	"mpsforge/fork/host/hosttest"
)

// A change of an inline function in a header, which leaves the source as it is, gives another object; a checkout elsewhere with the
// same text gets the same one from the cache.
func TestObjectsAreSharedByWhatIsCompiled(t *testing.T) {
	root, _, _, _, _ := hosttest.Inputs(t)
	cache, own := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	prefix := filepath.Join(own, "prefix.h")
	write(prefix, "#include <shared.h>\n")
	object := func(header string) string {
		t.Helper()
		checkout := t.TempDir()
		write(filepath.Join(checkout, "shared.h"), header)
		write(filepath.Join(checkout, "source.cc"), "#include <shared.h>\nint answer() { return shared(); }\n")
		made, err := host.CompileWithPrefix(t.Context(), root, cache, checkout, prefix, "source.cc", []string{"-x", "objective-c++", "-O0", "-I."})
		if err != nil {
			t.Fatal(err)
		}
		return string(made)
	}
	eleven := object("#pragma once\ninline int shared() { return 11; }\n")
	if eleven == object("#pragma once\ninline int shared() { return 12; }\n") {
		t.Error("two headers with different inline functions gave the same object")
	}
	before := host.CacheHits(t, root, cache)
	if eleven != object("#pragma once\ninline int shared() { return 11; }\n") {
		t.Error("the same text elsewhere gave another object")
	}
	if after := host.CacheHits(t, root, cache); before != 0 || after != 1 {
		t.Errorf("ccache had %d hits for other text, %d after the same text: want 0 and 1", before, after)
	}
}
