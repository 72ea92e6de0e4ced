package checkout

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mpsforge/reports"
)

// A small backend in which every function that asks for a stream is covered.
var coveredBackend = map[string]string{
	generatorFile: `return "const at::mps::MPSOpGuard mps_op_guard({});"`,
	operatorsFile: `
- func: twice.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: twice_out
    MPS: twice_out_mps
- func: thrice.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, MPS: thrice_out
- func: as_view(Tensor(a) self) -> Tensor(a)
  dispatch:
    MPS: view_mps
`,
	"aten/src/ATen/native/Thrice.cpp": `
TORCH_IMPL_FUNC(thrice_out)(const Tensor& self, const Tensor& out) { thrice_stub(self.device(), out); }
Tensor& copy_(Tensor& self) { return at::native::mps::copy_mps_(self); }
`,
	"aten/src/ATen/native/mps/operations/Twice.mm": `
static void encode(const Tensor& out) { getCurrentMPSStream()->queue(); }
template <typename T> void helper(T& out) { encode(out); }
TORCH_IMPL_FUNC(twice_out_mps)(const Tensor& self, const Tensor& out) { helper<int>(out); }
static void thrice_kernel(const Tensor& out) { encode(out); }
REGISTER_DISPATCH(thrice_stub, &thrice_kernel)
Tensor& copy_mps_(Tensor& self) { const MPSOpGuard guard({self}); encode(self); return self; }
Tensor view_mps(const Tensor& self) { return at::twice(self); }
`,
}

// uncovered writes a backend, with files in place of those of the covered one, and names the functions that the check finds.
func uncovered(t *testing.T, instead map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	for _, files := range []map[string]string{coveredBackend, instead} {
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	g, err := guards(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, f := range g.naked {
		names = append(names, f.name)
	}
	return names
}

// Wrappers, stubs, helpers, templates and a hand-written guard cover what asks for a stream.
func TestCoveredBackendHasNoFinding(t *testing.T) {
	if names := uncovered(t, nil); len(names) != 0 {
		t.Errorf("found %v", names)
	}
}

// Each way to encode without a guard is found, at the function from which no caller leads on.
func TestWorkWithoutAGuardIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		function string
	}{
		"a function that nothing in the operators' folders wraps": {`void made_public(const Tensor& t) { getCurrentMPSStream(); } void caller() { made_public(t); }`, "caller"},
		"a view, whose wrapper has no guard":                      {`Tensor view_mps(const Tensor& self) { getCurrentMPSStream(); return self; }`, "view_mps"},
		"a hand-written guard that is gone":                       {`Tensor& copy_mps_(Tensor& self) { getCurrentMPSStream(); return self; }`, "copy_"},
		"a stub that a function without a wrapper calls":          {"static void k() { getDefaultMPSStream(); }\nREGISTER_DISPATCH(other_stub, &k)\nTensor composite(const Tensor& t) { other_stub(t); }", "composite"},
		"an overload beside one with a guard":                     {"Tensor other(const Tensor& t) { const MPSOpGuard guard({t}); getCurrentMPSStream(); }\nTensor other(Scalar s) { getCurrentMPSStream(); }", "other"},
		"a constructor with members":                              {`Placeholder::Placeholder(Tensor t) : tensor_(t), size_(t.size()) { getCurrentMPSStream(); } int make() { Placeholder(t); }`, "make"},
	} {
		t.Run(name, func(t *testing.T) {
			instead := map[string]string{"aten/src/ATen/native/mps/operations/Other.mm": c.text}
			if c.function == "copy_" || c.function == "view_mps" {
				instead["aten/src/ATen/native/mps/operations/Twice.mm"] = c.text
				delete(instead, "aten/src/ATen/native/mps/operations/Other.mm")
			}
			if names := uncovered(t, instead); !slices.Equal(names, []string{c.function}) {
				t.Errorf("found %v, want %s", names, c.function)
			}
		})
	}
}

// A checkout without the patch that writes guards is not judged.
func TestCheckoutWithoutGuardsIsSkippedByName(t *testing.T) {
	report := &reports.Stage{}
	if err := checkGuards(t.TempDir(), report); err != nil {
		t.Fatal(err)
	}
	if len(report.Checks) != 1 || report.Checks[0].Verdict != reports.Skipped {
		t.Errorf("%+v", report.Checks)
	}
}
