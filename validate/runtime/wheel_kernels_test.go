package runtime

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mpsforge/fork/host"
	"mpsforge/fork/host/hosttest"
	"mpsforge/fork/shaders"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/native"
	"mpsforge/patches"
)

// Every kernel of the wheel of 2.9.1, whose sources are not built in CI: translated, launched with operands as PyTorch gives them, and
// compared with PyTorch's CPU operators. Accesses outside of them are findings.
func TestKernelsOfTheNewestWheel(t *testing.T) {
	if os.Getenv("MPSFORGE_WHEEL_KERNELS") == "" {
		t.Skip("SKIP kernels of the wheel of 2.9.1: translating them takes minutes; MPSFORGE_WHEEL_KERNELS=1 asks for it")
	}
	root, cache := hosttest.Root(t)
	launcher, library := wheelKernels(t, root, cache)
	result, err := run.Command{Name: root.Tool("python3"), Args: []string{"testdata/wheel/run.py", launcher, library.Path}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Launched, Compared, Findings, Wrong, Faults []string
		WithoutCase                                 []string `json:"without_case"`
	}
	if err := json.Unmarshal(result.Stdout, &found); err != nil {
		t.Fatalf("%v: %s", err, result.Stdout)
	}
	t.Logf("%d kernels, %d launched, %d compared, %d wrong by themselves", library.Kernels, len(found.Launched), len(found.Compared), len(found.Faults))
	for _, problem := range slices.Concat(found.Findings, found.Wrong) {
		t.Error(problem)
	}
	for _, kernel := range found.WithoutCase {
		t.Errorf("%s is not launched", kernel)
	}
	if len(found.Compared)+len(found.Faults) != len(found.Launched) {
		t.Errorf("of %d kernels only %d are compared", len(found.Launched), len(found.Compared))
	}
}

// wheelKernels translates the wheel's kernels, unless the cache has them, and compiles what launches them.
func wheelKernels(t *testing.T, root *host.Root, cache string) (launcher string, library *shaders.Built) {
	t.Helper()
	series, err := patches.Load(patches.Embedded(), "v2.9.1")
	if err != nil {
		t.Fatal(err)
	}
	facts, err := series.HostFacts()
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := host.Lock(t.Context(), cache, events.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	libraries, err := shaders.Fetch(t.Context(), facts.Wheel, cache, events.Discard)
	if err != nil {
		t.Fatal(err)
	}
	tools := shaders.Tools{Clang: root.Tool("clang"), Link: root.Tool("llvm-link"), Linker: root.Tool("ld.lld")}
	if library, err = shaders.Build(t.Context(), shaders.Options{Libraries: libraries, Tools: tools, Cache: cache, Native: native.Sources, Sink: events.Discard}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	object, launcher := filepath.Join(dir, "launch.o"), filepath.Join(dir, "launch.so")
	for _, args := range [][]string{
		{"-std=c++17", "-O1", "-fPIC", "-I../../native", "-c", "../../native/programs/launch_kernels.cc", "-o", object},
		{"--ld-path=" + tools.Linker, "-shared", object, "-o", launcher},
	} {
		if _, err := (run.Command{Name: tools.Clang, Args: append([]string{"--driver-mode=g++"}, args...)}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return launcher, library
}
