package reference

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/cxx"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/native"
	"mpsforge/validate/judge/stagetest"
)

// fuzzChanges is how many changed forms of each seed run; make fuzz searches for longer, with libFuzzer.
const fuzzChanges = "200"

// TestNativeFuzzTargets runs the seeds of the fuzz targets in C++, and changed forms of them, the same ones each time. The seeds are in
// testdata/fuzz, where make fuzz puts what it finds.
func TestNativeFuzzTargets(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: changed seeds are run with AddressSanitizer; go test -run '^TestNativeFuzzTargets$' ./validate/stages/reference")
	}
	for target, parts := range map[string][]string{
		"rewrite": {"msl/rewrite.h", "msl/rewrite.cc"},
		"metal":   {"schedule/", "metal/", "pool/", "script/"}, // all that the engine's other programs have, so that objects are shared
		"pool":    {"schedule/", "metal/", "pool/", "script/"},
	} {
		t.Run(target, func(t *testing.T) {
			tools := cxx.Find(t.Context(), stagetest.Cache())
			if tools.Err != nil || tools.Address != nil {
				t.Skipf("SKIP: no C++ compiler with AddressSanitizer: %v, %v", tools.Err, tools.Address)
			}
			sources := require.One(native.Files(append(slices.Clone(parts), "programs/fuzz_"+target+".cc", "programs/fuzz_seeds.cc")...))(t)
			program := stagetest.Program(t, cxx.AddressProgram, sources)
			seeds, err := filepath.Glob("testdata/fuzz/" + target + "/*")
			if err != nil || len(seeds) == 0 {
				t.Fatalf("no seeds: %v", err)
			}
			// What asks for more memory than there is gets none, as with a plain allocator.
			env := run.Environment([]string{"ASAN_OPTIONS=allocator_may_return_null=1 handle_abort=1", "UBSAN_OPTIONS=print_stacktrace=1"}, nil)
			result := require.One(run.Command{Name: program, Args: append([]string{fuzzChanges}, seeds...), Env: env}.Run(t.Context()))(t)
			t.Log(strings.TrimSpace(string(result.Stdout)))
		})
	}
}
