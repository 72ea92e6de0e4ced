package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/stagetest"
)

// Extensions that were compiled against stock PyTorch find their symbols: each that stock's library exports is exported by the
// patched one, or is listed in host.json with its reason.
func TestEverySymbolStaysExported(t *testing.T) {
	stock, root := stagetest.HostBuild(t.Context(), t, builds.Plain, true, false)
	patched, _ := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	_, _, _, series, _ := hosttest.Inputs(t)
	facts := require.One(series.HostFacts())(t)
	before := exported(t, root, stock.Library)
	if !before["at::mps::getCurrentMPSStream()"] || !before["at::native::mps::MetalShaderLibrary::getLibrary()"] {
		t.Fatalf("stock seems to export nothing that is looked for, of %d symbols", len(before))
	}
	for _, problem := range symbolProblems(before, exported(t, root, patched.Library), facts.LostSymbols) {
		t.Error(problem)
	}
}

// exported are the functions and variables of a library. Weak symbols are inline functions and templates, which each extension
// has compiled for itself.
func exported(t *testing.T, root *host.Root, library string) map[string]bool {
	t.Helper()
	found, err := (run.Command{Name: root.Tool("llvm-nm"), Args: []string{"--dynamic", "--defined-only", "--demangle", library}}).Run(t.Context())
	require.NoError(t, err)
	symbols := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(found.Stdout)), "\n") {
		fields := strings.SplitN(line, " ", 3) // address, kind, name
		if len(fields) != 3 {
			t.Fatalf("llvm-nm writes %q of %s, and not an address, a kind and a name", line, library)
		}
		if strings.Contains("TDBR", fields[1]) {
			symbols[fields[2]] = true
		}
	}
	return symbols
}

// symbolProblems names symbols that are lost without a reason, and reasons that nothing needs.
func symbolProblems(before, after map[string]bool, reasons map[string]string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !after[name] && reasons[name] == "" {
			problems = append(problems, fmt.Sprintf("%s is not exported any more: keep it, or give the reason in lost_symbols of host.json", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if after[name] || !before[name] {
			problems = append(problems, fmt.Sprintf("%s is in lost_symbols of host.json, and is not lost: take it out", name))
		}
	}
	return problems
}

func TestSymbolProblems(t *testing.T) {
	before := map[string]bool{"kept()": true, "lost()": true}
	for name, c := range map[string]struct {
		after   map[string]bool
		reasons map[string]string
		want    []string // how the problems begin
	}{
		"lost with a reason":    {map[string]bool{"kept()": true, "new()": true}, map[string]string{"lost()": "private"}, nil},
		"lost without a reason": {map[string]bool{"kept()": true}, nil, []string{"lost() is not exported"}},
		"an empty reason":       {map[string]bool{"kept()": true}, map[string]string{"lost()": ""}, []string{"lost() is not exported"}},
		"listed and kept":       {before, map[string]string{"lost()": "private"}, []string{"lost() is in lost_symbols"}},
		"listed, never there":   {before, map[string]string{"gone()": "private"}, []string{"gone() is in lost_symbols"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := symbolProblems(before, c.after, c.reasons)
			if !slices.EqualFunc(found, c.want, strings.HasPrefix) {
				t.Errorf("%q, want %q", found, c.want)
			}
		})
	}
}
