package validate

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/build"
	"mpsforge/reports"
)

// A Python that loads a stock torch, put in the way by PYTHONPATH, is refused before any test, with the reason.
func TestPlantedStockTorchIsRefused(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	planted, err := filepath.Abs("testdata/othertorch")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := unpackPython(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	subject := pythonSubject{name: "patched", interpreter: python, device: "mps", scripts: scripts, limits: defaultPythonLimits, wanted: wantedTorch{version: "2.6.0", series: "abc"}}
	t.Setenv("PYTHONPATH", planted)
	var stage reports.Stage
	err = subject.prove(t.Context(), &stage)
	if !errors.Is(err, ErrOtherTorch) {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"expected a stamp of mpsforge build with series abc, found no stamp", "PYTHONPATH names " + planted} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %v", part, err)
		}
	}
	// The same torch is right where a stock one is wanted.
	subject.wanted = wantedTorch{version: "2.6.0", stock: true}
	if err := subject.prove(t.Context(), &stage); err != nil {
		t.Error(err)
	}
}

// Each way to load another torch than the wanted one has its words and its likely reason.
func TestTorchMismatches(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libtorch_cpu.dylib")
	if err := os.WriteFile(library, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	stampOf := func(series string, patches ...string) string {
		text, err := (build.Stamp{Format: 1, Kind: "mac", Series: series, Patches: patches}).Text()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := pythonIdentity{Torch: "2.9.1+gitd38164a", Library: library, Stamp: stampOf("abc", "stream-slots"), Prefix: "/venv", Package: "/venv/lib/torch/__init__.py"}
	patched := wantedTorch{version: "2.9.1", series: "abc"}
	for name, c := range map[string]struct {
		wanted wantedTorch
		change func(*pythonIdentity)
		words  []string // none: it is the wanted one
	}{
		"the wanted one":       {patched, func(*pythonIdentity) {}, nil},
		"another version":      {patched, func(i *pythonIdentity) { i.Torch = "2.10.0" }, []string{"expected torch 2.9.1, found torch 2.10.0"}},
		"another series":       {patched, func(i *pythonIdentity) { i.Stamp = stampOf("def") }, []string{"expected series abc, found series def", "build again"}},
		"an editable install":  {patched, func(i *pythonIdentity) { i.Stamp, i.Editable = "", "file:///old" }, []string{"found no stamp", "editable install (file:///old)"}},
		"another venv":         {patched, func(i *pythonIdentity) { i.Stamp, i.Prefix = "", "/other" }, []string{"/other has a torch of its own", "--python"}},
		"stock is patched":     {wantedTorch{version: "2.9.1", stock: true}, func(*pythonIdentity) {}, []string{"expected an unpatched torch", "--stock belongs to the patched"}},
		"another build's path": {wantedTorch{version: "2.9.1", stamp: good.Stamp, library: "/nowhere"}, func(*pythonIdentity) {}, []string{"expected library /nowhere"}},
		"a changed file":       {wantedTorch{version: "2.9.1", series: "abc", file: &pythonIdentity{Library: library, Size: 7}}, func(*pythonIdentity) {}, []string{"as it was at the start of this stage"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := good
			c.change(&found)
			err := c.wanted.mismatch(found)
			if (err == nil) != (c.words == nil) {
				t.Fatalf("%v", err)
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("no %q in %v", word, err)
				}
			}
		})
	}
}

// A Python without torch is no failed verification: there is nothing to verify. A folder called torch in the current folder,
// such as a checkout's, is no torch of the Python's.
func TestPythonWithoutTorch(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	planted, err := filepath.Abs("testdata/othertorch")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", "")
	torchless := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(torchless, []byte("#!/bin/sh\nexec "+python+" -S \"$@\"\n"), 0o755); err != nil { // without installed packages
		t.Fatal(err)
	}
	scripts, err := unpackPython(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(planted)
	if err := CheckTorch(t.Context(), torchless); !errors.Is(err, ErrNoTorch) {
		t.Errorf("%v", err)
	}
	if err := CheckTorch(t.Context(), torchless, "PYTHONPATH="+planted); err != nil {
		t.Error(err)
	}
	subject := pythonSubject{name: "cpu", interpreter: torchless, device: "cpu", scripts: scripts, limits: defaultPythonLimits, wanted: wantedTorch{any: true}}
	if reason, skipped := SkipReason(subject.prove(t.Context(), &reports.Stage{})); !skipped || strings.Contains(reason, "\n") {
		t.Errorf("skipped %t: %q", skipped, reason)
	}
}
