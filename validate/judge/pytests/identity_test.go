package pytests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// A Python that loads a stock torch, put in the way by PYTHONPATH, is refused before any test, with the reason.
func TestPlantedStockTorchIsRefused(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	planted := require.One(filepath.Abs("testdata/othertorch"))(t)
	scripts := require.One(unpackPython(t.TempDir()))(t)
	subject := Subject{Name: "patched", interpreter: python, Device: "mps", scripts: scripts, limits: defaultLimits,
		wanted: wantedTorch{version: "2.6.0", series: "abc"}}
	t.Setenv("PYTHONPATH", planted)
	var report reports.Stage
	err = subject.prove(t.Context(), &report)
	if !errors.Is(err, ErrOtherTorch) {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"expected a stamp of mpsforge build with series abc, found no stamp", "PYTHONPATH names " + planted} {
		require.Contains(t, err.Error(), part)
	}
	// The same torch is right where a stock one is wanted.
	subject.wanted = wantedTorch{version: "2.6.0", stock: true}
	if err := subject.prove(t.Context(), &report); err != nil {
		t.Error(err)
	}
}

// Each way to load another torch than the wanted one has its words and its likely reason.
func TestTorchMismatches(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libtorch_cpu.dylib")
	require.NoError(t, os.WriteFile(library, nil, 0o644))
	stampOf := func(series string, patches ...string) string {
		return require.One(builds.Stamp{Format: 1, Kind: "mac", Series: series, Patches: patches}.Text())(t)
	}
	good := Identity{Torch: "2.9.1+gitd38164a", Library: library, Stamp: stampOf("abc", "stream-slots"), Prefix: "/venv",
		Package: "/venv/lib/torch/__init__.py"}
	patched := wantedTorch{version: "2.9.1", series: "abc"}
	for name, c := range map[string]struct {
		wanted wantedTorch
		change func(*Identity)
		words  []string // none: it is the wanted one
	}{
		"the wanted one":  {patched, func(*Identity) {}, nil},
		"another version": {patched, func(i *Identity) { i.Torch = "2.10.0" }, []string{"expected torch 2.9.1, found torch 2.10.0"}},
		"another series":  {patched, func(i *Identity) { i.Stamp = stampOf("def") }, []string{"expected series abc, found series def", "build again"}},
		"an editable install": {patched, func(i *Identity) { i.Stamp, i.Editable = "", "file:///old" },
			[]string{"found no stamp", "editable install (file:///old)"}},
		"another venv": {patched, func(i *Identity) { i.Stamp, i.Prefix = "", "/other" }, []string{"/other has a torch of its own", "--python"}},
		"stock is patched": {wantedTorch{version: "2.9.1", stock: true}, func(*Identity) {}, []string{"expected an unpatched torch",
			"--stock belongs to the patched"}},
		"another build's path": {wantedTorch{version: "2.9.1", stamp: good.Stamp, library: "/nowhere"}, func(*Identity) {},
			[]string{"expected library /nowhere"}},
		"a changed file": {wantedTorch{version: "2.9.1", series: "abc", file: &Identity{Library: library, Size: 7}}, func(*Identity) {},
			[]string{"as it was at the start of this stage"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := good
			c.change(&found)
			err := c.wanted.mismatch(found)
			if (err == nil) != (c.words == nil) {
				t.Fatalf("%v", err)
			}
			for _, word := range c.words {
				require.Contains(t, err.Error(), word)
			}
		})
	}
}

// A Python without torch is no failed verification: there is nothing to verify. A folder called torch in the current folder,
// such as a checkout's, is not a torch of the Python's.
func TestPythonWithoutTorch(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	planted := require.One(filepath.Abs("testdata/othertorch"))(t)
	t.Setenv("PYTHONPATH", "")
	torchless := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(torchless, []byte("#!/bin/sh\nexec "+python+" -S \"$@\"\n"), 0o755)) // without installed packages
	scripts := require.One(unpackPython(t.TempDir()))(t)
	t.Chdir(planted)
	require.Is(t, CheckTorch(t.Context(), torchless), ErrNoTorch)
	if err := CheckTorch(t.Context(), torchless, "PYTHONPATH="+planted); err != nil {
		t.Error(err)
	}
	subject := Subject{Name: "cpu", interpreter: torchless, Device: "cpu", scripts: scripts, limits: defaultLimits, wanted: wantedTorch{any: true}}
	if reason, skipped := stage.SkipReason(subject.prove(t.Context(), &reports.Stage{})); !skipped || strings.Contains(reason, "\n") {
		t.Errorf("skipped %t: %q", skipped, reason)
	}
}
