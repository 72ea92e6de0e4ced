package validate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork"
	"mpsforge/fork/build"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
	"mpsforge/reports"
)

// The table and the program know the same scenarios.
func TestRuntimeScenariosExist(t *testing.T) {
	var inProgram, inTable []string
	for _, file := range []string{"parallel.cc", "streams.cc"} {
		text, err := fs.ReadFile(hostmps, "hostmps/scenarios/"+file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^\s+\{"([a-z0-9-]+)", "`).FindAllSubmatch(text, -1) {
			inProgram = append(inProgram, string(match[1]))
		}
	}
	for _, s := range runtimeScenarios() {
		inTable = append(inTable, s.name)
	}
	slices.Sort(inProgram)
	slices.Sort(inTable)
	if !slices.Equal(inProgram, inTable) {
		t.Errorf("in the program: %v\nin the table: %v", inProgram, inTable)
	}
}

// Scenarios that a patch's trailer names fail without it, so the table must say the same.
func TestTrailersNameScenariosOfTheirPatch(t *testing.T) {
	series, err := patches.Load(patches.Embedded(), patches.DefaultBaseline)
	if err != nil {
		t.Fatal(err)
	}
	for _, patch := range series.Patches {
		for _, name := range patch.Header.Values("Scenario") {
			i := slices.IndexFunc(runtimeScenarios(), func(s runtimeScenario) bool { return s.name == name })
			if i >= 0 && runtimeScenarios()[i].patches[0]+".patch" != patch.Name && runtimeScenarios()[i].patches[0] != patch.Name {
				t.Errorf("%s names %s, which the table gives to %s", patch.Name, name, runtimeScenarios()[i].patches[0])
			}
		}
	}
}

// How a process ended is told in the words of the signatures.
func TestEndings(t *testing.T) {
	abort := func(script string) error {
		_, err := run.Command{Name: "sh", Args: []string{"-c", script}}.Run(t.Context())
		return err
	}
	for name, c := range map[string]struct {
		output, script, problem, signature string
		kind                               reports.Outcome
	}{
		"Metal's assertion": {"-[IOGPUMetalCommandBuffer validate]:215: failed assertion `commit an already committed command buffer'\n", "kill -ABRT $$",
			"died by signal aborted", "3", reports.Crashed},
		"a crash without words":         {"", "kill -SEGV $$", "died by signal segmentation fault", "", reports.Crashed},
		"AddressSanitizer":              {"==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n", "exit 67", "heap-use-after-free", "", reports.Crashed},
		"a crash under ThreadSanitizer": {"==1==ERROR: ThreadSanitizer: SEGV on unknown address 0x1\n", "exit 66", "SEGV on unknown address", "", reports.Crashed},
		"an unknown end":                {"something\nlast words\n", "exit 9", "exit code 9: last words", "", reports.Errors},
	} {
		t.Run(name, func(t *testing.T) {
			end := Result{Output: c.output}
			end.crashed(abort(c.script))
			if !strings.Contains(end.Problem, c.problem) || !strings.HasPrefix(end.Signature, c.signature) || (c.signature == "") != (end.Signature == "") || end.Kind != c.kind {
				t.Errorf("%q, signature %q, %s", end.Problem, end.Signature, end.Kind)
			}
		})
	}
}

// A kernel that is missing because its source is not in the checkout is told as such; in a whole checkout it is a failure.
func TestMissingKernelIsExcusedOnlyByAMissingSource(t *testing.T) {
	absent := build.Excluded{Path: "aten/src/ATen/native/mps/operations/ReduceOps.mm", Reason: build.NotThere}
	part := hostRun{built: &build.HostBuild{Excluded: []build.Excluded{absent}}}
	if reason := part.notRun("sum.IntList_out"); !strings.Contains(reason, "aten::sum.IntList_out") || !strings.Contains(reason, "ReduceOps.mm") {
		t.Errorf("reason %q", reason)
	}
	whole := hostRun{built: &build.HostBuild{Excluded: []build.Excluded{{Path: "Pooling.mm", Reason: "another"}}}}
	if reason := whole.notRun("sum.IntList_out"); reason != "" {
		t.Errorf("excused in a whole checkout: %q", reason)
	}
}

func TestFirstRaceNamesPyTorchsLines(t *testing.T) {
	report := `WARNING: ThreadSanitizer: data race (pid=1)
  Write of size 8 at 0x1 by thread T2:
    #0 objc_release native/objc/runtime/objects.cc:40 (libmpsforge_objc.so+0x1)
    #1 at::mps::MPSStream::commitAndWait() aten/src/ATen/mps/MPSStream.mm:109 (libhostmps.so+0x1)
  Previous read of size 8 at 0x1 by thread T1:
    #0 at::mps::MPSStream::commandBuffer() ./aten/src/ATen/mps/MPSStream.mm:47 (libhostmps.so+0x1)
`
	if got := firstRace(report); got != "mps/MPSStream.mm:109 and mps/MPSStream.mm:47" {
		t.Error(got)
	}
	if got := firstRace("WARNING: ThreadSanitizer: data race\n"); got != "code outside PyTorch's sources" {
		t.Error(got)
	}
}

// hostEnvironment gives a root and the real tree of 2.6.0, both from the user's cache, where they are kept for all runs.
func hostEnvironment(t testing.TB) (*build.Root, *build.Torch, *fork.Checkout, *patches.Series, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles PyTorch's sources")
	}
	cache := os.Getenv("MPSFORGE_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "mpsforge")
	}
	root, err := build.OpenRoot(t.Context(), "", cache, events.Discard)
	if errors.Is(err, build.ErrEnvironment) {
		t.Skipf("SKIP host build: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	torch, err := build.OpenTorch(root, "")
	if err != nil {
		t.Fatal(err)
	}
	series, err := patches.Load(patches.Embedded(), build.DebianBaseline)
	if err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(cache, "trees", build.DebianBaseline)
	if _, err := fork.Fetch(t.Context(), series, fork.FetchOptions{Dir: tree, Cache: cache}, events.Discard); errors.Is(err, fork.ErrUnavailable) || errors.Is(err, fork.ErrEnvironment) {
		t.Skipf("SKIP host build: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	checkout, err := fork.Open(t.Context(), tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checkout.Close() })
	return root, torch, checkout, series, cache
}

func hostBuild(ctx context.Context, t testing.TB, flavour build.Flavour, stock, tests bool) (*build.HostBuild, *build.Root) {
	t.Helper()
	root, torch, checkout, series, cache := hostEnvironment(t)
	source, err := checkout.Patched(ctx, series, cache)
	if stock {
		source, err = checkout.Stock(ctx, cache)
	}
	if err != nil {
		t.Fatal(err)
	}
	veneer, glue, err := HostBuildSources()
	if err != nil {
		t.Fatal(err)
	}
	built, err := build.Host(ctx, build.HostOptions{Checkout: source.Dir, Identity: build.Stamp{Baseline: series.Baseline.Name, Commit: source.Commit, Tree: source.Tree, Patches: append([]string{}, source.Patches...)},
		Root: root, Torch: torch, Flavour: flavour, Cache: cache, Native: veneer, Glue: glue, Tests: tests}, events.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return built, root
}

// The Objective-C runtime, Foundation, the Metal classes, the graph recorder and its evaluator have programs of their own.
func TestHostBuildsPartsWork(t *testing.T) {
	built, root := hostBuild(t.Context(), t, build.Plain, false, true)
	if len(built.Tests) < 4 {
		t.Fatalf("test programs: %v", built.Tests)
	}
	for name, program := range built.Tests {
		t.Run(name, func(t *testing.T) {
			environment := hostRun{built: built, tools: root}.sanitizers()
			if found, err := (run.Command{Name: program, Env: run.Environment(environment, nil)}).Run(t.Context()); err != nil {
				t.Errorf("%v\n%s", err, found.Stdout)
			}
		})
	}
}

// The backend of the software Metal's C ABI on Apple's Metal can not run on Linux, but it compiles against the headers of
// host builds. That finds slips; it is no proof about Apple's interfaces.
func TestAppleBackendCompilesAgainstTheVeneer(t *testing.T) {
	root, _, _, _, _ := hostEnvironment(t)
	sources, err := filepath.Glob("../native/metal/*_darwin.m")
	if err != nil || len(sources) < 4 {
		t.Fatalf("%v %v", sources, err)
	}
	for _, source := range sources {
		args := []string{"-x", "objective-c", "-fobjc-runtime=objfw", "-fobjc-exceptions", "-fblocks", "-fobjc-arc", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror",
			"-fsyntax-only", "-I../native/objc/include", "-include", "testdata/apple_only.h", source}
		if _, err := (run.Command{Name: root.Tool("clang"), Args: args}).Run(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A library is asked where it comes from: one of another tree is refused, whatever its path says.
func TestRuntimeStageRefusesAnotherBuild(t *testing.T) {
	built, root := hostBuild(t.Context(), t, build.Plain, false, false)
	other := *built
	other.Stamp.Tree = strings.Repeat("0", 40)
	one := hostRun{built: &other, tools: root, scenario: "items", threads: 1, iterations: 1, seed: 1, limit: patient}
	if _, _, err := one.run(t.Context()); err == nil || !strings.Contains(err.Error(), "is another build") {
		t.Errorf("%v", err)
	}
}
