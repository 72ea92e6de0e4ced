package checkout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/validate/judge/nativefunctions"
)

// schemas are operators of each form that a guard depends on, and wrappers what torchgen writes for them.
const schemas = `
- func: joined.out(Tensor[] tensors, int[2] pads=[0, 1], Tensor?[] extra, *, Tensor(a!)[] out) -> ()
  dispatch:
    CPU: joined_cpu
    MPS, SparseMPS: joined_mps
- func: native_batch_norm(Tensor input, Tensor? running_mean, bool training) -> Tensor
  dispatch:
    MPS: norm_mps
- func: half.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, MPS: half_out
- func: half(Tensor self) -> Tensor
  structured_delegate: half.out
- func: as_view(Tensor(a) self) -> Tensor(a)
  dispatch:
    MPS: view_mps
- func: set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)
  dispatch:
    MPS: set_storage
- func: of_cpu(Tensor self) -> Tensor
  dispatch:
    CPU: of_cpu
`

const wrappers = `
namespace {
void wrapper_MPS_out_joined_out(at::TensorList tensors, at::IntArrayRef pads, const c10::List<::std::optional<at::Tensor>> & extra, at::TensorList out) {
    // No device check
  const at::mps::MPSOpGuard mps_op_guard({{tensors}, {extra}, {out, true}});
  return at::native::joined_mps(tensors, pads, extra, out);
}
} // anonymous namespace
void wrapper_SparseMPS_out_joined_out(at::TensorList tensors, at::IntArrayRef pads, const c10::List<::std::optional<at::Tensor>> & extra, at::TensorList out) {
  const at::mps::MPSOpGuard mps_op_guard({{tensors}, {extra}, {out, true}});
  return at::native::joined_mps(tensors, pads, extra, out);
}
at::Tensor wrapper_MPS__native_batch_norm(const at::Tensor & input, const ::std::optional<at::Tensor> & running_mean, bool training) {
  const at::mps::MPSOpGuard mps_op_guard({{input}, {running_mean, training}});
  return at::native::norm_mps(input, running_mean, training);
}
at::Tensor & wrapper_MPS_half_out_out(const at::Tensor & self, at::Tensor & out) {
const at::mps::MPSOpGuard mps_op_guard({{self}, {out, true}});
structured_half_out_out op(out);
op.meta(self);
return out;
}
at::Tensor wrapper_MPS_half(const at::Tensor & self) {
const at::mps::MPSOpGuard mps_op_guard({{self}});
structured_half_out_functional op;
return std::move(op.outputs_[0]);
}
at::Tensor wrapper_MPS__as_view(const at::Tensor & self) {
  // A view gives nothing to the GPU
  return at::native::view_mps(self);
}
at::Tensor & wrapper_MPS_source_Storage_set_(at::Tensor & self, at::Storage source) {
  const c10::Storage replaced = self.storage();
  const at::mps::MPSOpGuard mps_op_guard({{self, true}, {source}});
  return at::native::set_storage(self, source);
}
TORCH_LIBRARY_IMPL(aten, MPS, m) {
    m.impl("joined.out",
TORCH_FN(wrapper_MPS_out_joined_out));
m.impl("native_batch_norm", TORCH_FN(wrapper_MPS__native_batch_norm));
m.impl("half.out", TORCH_FN(wrapper_MPS_half_out_out));
m.impl("half", TORCH_FN(wrapper_MPS_half));
m.impl("as_view", TORCH_FN(wrapper_MPS__as_view));
m.impl("set_.source_Storage", TORCH_FN(wrapper_MPS_source_Storage_set_));
}
TORCH_LIBRARY_IMPL(aten, SparseMPS, m) {
    m.impl("joined.out", TORCH_FN(wrapper_SparseMPS_out_joined_out));
}
`

// Each mistake in a generated guard is found, with the function and the argument.
func TestWrappersAgainstSchemas(t *testing.T) {
	operators := require.One(nativefunctions.Parse([]byte(schemas)))(t)
	for name, c := range map[string]struct{ old, new, want string }{
		"right":               {"", "", ""},
		"no argument for out": {"{{self}, {out, true}}", "{{self}}", "MPS half.out: argument out is missing in its guard"},
		"an argument is left out": {"{{input}, {running_mean, training}}", "{{running_mean, training}}",
			"MPS native_batch_norm: argument input is missing in its guard"},
		"a list as read": {"No device check\n  const at::mps::MPSOpGuard mps_op_guard({{tensors}, {extra}, {out, true}});",
			"No device check\n  const at::mps::MPSOpGuard mps_op_guard({{tensors}, {out}});",
			"MPS joined.out: argument extra is missing in its guard; MPS joined.out: argument out is only read in its guard, and should be written"},
		"a storage is missing": {"{{self, true}, {source}}", "{{self, true}}", "MPS set_.source_Storage: argument source is missing in its guard"},
		"no write":             {"{{self}, {out, true}}", "{{self}, {out}}", "MPS half.out: argument out is only read in its guard, and should be written"},
		"a write too many":     {"({{self}});", "({{self, true}});", "MPS half: argument self is written in its guard, and should be only read"},
		"the other condition": {"{running_mean, training}", "{running_mean, !training}",
			"MPS native_batch_norm: argument running_mean is written if !training in its guard, and should be written if training"},
		"always": {"{running_mean, training}", "{running_mean, true}",
			"MPS native_batch_norm: argument running_mean is written in its guard, and should be written if training"},
		"never": {"{running_mean, training}", "{running_mean}",
			"MPS native_batch_norm: argument running_mean is only read in its guard, and should be written if training"},
		"twice":       {"({{self}});", "({{self}, {self}});", "MPS half: argument self is in its guard twice"},
		"no tensor":   {"({{self}});", "({{self}, {other}});", "MPS half: argument other is in its guard, and is no tensor of the schema"},
		"no guard":    {"const at::mps::MPSOpGuard mps_op_guard({{self}});\n", "", "MPS half: it has no guard"},
		"a temporary": {"MPSOpGuard mps_op_guard({{self}});", "MPSOpGuard({{self}});", "MPS half: it has no guard"},
		"behind the kernel": {"const at::mps::MPSOpGuard mps_op_guard({{self}});\nstructured_half_out_functional op;",
			"structured_half_out_functional op;\nconst at::mps::MPSOpGuard mps_op_guard({{self}});", "MPS half: its guard is not the first that it does"},
		"a view": {"// A view gives nothing to the GPU", "const at::mps::MPSOpGuard mps_op_guard({{self}});",
			"MPS as_view: it is a view that writes nothing, and has a guard"},
		"not registered": {`m.impl("half", TORCH_FN(wrapper_MPS_half));`, "", "MPS half: torchgen writes no wrapper for it"},
		"one too many": {`m.impl("half", TORCH_FN(wrapper_MPS_half));`,
			`m.impl("half", TORCH_FN(wrapper_MPS_half)); m.impl("of_cpu", TORCH_FN(wrapper_MPS_half));`,
			"MPS of_cpu: torchgen writes a wrapper, and aten/src/ATen/native/native_functions.yaml names no kernel for it"},
	} {
		if c.old != "" && strings.Count(wrappers, c.old) != 1 {
			t.Errorf("%s: %q is there %d times, want once", name, c.old, strings.Count(wrappers, c.old))
		}
		faults, read := wrapperFaults(operators, []string{strings.Replace(wrappers, c.old, c.new, 1)})
		if got := strings.Join(told(faults), "; "); got != c.want || read != 7 {
			t.Errorf("%s: %d read, found %q, want %q", name, read, got, c.want)
		}
	}
}

func told(faults []wrapperFault) (lines []string) {
	for _, f := range faults {
		lines = append(lines, fmt.Sprintf("%s %s: %s", f.key, f.function, f.says))
	}
	return lines
}

// What the torchgen of the real trees writes agrees with all schemas; with faults planted into it, what each changes is found, and nothing else.
// Every row of the table of writes is of use.
func TestWrappersOfRealTrees(t *testing.T) {
	root, cache := hosttest.Root(t)
	for name := range plants {
		t.Run(name, func(t *testing.T) {
			tree, series := hosttest.TreeOf(t, cache, name)
			dir := patchedCopy(t, tree, series, cache)
			faults, read, err := generatedFaults(t.Context(), root, dir, cache, events.Discard)
			require.NoError(t, err)
			if len(faults) > 0 || read < 700 {
				t.Fatalf("%d wrappers read; found without any plant: %q", read, told(faults))
			}
			operators := require.One(nativefunctions.Read(dir))(t)
			for _, w := range unsaidWrites {
				if !slices.ContainsFunc(operators, func(o nativefunctions.Operator) bool {
					return o.Name == w.function && slices.ContainsFunc(o.Tensors, func(a nativefunctions.Tensor) bool { return a.Name == w.argument })
				}) {
					t.Errorf("%s has no argument %s: delete the row", w.function, w.argument)
				}
			}
			for _, p := range []plant{
				{file: generatorFile, old: "    for a in f.func.arguments.flat_all:\n        if not a.type.is_tensor_like() and",
					new: "    for a in f.func.arguments.flat_non_out:\n        if not a.type.is_tensor_like() and"},
				{file: generatorFile, old: "is_written = a.annotation is not None and a.annotation.is_write\n",
					new: "is_written = a.annotation is not None and a.annotation.is_write and not a.type.is_list_like()\n"},
				{file: generatorFile, old: `    "native_batch_norm": {"running_mean": "training", "running_var": "training"},`,
					new: `    "native_batch_norm": {"running_mean": "!training", "running_var": "true"},`},
			} {
				p.put(t, dir)
			}
			faults, _, err = generatedFaults(t.Context(), root, dir, t.TempDir(), events.Discard)
			require.NoError(t, err)
			found := told(faults)
			for _, want := range []string{
				"MPS add.out: argument out is missing in its guard",
				"MPS _fused_adam_: argument self is only read in its guard, and should be written",
				"MPS native_batch_norm: argument running_mean is written if !training in its guard, and should be written if training",
				"MPS native_batch_norm: argument running_var is written in its guard, and should be written if training",
			} {
				if !slices.Contains(found, want) {
					t.Errorf("not found: %s; found were %d, such as %q", want, len(found), found[:min(5, len(found))])
				}
			}
		})
	}
}
