package validate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuildNamesTheFirstError(t *testing.T) {
	tools := findCompiler(t.Context(), t.TempDir())
	if tools.err != nil {
		t.Fatal(tools.err)
	}
	builder := subjectBuilder{t.TempDir(), tools}
	_, err := builder.build(t.Context(), target{program, []source{{"bad.cc", []byte("int main() {\n  return nonsense;\n}\n")}}, nil})
	if err == nil || !strings.Contains(err.Error(), "src/bad.cc:2:") || !strings.Contains(err.Error(), tools.path) {
		t.Errorf("err = %v, want file, line and command", err)
	}
	left, err := os.ReadDir(filepath.Join(builder.cache, "native"))
	if err != nil || len(left) != 0 {
		t.Errorf("a failed build left %v (%v)", left, err)
	}
}

func TestBuildIsKeptAndKeyedByContent(t *testing.T) {
	tools := findCompiler(t.Context(), t.TempDir())
	builder := subjectBuilder{t.TempDir(), tools}
	build := func(text string) string {
		path, err := builder.build(t.Context(), target{program, []source{{"main.cc", []byte(text)}}, nil})
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := build("int main() { return 0; }\n")
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	if again := build("int main() { return 0; }\n"); again != first {
		t.Errorf("same content at %s and %s", first, again)
	}
	if after, err := os.Stat(first); err != nil || after.ModTime() != before.ModTime() {
		t.Errorf("built twice (%v)", err)
	}
	if other := build("int main() { return 1; }\n"); other == first {
		t.Error("other content at the same place")
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	tools := findCompiler(t.Context(), t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	builder := subjectBuilder{t.TempDir(), tools}
	_, err := builder.build(ctx, target{program, []source{{"main.cc", []byte("int main() {}\n")}}, nil})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want context.Canceled", err)
	}
}
