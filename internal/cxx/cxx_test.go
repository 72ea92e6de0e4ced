package cxx

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

func TestBuildNamesTheFirstError(t *testing.T) {
	tools := Find(t.Context(), t.TempDir())
	if tools.Err != nil {
		t.Fatal(tools.Err)
	}
	builder := Builder{Cache: t.TempDir(), Compiler: tools}
	_, err := builder.Build(t.Context(), Target{Flavour: Program, Sources: []Source{{"bad.cc", []byte("int main() {\n  return nonsense;\n}\n")}}})
	if err == nil || !strings.Contains(err.Error(), "src/bad.cc:2:") || !strings.Contains(err.Error(), tools.path) {
		t.Errorf("err = %v, want file, line and command", err)
	}
	left, err := os.ReadDir(filepath.Join(builder.Cache, "native"))
	if err != nil || len(left) != 0 {
		t.Errorf("a failed build left %v (%v)", left, err)
	}
}

func TestBuildIsKeptAndKeyedByContent(t *testing.T) {
	tools := Find(t.Context(), t.TempDir())
	builder := Builder{Cache: t.TempDir(), Compiler: tools}
	build := func(text string) string {
		return require.One(builder.Build(t.Context(), Target{Flavour: Program, Sources: []Source{{"main.cc", []byte(text)}}}))(t)
	}
	first := build("int main() { return 0; }\n")
	before := require.One(os.Stat(first))(t)
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

func TestAChangedHeaderCompilesOnlyWhatIncludesIt(t *testing.T) {
	tools := Find(t.Context(), t.TempDir())
	builder := Builder{Cache: t.TempDir(), Compiler: tools}
	objects := func(number string) int {
		_, err := builder.Build(t.Context(), Target{Flavour: Program, Sources: []Source{
			{"a/number.h", []byte("inline int number() { return " + number + "; }\n")},
			{"a/through.h", []byte("# include \"../a/number.h\"\n")},
			{"main.cc", []byte("#include \"a/through.h\"\nint main() { return number(); }\n")},
			{"other.cc", []byte("int other() { return 0; }\n")},
		}})
		require.NoError(t, err)
		made := require.One(filepath.Glob(filepath.Join(builder.Cache, "native", "*", "object.o")))(t)
		return len(made)
	}
	first, second := objects("0"), objects("1")
	if first != 2 || second != 3 {
		t.Errorf("%d objects, and %d after the change of a header that one of two sources includes", first, second)
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	tools := Find(t.Context(), t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	builder := Builder{Cache: t.TempDir(), Compiler: tools}
	_, err := builder.Build(ctx, Target{Flavour: Program, Sources: []Source{{"main.cc", []byte("int main() {}\n")}}})
	require.Is(t, err, context.Canceled)
}
