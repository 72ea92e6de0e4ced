package mac

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
)

// seriesOf is a series of one patch that adds lines to a file of C++.
func seriesOf(t *testing.T, lines ...string) *patches.Series {
	t.Helper()
	patch := require.One(patches.ParseDiff("ours", []byte("diff --git a/a.mm b/a.mm\n--- a/a.mm\n+++ b/a.mm\n@@ -1 +1,"+string(rune('1'+len(lines)))+
		" @@ class MPSHooks {\n the old line\n+"+strings.Join(lines, "\n+")+"\n")))(t)
	return &patches.Series{Patches: []*patches.Patch{patch}}
}

// What differs is listed if the series names it, or the overlay needs it.
func TestChanges(t *testing.T) {
	exports := func(names ...string) map[string][]string { return map[string][]string{"libtorch_cpu": names} }
	hooks := func(slots ...[]string) map[string][][]string {
		return map[string][][]string{"__ZTVN2at3mps8MPSHooksE": slots}
	}
	init, last := []string{"__ZNK2at3mps8MPSHooks4initEv"}, []string{"__ZNK2at3mps8MPSHooks4lastEv"}
	for name, c := range map[string]struct {
		line          string
		before, after WheelFacts
		want          []Change
	}{
		"a function": {"copy(a);", WheelFacts{Exports: exports("__ZN2at3mps4copyEv")}, WheelFacts{},
			[]Change{{"export", "at::mps::copy", "gone", []string{"ours"}}}},
		"one in a remark":         {"a(); // copy", WheelFacts{Exports: exports("__ZN2at3mps4copyEv")}, WheelFacts{}, nil},
		"one on a line as it was": {"x;", WheelFacts{Exports: exports("__ZN2at3mps3oldEv")}, WheelFacts{}, nil},
		"one like a method's":     {"copy(a);", WheelFacts{Exports: exports("__ZN2at3mps9MPSStream4copyEv")}, WheelFacts{}, nil},
		"a new function": {"copy(a);", WheelFacts{Exports: exports("x")}, WheelFacts{Exports: exports("x", "__ZN2at3mps4copyEv")},
			[]Change{{"export", "at::mps::copy", "new", []string{"ours"}}}},
		"one of several functions": {"copy(a);", WheelFacts{Exports: exports("__ZN2at3mps4copyEv", "__ZN2at3mps4copyEi")},
			WheelFacts{Exports: exports("__ZN2at3mps4copyEv")}, []Change{{"export", "at::mps::copy", "other parameters", []string{"ours"}}}},
		"in another library": {"copy(a);", WheelFacts{Exports: exports("__ZN2at3mps4copyEv")},
			WheelFacts{Exports: map[string][]string{"libtorch_python": {"__ZN2at3mps4copyEv"}}}, nil},
		"methods of a class": {"MPSStream s;", WheelFacts{Exports: exports("__ZN2at3mps9MPSStream4copyEv", "__ZN2at3mps9MPSStream4fillEv")},
			WheelFacts{Exports: exports("__ZN2at3mps9MPSStream4copyEi")},
			[]Change{{"export", "at::mps::MPSStream", "gone: fill; other parameters: copy", []string{"ours"}}}},
		"what overlays take": {"x;", WheelFacts{Exports: exports("__ZN2at3mps5boundEb")}, WheelFacts{},
			[]Change{{"export", "at::mps::bound", "gone", []string{"mac.json"}}}},
		"a table as before": {"x;", WheelFacts{Vtables: hooks(init, last)}, WheelFacts{Vtables: hooks(init, last)}, nil},
		"a table with one more": {"x;", WheelFacts{Vtables: hooks(init)}, WheelFacts{Vtables: hooks(init, last)},
			[]Change{{"virtual functions", "at::mps::MPSHooks", "2 functions, 1 before; new: last", []string{"ours"}}}},
		"a table in another order": {"x;", WheelFacts{Vtables: hooks(init, last)}, WheelFacts{Vtables: hooks(last, init)},
			[]Change{{"virtual functions", "at::mps::MPSHooks", "in another order", []string{"ours"}}}},
		"a table of merged ones": {"x;", WheelFacts{Vtables: hooks(init)}, WheelFacts{Vtables: hooks([]string{"__ZN1A4sizeEv", init[0]})}, nil},
		"a new one that is merged": {"x;", WheelFacts{Vtables: hooks(init)}, WheelFacts{Vtables: hooks(init, []string{"__ZN1A4sizeEv", last[0]})},
			[]Change{{"virtual functions", "at::mps::MPSHooks", "2 functions, 1 before; new: last", []string{"ours"}}}},
		"a table that is gone": {"x;", WheelFacts{Vtables: hooks(init)}, WheelFacts{},
			[]Change{{"virtual functions", "at::mps::MPSHooks", "gone", []string{"ours"}}}},
		"a selector": {"[a go:b to:c];", WheelFacts{Selectors: []string{"go:to:", "go:from:"}}, WheelFacts{},
			[]Change{{"selector", "go:to:", "gone", []string{"ours"}}}},
		"a selector without colons": {"[a size];", WheelFacts{}, WheelFacts{Selectors: []string{"size", "a"}},
			[]Change{{"selector", "size", "new", []string{"ours"}}}},
		"a class": {"MTLThing* a;", WheelFacts{Classes: []string{"MTLThing", "MTLOther"}}, WheelFacts{},
			[]Change{{"class", "MTLThing", "gone", []string{"ours"}}}},
		"a binding": {"m.def(\"_mps_go\");", WheelFacts{Bindings: []string{"_mps_stop"}}, WheelFacts{Bindings: []string{"_mps_go", "_mps_stop"}},
			[]Change{{"binding", "_mps_go", "new", []string{"ours"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Changes(&c.before, &c.after, seriesOf(t, c.line), []string{"at::mps::bound(bool)"})
			if !slices.EqualFunc(got, c.want, func(a, b Change) bool {
				return a.Kind == b.Kind && a.Name == b.Name && a.What == b.What && slices.Equal(a.NamedBy, b.NamedBy)
			}) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A header is given without the lines that PyTorch puts around it, and a damaged one not at all.
func TestSourcesOfAWheel(t *testing.T) {
	var made bytes.Buffer
	archive := zip.NewWriter(&made)
	for name, text := range map[string]string{
		"torch/include/ATen/mps/Wrapped.h": wrapFirst + "wrapped\n" + wrapLast, "torch/include/ATen/mps/Half.h": wrapFirst + "half\n",
		"torch/include/torch/csrc/mps/Module.h": "module\n", "torch/mps/event.py": "event\n",
	} {
		part := require.One(archive.CreateHeader(&zip.FileHeader{Name: name}))(t) // stored, not compressed
		require.One(part.Write([]byte(text)))(t)
	}
	require.NoError(t, archive.Close())
	open := func(data []byte) *WheelSources {
		t.Helper()
		file := filepath.Join(t.TempDir(), "torch.whl")
		require.NoError(t, os.WriteFile(file, data, 0o644))
		sources := require.One(OpenSources(file))(t)
		t.Cleanup(func() { sources.Close() })
		return sources
	}
	sources := open(made.Bytes())
	for name, want := range map[string]string{
		"aten/src/ATen/mps/Wrapped.h": "wrapped\n", "aten/src/ATen/mps/Half.h": wrapFirst + "half\n", "torch/csrc/mps/Module.h": "module\n",
		"torch/mps/event.py":        "event\n",
		"aten/src/ATen/mps/Other.h": "absent", "torch/mps/other.py": "absent", "aten/src/ATen/mps/Wrapped.mm": "unseen",
		"torch/csrc/mps/Module.cpp": "unseen", "test/test_mps.py": "unseen",
	} {
		text, seen, err := sources.Read(name)
		got := string(text)
		if text == nil {
			got = map[bool]string{true: "absent", false: "unseen"}[seen]
		}
		if got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	damaged := open(bytes.Replace(made.Bytes(), []byte("event\n"), []byte("evens\n"), 1))
	if _, _, err := damaged.Read("torch/mps/event.py"); !errors.Is(err, ErrWheel) || !strings.Contains(err.Error(), "torch/mps/event.py: zip: checksum error") {
		t.Errorf("a damaged file: %v", err)
	}
}
