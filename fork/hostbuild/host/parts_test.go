package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// What torchgen writes, cut down to its shape.
const registrationText = `namespace at {
namespace {
void helper() {
}
namespace {
at::Tensor wrapper_MPS__relu(const at::Tensor & self) {
  return at::native::relu_mps(self);
}
} // anonymous namespace
namespace {
at::Tensor wrapper_MPS__sort(const at::Tensor & self) {
  return at::native::sort_mps(self);
}
} // anonymous namespace
struct structured_add_out_functional final : public at::native::structured_add_out_mps {
    int inside;
};
at::Tensor wrapper_MPS_add_Tensor(const at::Tensor & self) {
structured_add_out_functional op;
op.impl(self);
return std::move(op.outputs_[0]);
}
struct structured_erf_out_functional final : public at::native::structured_erf_out {
};
at::Tensor wrapper_MPS_erf(const at::Tensor & self) {
structured_erf_out_functional op;
return std::move(op.outputs_[0]);
}
TORCH_LIBRARY_IMPL(aten, MPS, m) {
    m.impl("relu",
TORCH_FN(wrapper_MPS__relu));
m.impl("sort", TORCH_FN(wrapper_MPS__sort));
m.impl("add.Tensor", TORCH_FN(wrapper_MPS_add_Tensor));
m.impl("erf", TORCH_FN(wrapper_MPS_erf));
}
} // anonymous namespace
namespace mps {
at::Tensor relu(const at::Tensor & self) {
return wrapper_MPS__relu(self);
}
at::Tensor sort_plain(const at::Tensor & self) {
return wrapper_MPS__sort(self);
}
} // namespace mps
} // namespace at
`

// Only operators whose kernels are there stay registered: the others must say that they have none, not fail to link.
func TestRegistrationKeepsOperatorsWithKernels(t *testing.T) {
	have := map[string]bool{"relu_mps": true, "structured_add_out_mps::impl": true}
	text, found, err := filterRegistration([]byte(registrationText), func(symbol string) bool { return have[symbol] })
	require.NoError(t, err)
	if kept, dropped := strings.Join(found.kept, " "), strings.Join(found.dropped, " "); kept != "relu add.Tensor" || dropped != "sort erf" {
		t.Errorf("kept %q, dropped %q", kept, dropped)
	}
	for _, gone := range []string{"wrapper_MPS__sort", "structured_erf", "sort_plain"} {
		if strings.Contains(string(text), gone) {
			t.Errorf("%s is still there:\n%s", gone, text)
		}
	}
	require.Contains(t, string(text), "void helper() {", "the helpers are gone")
}

// Sparse tensors have keys of their own from some version on; an operator may have a kernel for one key and not for another.
func TestSparseKernelsAreRegistered(t *testing.T) {
	text := strings.NewReplacer("MPS", "SparseMPS", "relu_mps", "relu_sparse").Replace(registrationText)
	filtered, found, err := filterRegistration([]byte(text), func(symbol string) bool { return symbol == "relu_sparse" })
	require.NoError(t, err)
	if kept, dropped := strings.Join(found.kept, ", "), strings.Join(found.dropped, ", "); kept != "relu (SparseMPS)" ||
		dropped != "sort (SparseMPS), add.Tensor (SparseMPS), erf (SparseMPS)" {
		t.Errorf("kept %s; dropped %s", kept, dropped)
	}
	if strings.Contains(string(filtered), "wrapper_SparseMPS__sort") {
		t.Errorf("the wrapper of what has no kernel is still there:\n%s", filtered)
	}
}

// Another version of torchgen may write another shape; that must not give a library without operators.
func TestRegistrationOfAnotherShapeIsRefused(t *testing.T) {
	if _, _, err := filterRegistration([]byte("namespace at {\n}\n"), func(string) bool { return true }); err == nil {
		t.Error("accepted")
	}
}

func TestKernelSymbols(t *testing.T) {
	found := kernelSymbols([]string{
		"_ZN2at6native8relu_mpsERKNS_6TensorE",
		"_ZN2at6native22structured_add_out_mps4implERKNS_6TensorES4_",
		"_ZN2at6native3mps5innerEv", // of an inner namespace: the namespace is taken for the name, which no kernel has
		"_ZN2at5emptyEv", "malloc", "_ZN2at6native99tooshort",
	})
	for _, name := range []string{"relu_mps", "structured_add_out_mps::impl"} {
		if !found[name] {
			t.Errorf("%s is missing in %v", name, found)
		}
	}
	if found["inner"] || found["empty"] || found["malloc"] {
		t.Errorf("too much: %v", found)
	}
}

// treeWith makes a folder with these files, which are empty.
func treeWith(t *testing.T, paths ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range paths {
		require.File(t, filepath.Join(dir, path), "")
	}
	return dir
}

// A tree that is only a part of PyTorch's builds; what it lacks is said, not passed over.
func TestSourcesLeftOutHaveReasons(t *testing.T) {
	const operations = "aten/src/ATen/native/mps/operations"
	facts := patches.HostFacts{Sources: []string{"aten/src/ATen/mps", operations}, Core: []string{operations + "/Linear.mm", operations + "/Copy.mm",
		operations + "/ReduceOps.mm"}, First: []string{operations + "/Copy.mm"},
		Excluded: map[string]string{"aten/src/ATen/mps/EmptyTensor.cpp": "a reason"}}
	checkout := treeWith(t, "aten/src/ATen/mps/MPSStream.mm", "aten/src/ATen/mps/EmptyTensor.cpp", "aten/src/ATen/mps/MPSStream.h",
		operations+"/Copy.mm", operations+"/Linear.mm", operations+"/Pooling.mm")
	leftOut := []Excluded{{"aten/src/ATen/mps/EmptyTensor.cpp", "a reason"}, {operations + "/ReduceOps.mm", NotThere}}
	for _, c := range []struct {
		extent             Extent
		compiled, excluded any
	}{
		{Whole, []string{"aten/src/ATen/mps/MPSStream.mm", operations + "/Copy.mm", operations + "/Linear.mm", operations + "/Pooling.mm"}, leftOut},
		{Core, []string{"aten/src/ATen/mps/MPSStream.mm", operations + "/Copy.mm", operations + "/Linear.mm"},
			append([]Excluded{{operations + "/Pooling.mm", NotNeeded}}, leftOut...)},
		{First, []string{"aten/src/ATen/mps/MPSStream.mm", operations + "/Copy.mm"},
			append([]Excluded{{operations + "/Linear.mm", NotNeeded}, {operations + "/Pooling.mm", NotNeeded}}, leftOut...)},
	} {
		compiled, excluded, err := backendSources(checkout, facts, c.extent)
		if err != nil || !reflect.DeepEqual(compiled, c.compiled) || !reflect.DeepEqual(excluded, c.excluded) {
			t.Errorf("extent %v: compiled %v, left out %v, %v; want %v, %v", c.extent, compiled, excluded, err, c.compiled, c.excluded)
		}
	}
}

// A file that is excluded and does not exist is an error, unless the tree is only a part of PyTorch's.
func TestExcludedSourcesExist(t *testing.T) {
	const mps = "aten/src/ATen/mps"
	facts := patches.HostFacts{Sources: []string{mps}, Core: []string{mps + "/MPSStream.mm"}, Excluded: map[string]string{mps + "/MPSSteam.cpp": "a reason"}}
	_, _, err := backendSources(treeWith(t, mps+"/MPSStream.mm"), facts, Whole)
	if !errors.Is(err, builds.ErrSources) || !strings.Contains(err.Error(),
		`excludes aten/src/ATen/mps/MPSSteam.cpp, which the checkout does not have (did you mean "aten/src/ATen/mps/MPSStream.mm"?)`) {
		t.Errorf("a whole tree: %v", err)
	}
	if _, _, err = backendSources(treeWith(t, mps+"/MPSEvent.mm"), facts, Whole); err != nil {
		t.Errorf("a part of a tree: %v", err)
	}
}

// A folder that only some trees have is compiled where it is, and named where it is not; one that all have must be there.
func TestFoldersOfSourcesThatMayBeMissing(t *testing.T) {
	const mps, sparse = "aten/src/ATen/mps", "aten/src/ATen/native/sparse/mps"
	facts := patches.HostFacts{Sources: []string{mps}, OptionalSources: []string{sparse}}
	whole, part := treeWith(t, mps+"/MPSStream.mm", sparse+"/SparseMPSTensor.mm"), treeWith(t, mps+"/MPSStream.mm")
	compiled, excluded, err := backendSources(whole, facts, Whole)
	if err != nil || !slices.Equal(compiled, []string{mps + "/MPSStream.mm", sparse + "/SparseMPSTensor.mm"}) || len(excluded) > 0 {
		t.Errorf("with the folder: compiled %v, left out %v, %v", compiled, excluded, err)
	}
	compiled, excluded, err = backendSources(part, facts, Whole)
	if err != nil || !slices.Equal(compiled, []string{mps + "/MPSStream.mm"}) || !slices.Equal(excluded, []Excluded{{sparse, NotThere}}) {
		t.Errorf("without it: compiled %v, left out %v, %v", compiled, excluded, err)
	}
	if _, _, err = backendSources(treeWith(t, sparse+"/SparseMPSTensor.mm"), facts, Whole); !errors.Is(err, builds.ErrSources) ||
		!strings.Contains(err.Error(), mps) {
		t.Errorf("without a folder that all trees have: %v", err)
	}
}

// Every baseline says how its sources are compiled, and what the scenarios need is not left out.
func TestBaselinesHaveHostFacts(t *testing.T) {
	baselines := require.One(patches.Baselines(patches.Embedded()))(t)
	for _, name := range baselines {
		series := require.One(patches.Load(patches.Embedded(), name))(t)
		facts := require.One(series.HostFacts())(t)
		if len(facts.Core) == 0 || len(facts.LayoutHeaders) == 0 || len(facts.LayoutClasses) == 0 || len(facts.QueueUses) == 0 {
			t.Errorf("%s: %+v", name, facts)
		}
		for _, path := range facts.Core {
			if reason := facts.Excluded[path]; reason != "" || !slices.Contains(facts.Sources, filepath.Dir(path)) {
				t.Errorf("%s needs %s, which is left out (%s) or in no source folder", name, path, reason)
			}
		}
	}
}

// The cache keeps the builds that were made last.
func TestOldBuildsAreDropped(t *testing.T) {
	hosts := t.TempDir()
	for i := range keptBuilds + 3 {
		dir := filepath.Join(hosts, fmt.Sprint(i))
		require.NoError(t, os.Mkdir(dir, 0o755))
		when := time.Now().Add(time.Duration(i-1000) * time.Minute)
		require.NoError(t, os.Chtimes(dir, when, when))
	}
	require.NoError(t, makeAndDropOld(filepath.Join(hosts, "0"), keptBuilds)) // the oldest is built again
	for name, kept := range map[string]bool{"0": true, "1": false, "3": false, "4": true} {
		require.Equal(t, builds.Exists(filepath.Join(hosts, name)), kept, name, "kept")
	}
}

// An operator that torchgen registers and no source has a kernel of is an error, and so is one that is listed and has a kernel; a
// build of some of the sources is excused.
func TestEveryOperatorIsRegistered(t *testing.T) {
	b := builder{Options: Options{Facts: patches.HostFacts{Unregistered: map[string]string{"listed": "a reason"}}}}
	for _, c := range []struct {
		name     string
		found    registered
		excluded []Excluded
		want     string
	}{
		{"all", registered{kept: []string{"relu"}, dropped: []string{"listed"}}, nil, ""},
		{"no kernel", registered{kept: []string{"relu"}, dropped: []string{"lost"}}, nil, "aten::lost"},
		{"listed, with a kernel", registered{kept: []string{"listed"}}, nil, "aten::listed has a kernel"},
		{"listed, and no operator", registered{kept: []string{"relu"}, dropped: []string{"listd"}}, nil, "aten::listd"},
		{"the core alone", registered{dropped: []string{"lost"}}, []Excluded{{"Pooling.mm", NotNeeded}}, ""},
		{"a part of the tree", registered{dropped: []string{"lost"}}, []Excluded{{"Pooling.mm", NotThere}}, ""},
		{"left out for another reason", registered{dropped: []string{"lost"}}, []Excluded{{"EmptyTensor.cpp", "a reason"}}, "aten::lost"},
	} {
		err := b.checkDropped(c.found, c.excluded)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
