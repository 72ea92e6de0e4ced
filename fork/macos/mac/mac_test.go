package mac

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

func TestVirtualName(t *testing.T) {
	for symbol, want := range map[string]string{
		"__ZNK2at3mps8MPSHooks9isOnMacOSEv": "isOnMacOS",
		"__ZN2at3mps8MPSHooks4initEv":       "init",
		"__ZN2at3mps8MPSHooksD0Ev":          "destructor D0",
		"__ZN2at3mps8MPSHooksD2Ev":          "destructor D1",
		"___cxa_pure_virtual":               "___cxa_pure_virtual",
	} {
		require.Equal(t, virtualName(symbol), want, symbol)
	}
}

func TestCompareVtables(t *testing.T) {
	one, other, inherited := []string{"__ZN1A3oneEv"}, []string{"__ZN1A5otherEv"}, []string{"__ZN1B3oneEv"}
	for name, c := range map[string]struct {
		before, after [][]string
		problem       string
		named         int
	}{
		"as before":                    {[][]string{one, other}, [][]string{one, other}, "", 2},
		"a function behind":            {[][]string{one}, [][]string{one, other}, "", 1},
		"a function before":            {[][]string{one}, [][]string{other, one}, "slot 0 is", 0},
		"a function gone":              {[][]string{one, other}, [][]string{one}, "1 functions, 2 before", 1},
		"a class overrides":            {[][]string{inherited}, [][]string{one}, "", 1},
		"another library's":            {[][]string{{boundSlot}, other}, [][]string{one, other}, "", 1},
		"two functions at one address": {[][]string{{"__ZN1A3sixEv", "__ZN1A3oneEv"}}, [][]string{one}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			problem, named := CompareVtables(c.before, c.after)
			if !strings.HasPrefix(problem, c.problem) || (problem == "") != (c.problem == "") || named != c.named {
				t.Errorf("%q, %d named", problem, named)
			}
		})
	}
}

// Lines that moved, and what a header says in one more source, are no new warnings.
func TestNewWarnings(t *testing.T) {
	stock := append(warningsIn("a.mm", "h.h:1:2: warning: old [-Wold]\n"), warningsIn("a.mm", "a.mm:3:4: warning: own [-Wown]\n")...)
	patched := append(warningsIn("b.mm", "h.h:7:2: warning: old [-Wold]\n"),
		warningsIn("a.mm", "a.mm:9:4: warning: own [-Wown]\na.mm:10:4: warning: own [-Wown]\n")...)
	require.Equal(t, NewWarnings(stock, patched), []Warning{{"a.mm", "a.mm", "own [-Wown]"}})
	require.Equal(t, NewWarnings(stock, stock), nil, "stock against itself")
}

// A folder of optional sources is compiled where the checkout has it: without it the linker would take its kernels from the wheel.
func TestSourcesOfOptionalFolders(t *testing.T) {
	dir := t.TempDir()
	add := func(source string) {
		t.Helper()
		require.File(t, filepath.Join(dir, source), "")
	}
	check := func(want ...string) {
		t.Helper()
		got, err := Sources(dir, patches.HostFacts{Sources: []string{"mps"}, OptionalSources: []string{"sparse/mps"}}, patches.MacFacts{})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	_, err := Sources(dir, patches.HostFacts{Sources: []string{"mps"}}, patches.MacFacts{})
	require.Is(t, err, fs.ErrNotExist, "without the folder of all sources")
	add("mps/Stream.mm")
	add("mps/Stream.h")
	check("mps/Stream.mm")
	add("sparse/mps/Coalesce.mm")
	check("mps/Stream.mm", "sparse/mps/Coalesce.mm")
	misspelt := patches.MacFacts{PythonSources: []string{"mps/Modul.cpp"}}
	if _, err := Sources(dir, patches.HostFacts{Sources: []string{"mps"}}, misspelt); !errors.Is(err, builds.ErrSources) ||
		!strings.Contains(err.Error(), "mac.json names mps/Modul.cpp") {
		t.Errorf("a source of Python's that does not exist: %v", err)
	}
}
