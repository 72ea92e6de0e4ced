package checkout

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/validate/judge/nativefunctions"
)

// plant is a way round the guards that is put into PyTorch's own text: an operator that is declared otherwise, or lines behind a file's end.
type plant struct {
	file     string
	old, new string // of no old text new is added
	found    string // the function that the check must name
}

const (
	unaryKernels = "aten/src/ATen/native/mps/operations/UnaryKernel.mm"
	unaryOps     = "aten/src/ATen/native/mps/operations/UnaryOps.mm"
	planted      = "aten/src/ATen/native/Planted.cpp"
)

// plants are the forms in which each version makes and registers its kernels.
var plants = map[string][]plant{
	"v2.6.0": {
		{unaryOps, "", "namespace at::native { CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC(planted_out_mps, sin) }", "planted_out_mps"},
		{nativefunctions.File, "    MPS: sqrt_out_mps\n", "    CompositeExplicitAutograd: sqrt_out_mps\n", "sqrt_out_mps"},
	},
	"v2.9.1": {
		// A kernel that a macro makes and registers with its stub.
		{nativefunctions.File, "    CPU, CUDA, MPS, MTIA: exp_out\n", "    CompositeExplicitAutograd: exp_out\n", "exp_out"},
		{planted, "", "void calls_macro_stub(TensorIteratorBase& iter) { erfinv_stub(iter.device_type(), iter); }", "calls_macro_stub"},
		{unaryKernels, "", "void calls_macro_kernel(at::TensorIteratorBase& iter) { at::native::tanh_kernel_mps(iter); }", "calls_macro_kernel"},
		{unaryKernels, "", "namespace at::native { REGISTER_UNARY_TI_DISPATCH(nobodys) }", "nobodys_stub"},
		// trunc, whose macro takes two names.
		{nativefunctions.File, "    CPU, CUDA, MPS: trunc_out\n", "    CPU, CUDA, CompositeExplicitAutograd: trunc_out\n", "trunc_out"},
		{unaryOps, "", "void calls_trunc(at::TensorIteratorBase& iter) { at::native::mps_trunc_kernel(iter); }", "calls_trunc"},
		// Structured kernels: one that a macro makes, and index_reduce's, which is the CPU's alone and comes to stubs of MPS.
		{unaryOps, "", "namespace at::native { CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC(planted_out_mps, sin) }", "planted_out_mps"},
		{nativefunctions.File, "    MPS: asinh_out_mps\n", "    CompositeExplicitAutograd: asinh_out_mps\n", "asinh_out_mps"},
		{nativefunctions.File, "    CPU: index_reduce_cpu_out\n", "    CompositeExplicitAutogradNonFunctional: index_reduce_cpu_out\n", "index_reduce_cpu_out"},
	},
}

// On PyTorch's own text with the series nothing is found; with a way round the guards in each form, each of them is, and nothing else.
func TestGuardsOfRealTrees(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP real trees: -short")
	}
	cache := hosttest.Cache(t)
	for name, forms := range plants {
		t.Run(name, func(t *testing.T) {
			tree, series := hosttest.TreeOf(t, cache, name)
			dir := patchedCopy(t, tree, series, cache)
			require.Equal(t, naked(t, dir), nil, "found without any plant")
			var want []string
			for _, p := range forms {
				p.put(t, dir)
				want = append(want, p.found)
			}
			slices.Sort(want)
			require.Equal(t, naked(t, dir), want)
		})
	}
}

// On PyTorch's own text with the series no function that no exception may leave can raise, but those that never run; without one of the try blocks, or
// with an allocation, it is found. Of the baseline's own the report has some.
func TestEscapesOfRealTrees(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP real trees: -short")
	}
	cache := hosttest.Cache(t)
	reasons, seen := map[string]bool{}, 0
	for name := range plants {
		t.Run(name, func(t *testing.T) {
			tree, series := hosttest.TreeOf(t, cache, name)
			dir := patchedCopy(t, tree, series, cache)
			stock := stockOf(t, tree, cache)
			guard := runtimeFolder + "/MPSOpGuard.mm"
			for _, c := range []struct {
				plant
				found []string
			}{
				{plant{}, nil},
				{plant{file: guard, old: "MPSOpSuspension::~MPSOpSuspension() {",
					new: "MPSOpSuspension::~MPSOpSuspension() {\n  fenceMPSStream(pinned_);"}, []string{"~MPSOpSuspension allocates"}},
				{plant{file: guard, old: "void MPSOpGuard::leave() noexcept {",
					new: "void MPSOpGuard::leave() noexcept {\n  raisePosition(needed, {0, 0});"}, []string{"leave allocates", "~MPSOpSuspension allocates"}},
			} {
				if c.file != "" {
					c.put(t, dir)
				}
				if found := escaping(t, dir, stock); !slices.Equal(found, c.found) {
					t.Errorf("%s: found %v, want %v", c.new, found, c.found)
				}
			}
			all, _, err := escapes(dir, stock)
			require.NoError(t, err)
			if !slices.ContainsFunc(all, func(e escape) bool { return e.stock }) {
				t.Error("none of the baseline's own: the deleter of its pool of events locks")
			}
			for _, e := range all {
				reasons[e.harmless()] = true
			}
			seen++
		})
	}
	if seen < len(plants) {
		t.Skipf("SKIP rows of exemptions: whether each is of use shows on the trees of all %d baselines, and %d were seen", len(plants), seen)
	}
	for _, row := range harmless {
		if !reasons[row.reason] {
			t.Errorf("%s %s is exempt, and not found in any tree: delete the row", row.file, row.function)
		}
	}
}

// stockOf gives the baseline's text of a file, or none.
func stockOf(t *testing.T, tree, cache string) func(file string) (string, error) {
	t.Helper()
	checkout := require.One(fork.Open(t.Context(), tree, nil))(t)
	defer checkout.Close()
	source := require.One(checkout.Stock(t.Context(), cache))(t)
	return func(file string) (string, error) {
		text, err := os.ReadFile(filepath.Join(source.Dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return string(text), err
	}
}

// patchedCopy gives what the check reads of a tree with the whole series, in a folder of the test's.
func patchedCopy(t *testing.T, tree string, series *patches.Series, cache string) string {
	t.Helper()
	checkout := require.One(fork.Open(t.Context(), tree, nil))(t)
	defer checkout.Close()
	source := require.One(checkout.Patched(t.Context(), series, cache))(t)
	if len(source.LeftOut) > 0 {
		t.Fatalf("%s: %v were left out", tree, source.LeftOut)
	}
	dir := t.TempDir()
	for _, folder := range []string{kernelsFolder, "torch/csrc/mps", runtimeFolder, "torchgen", "aten/src/ATen/templates"} {
		require.NoError(t, os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(source.Dir, folder))))
	}
	return dir
}

// put changes the copy.
func (p plant) put(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, p.file)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	changed := string(text) + "\n" + p.new + "\n"
	if p.old != "" {
		if strings.Count(string(text), p.old) != 1 {
			t.Fatalf("%s has %q %d times, want once", p.file, p.old, strings.Count(string(text), p.old))
		}
		changed = strings.Replace(string(text), p.old, p.new, 1)
	}
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o644))
}

// naked names the functions without a guard, in the order of their names.
func naked(t *testing.T, dir string) []string {
	t.Helper()
	g := require.One(guards(dir))(t)
	names := []string{}
	for _, f := range g.naked {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}
