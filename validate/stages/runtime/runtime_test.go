package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/native"
	"mpsforge/patches"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/stagetest"
)

// What each whole run asks of its host build is asked here of the sources, which takes no build.
func TestRuntimeScenariosExist(t *testing.T) {
	files, err := fs.Glob(native.Torch, "torch/scenarios/*.cc")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	inProgram := map[string]bool{}
	for _, file := range files {
		text := require.One(fs.ReadFile(native.Torch, file))(t)
		for _, match := range regexp.MustCompile(`(?m)^SCENARIO\((\w+)\)`).FindAllSubmatch(text, -1) {
			inProgram[strings.ReplaceAll(string(match[1]), "_", "-")] = true
		}
	}
	inTable := ScenarioNames()
	for _, name := range inTable {
		if !inProgram[name] {
			t.Errorf("%s has a row in scenarios.json, and no function", name)
		}
	}
	for name := range inProgram {
		if !slices.Contains(inTable, name) {
			t.Errorf("%s is a function, and has no row in scenarios.json", name)
		}
	}
}

func TestRowOfAScenarioThatMakesNoSenseIsRefused(t *testing.T) {
	const whole = `{"name": "a", "about": "b", "patches": ["c"], "stock": "must fail", "iterations": 1}`
	require.One(readScenarios([]byte("[" + whole + "]")))(t)
	for name, c := range map[string]struct{ text, says string }{
		"no JSON":               {`[{]`, "scenarios.json"},
		"twice":                 {"[" + whole + "," + whole + "]", "not its own"},
		"an unknown field":      {"[" + strings.Replace(whole, "about", "abuot", 1) + "]", "abuot"},
		"no patch":              {"[" + strings.Replace(whole, `"c"`, "", 1) + "]", "patches"},
		"another word of stock": {"[" + strings.Replace(whole, "must fail", "fails", 1) + "]", `"fails"`},
	} {
		_, err := readScenarios([]byte(c.text))
		require.Says(t, err, c.says, name)
	}
}

func TestProgramWithOtherScenariosIsRefused(t *testing.T) {
	driver := filepath.Join(t.TempDir(), "driver")
	require.NoError(t, os.WriteFile(driver, []byte("#!/bin/sh\necho '[{\"name\": \"op-fill\", \"operation\": true}, {\"name\": \"new\"}]'\n"), 0o755))
	_, err := operationsOf(t.Context(), &host.Build{Driver: driver}, []scenario{{Name: "old"}})
	if !errors.Is(err, errTable) || !strings.Contains(err.Error(), "new has no row, old has no function") {
		t.Error(err)
	}
	names, err := operationsOf(t.Context(), &host.Build{Driver: driver}, []scenario{{Name: "new"}})
	if err != nil || !slices.Equal(names, []string{"op-fill"}) {
		t.Error(names, err)
	}
}

// Scenarios that a patch's trailer names fail without it, so the table must say the same. A patch that the table names and no
// series has would keep its scenarios from ever running. Names that are not in the table are for lint to judge.
func TestTrailersNameScenariosOfTheirPatch(t *testing.T) {
	baselines := require.One(patches.Baselines(patches.Embedded()))(t)
	for _, baseline := range baselines {
		series := require.One(patches.Load(patches.Embedded(), baseline))(t)
		for _, s := range scenarios() {
			if _, err := series.Named(s.Patches); err != nil {
				t.Errorf("%s, scenario %s: %v", baseline, s.Name, err)
			}
			for _, patch := range series.Patches {
				if !slices.Contains(patch.Header.Values("Scenario"), s.Name) {
					continue
				}
				if s.Patches[0] != patch.Name {
					t.Errorf("%s: %s names %s, which the table gives to %s", baseline, patch.Name, s.Name, s.Patches[0])
				}
				if s.Stock == process.StockLives && len(s.Without) == 0 {
					t.Errorf("%s: %s names %s, whose row does not say how it fails without a patch", baseline, patch.Name, s.Name)
				}
			}
		}
	}
}

// A kernel that is missing because its source is not in the checkout is reported as such; in a whole checkout it is a failure.
func TestMissingKernelIsExcusedOnlyByAMissingSource(t *testing.T) {
	absent := host.Excluded{Path: "aten/src/ATen/native/mps/operations/ReduceOps.mm", Reason: host.NotThere}
	part := hostRun{built: &host.Build{Excluded: []host.Excluded{absent}}}
	if reason := part.notRun("sum.IntList_out"); !strings.Contains(reason, "aten::sum.IntList_out") || !strings.Contains(reason, "ReduceOps.mm") {
		t.Errorf("reason %q", reason)
	}
	whole := hostRun{built: &host.Build{Excluded: []host.Excluded{{Path: "Pooling.mm", Reason: "another"}}}}
	require.Equal(t, whole.notRun("sum.IntList_out"), "", "excused in a whole checkout")
}

// Without a kernel that only whole builds have, a scenario fails whichever patch is left out: that proves nothing.
func TestKernelThatTheCoreLacksIsNoProof(t *testing.T) {
	core := hostRun{built: &host.Build{Excluded: []host.Excluded{{Path: "SpecialOps.mm", Reason: host.NotNeeded}}, Dropped: []string{"i0.out"}}}
	for text, want := range map[string]bool{
		"thread 0: INTERNAL ASSERT FAILED ... DispatchStub: missing kernel for mps":              true,
		"The operator 'aten::i0.out' is not currently implemented for the MPS device. If you":    true,
		"The operator 'aten::record_stream' is not currently implemented for the MPS device. If": false, // the series adds it
		"thread 0: another error": false,
	} {
		require.Equal(t, core.lacksCore(text), want, text)
		if (hostRun{built: &host.Build{}}).lacksCore(text) {
			t.Errorf("%q: of a build of all sources", text)
		}
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
	require.Equal(t, firstRace(report), "mps/MPSStream.mm:109 and mps/MPSStream.mm:47")
	require.Equal(t, firstRace("WARNING: ThreadSanitizer: data race\n"), "code outside PyTorch's sources")
}

// The Objective-C runtime, Foundation, the Metal classes, the graph recorder and its evaluator have programs of their own.
func TestHostBuildsPartsWork(t *testing.T) {
	built, root := stagetest.HostBuild(t.Context(), t, builds.Plain, false, true)
	if len(built.Tests) < 4 {
		t.Fatalf("test programs: %v", built.Tests)
	}
	for name, program := range built.Tests {
		t.Run(name, func(t *testing.T) {
			environment := hosts.Sanitizers(root)
			if found, err := (run.Command{Name: program, Env: run.Environment(environment, nil)}).Run(t.Context()); err != nil {
				t.Errorf("%v\n%s", err, found.Stdout)
			}
		})
	}
}

// The backend of the software Metal's C ABI on Apple's Metal cannot run on Linux, but it compiles against the headers of
// host builds. That finds slips; it is not a proof about Apple's interfaces.
func TestAppleBackendCompilesAgainstTheVeneer(t *testing.T) {
	root, _, _, _, _ := hosttest.Inputs(t)
	sources, err := filepath.Glob("../../../native/metal/*_darwin.m")
	if err != nil || len(sources) < 4 {
		t.Fatalf("%v %v", sources, err)
	}
	for _, source := range sources {
		args := []string{"-x", "objective-c", "-fobjc-runtime=objfw", "-fobjc-exceptions", "-fblocks", "-fobjc-arc", "-Wall", "-Wextra",
			"-Wno-unused-parameter", "-Werror",
			"-fsyntax-only", "-I../../../native/objc/include", "-include", "testdata/apple_only.h", source}
		if _, err := (run.Command{Name: root.Tool("clang"), Args: args}).Run(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A library is asked where it comes from: one of another tree is refused, whatever its path says.
func TestRuntimeStageRefusesAnotherBuild(t *testing.T) {
	built, root := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	other := *built
	other.Stamp.Tree = strings.Repeat("0", 40)
	one := hostRun{built: &other, tools: root, scenario: "items", threads: 1, iterations: 1, seed: 1, limit: process.Patient}
	_, _, err := one.run(t.Context())
	require.Says(t, err, "is another build")
}
