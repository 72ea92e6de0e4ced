package checkout

import (
	"slices"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/reports"
	"mpsforge/validate/judge/nativefunctions"
)

// A small backend in which every function that asks for a stream is covered.
var coveredBackend = map[string]string{
	generatorFile: `return "const at::mps::MPSOpGuard mps_op_guard({});"`,
	nativefunctions.File: `
- func: twice.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: twice_out
    MPS: twice_out_mps
- func: thrice.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, MPS: thrice_out
- func: thrice.cpu_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, SparseCsrMeta: thrice_cpu_out
- func: half.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, MPS: half_out
- func: half(Tensor self) -> Tensor
  structured_delegate: half.out
- func: mixed(Tensor self) -> Tensor
- func: summed(Tensor self) -> Tensor
  dispatch:
    CompositeExplicitAutograd: summed_all
- func: as_view(Tensor(a) self) -> Tensor(a)
  dispatch:
    MPS: view_mps
`,
	"aten/src/ATen/native/Thrice.cpp": `
TORCH_IMPL_FUNC(thrice_out)(const Tensor& self, const Tensor& out) { thrice_stub(self.device(), out); }
Tensor& copy_(Tensor& self) { return at::native::mps::copy_mps_(self); }
TORCH_IMPL_FUNC(thrice_cpu_out)(const Tensor& self, const Tensor& out) { thrice_stub(self.device(), out); }
`,
	"aten/src/ATen/native/Half.cpp": `
#define STRUCTURED(out, stub) \
  TORCH_IMPL_FUNC(out)(const Tensor& self, const Tensor& result) { \
    stub(device_type(), *this); \
  }
STRUCTURED(half_out, half_stub)
`,
	"aten/src/ATen/native/mps/operations/Half.mm": `
#define KERNEL(NAME) \
  static void NAME##_kernel(TensorIteratorBase& iter) { \
    lib.encode(iter, #NAME); \
  } \
  REGISTER_DISPATCH(NAME##_stub, NAME##_kernel)
KERNEL(half);
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
		require.Files(t, dir, files)
	}
	g := require.One(guards(dir))(t)
	names := []string{}
	for _, f := range g.naked {
		names = append(names, f.name)
	}
	return names
}

// Wrappers, stubs, helpers, templates, macros and a hand-written guard cover what asks for a stream; a kernel for other devices needs none.
func TestCoveredBackendHasNoFinding(t *testing.T) {
	require.Equal(t, uncovered(t, nil), nil)
}

// Each way to encode without a guard is found, at the function from which no caller leads on.
func TestWorkWithoutAGuardIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		function string
	}{
		"a function that nothing in the operators' folders wraps": {
			`void made_public(const Tensor& t) { getCurrentMPSStream(); } void caller() { made_public(t); }`, "caller"},
		"a view, whose wrapper has no guard": {
			`Tensor view_mps(const Tensor& self) { getCurrentMPSStream(); return self; }`, "view_mps"},
		"a hand-written guard that is gone": {`Tensor& copy_mps_(Tensor& self) { getCurrentMPSStream(); return self; }`, "copy_"},
		"a stub that a function without a wrapper calls": {
			"static void k() { getDefaultMPSStream(); }\nREGISTER_DISPATCH(other_stub, &k)\nTensor composite(const Tensor& t) { other_stub(t); }", "composite"},
		"a kernel and its stub, made by a macro, that no operator calls": {
			"#define KERNEL(NAME) \\\n static void NAME##_kernel() { encode(); } \\\n REGISTER_DISPATCH(NAME##_stub, NAME##_kernel)\nKERNEL(sinc);",
			"sinc_stub"},
		"a stub made by a macro, called by a function without a wrapper": {`Tensor caller(const Tensor& t) { half_stub(t.device(), t); }`, "caller"},
		"a kernel made by a macro, called by a function whose name another one has": {`#define KERNEL(NAME) static void NAME##_kernel() { encode(); }
KERNEL(copy_mps_); void half() { copy_mps__kernel(); }`, "half"},
		"a structured kernel, made by a macro, of no operator": {`#define IMPL(out) TORCH_IMPL_FUNC(out)(const Tensor& self) { encode(self); }
IMPL(quarter_out_mps)`, "quarter_out_mps"},
		"a stream that a macro asks for": {"#define ASK getCurrentMPSStream()\nvoid asks() { ASK->queue(); }", "asks"},
		"an operator with no kernels, called by a guarded one, too": {
			`Tensor mixed(const Tensor& t) { encode(t); } Tensor guarded(const Tensor& t) { const MPSOpGuard guard({t}); mixed(t); }`, "mixed"},
		"a composite kernel that a guarded function calls, too": {
			`Tensor summed_all(const Tensor& t) { encode(t); } Tensor guarded(const Tensor& t) { const MPSOpGuard guard({t}); summed_all(t); }`, "summed_all"},
		"a kernel in the operators' folder that only the CPU has": {`TORCH_IMPL_FUNC(thrice_cpu_out)(const Tensor& self) { encode(self); }`, "thrice_cpu_out"},
		"an overload beside one with a guard": {
			"Tensor other(const Tensor& t) { const MPSOpGuard guard({t}); getCurrentMPSStream(); }\nTensor other(Scalar s) { getCurrentMPSStream(); }",
			"other"},
		"a constructor with members": {
			`Placeholder::Placeholder(Tensor t) : tensor_(t), size_(t.size()) { getCurrentMPSStream(); } int make() { Placeholder(t); }`, "make"},
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

// A kernel for other devices is passed over because tensors of MPS do not come there: when a composite operator of another file calls it, they do.
func TestKernelForOtherDevicesThatIsCalledByName(t *testing.T) {
	call := map[string]string{"aten/src/ATen/native/Composite.cpp": "Tensor composite(const Tensor& t) { at::native::thrice_cpu_out(t, t); }"}
	require.Equal(t, uncovered(t, call), []string{"composite"})
}

// A checkout without the patch that writes guards is not judged.
func TestCheckoutWithoutGuardsIsSkippedByName(t *testing.T) {
	report := &reports.Stage{}
	require.NoError(t, checkGuards(t.TempDir(), report))
	if len(report.Checks) != 1 || report.Checks[0].Verdict != reports.Skipped {
		t.Errorf("%+v", report.Checks)
	}
}
