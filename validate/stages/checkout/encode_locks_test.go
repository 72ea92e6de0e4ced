package checkout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/reports"
)

// lockedKernels has each form in which kernels are made, locked and encoded.
const lockedKernels = `
@interface MPSNDArrayIdentity : MPSNDArrayUnaryKernel
- (MPSNDArray*)reshapeWithCommandBuffer:(id<MTLCommandBuffer>)buffer sourceArray:(MPSNDArray*)source;
@end
static void linear(bool biased) {
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    if (biased) {
      auto kernel = cached->kernel<MPSNDArrayMatrixMultiplication>();
      auto lock = lockEncode(SerialEncode::NDArrayMatrixMultiplication);
      [kernel encodeToCommandEncoder:encoder commandBuffer:buffer sourceArrays:@[ a, b ] destinationArray:c];
      lock.unlock();
    } else {
      auto kernel = cached->kernel<MPSNDArrayMatrixMultiplication>();
      auto lock = mps::lockEncode(mps::SerialEncode::NDArrayMatrixMultiplication);
      [kernel encodeToCommandEncoder:encoder commandBuffer:buffer sourceArrays:@[ a ] destinationArray:c];
      lock.unlock();
    }
  });
}
Tensor solve(const Tensor& A) {
  MPSMatrixDecompositionLU* filter = [[[MPSMatrixDecompositionLU alloc] initWithDevice:device] autorelease];
  auto solver = [[[MPSMatrixSolveLU alloc] initWithDevice:device] autorelease];
  for (int i = 0; i < 2; ++i) {
    auto lock = lockEncode(SerialEncode::MatrixDecompositionLU);
    [filter encodeToCommandBuffer:buffer sourceMatrix:a];
    lock.unlock();
    lock = lockEncode(SerialEncode::MatrixSolveLU);
    [solver encodeToCommandBuffer:buffer sourceMatrix:a];
  }
}
`

// Each way to encode without the lock is found.
func TestEncodeLocks(t *testing.T) {
	const without = "without lockEncode(SerialEncode::"
	for name, c := range map[string]struct{ old, new, want string }{
		"right": {"", "", ""},
		"no lock": {"      auto lock = mps::lockEncode(mps::SerialEncode::NDArrayMatrixMultiplication);\n", "",
			without + "NDArrayMatrixMultiplication)"},
		"a temporary":    {"auto lock = mps::lockEncode", "mps::lockEncode", without + "NDArrayMatrixMultiplication)"},
		"unlocked":       {"@[ a ] destinationArray:c];\n      lock.unlock();", "@[ a ] destinationArray:c];", ""},
		"unlocked first": {"MatrixDecompositionLU);\n", "MatrixDecompositionLU);\n lock.unlock();\n", without + "MatrixDecompositionLU)"},
		"locked again":   {"MatrixDecompositionLU);\n", "MatrixDecompositionLU);\n lock.unlock(); lock.lock();\n", ""},
		"moved":          {"MatrixDecompositionLU);\n", "MatrixDecompositionLU);\n keep(std::move(lock));\n", without + "MatrixDecompositionLU)"},
		"not taken back": {"lock = lockEncode(SerialEncode::MatrixSolveLU);", "", without + "MatrixSolveLU)"},
		"another's": {"SerialEncode::MatrixSolveLU", "SerialEncode::MatrixSolveTriangular",
			"with the lock of MatrixSolveTriangular, and needs that of MatrixSolveLU"},
		"in a scope that ended": {"      auto lock = mps::lockEncode(mps::SerialEncode::NDArrayMatrixMultiplication);",
			"      { auto lock = mps::lockEncode(mps::SerialEncode::NDArrayMatrixMultiplication); }", without + "NDArrayMatrixMultiplication)"},
		"unlocked twice": {"MatrixDecompositionLU);\n", "MatrixDecompositionLU);\n lock.unlock(); lock.lock(); lock.unlock();\n",
			without + "MatrixDecompositionLU)"},
		"two locks": {"    lock = lockEncode(SerialEncode::MatrixSolveLU);",
			"    lock = lockEncode(SerialEncode::MatrixSolveLU); auto other = lockEncode(SerialEncode::LayerNorm);", ""},
		"no variable": {"    [solver encodeToCommandBuffer", "    [cached->kernel<MPSMatrixSolveLU>() encodeToCommandBuffer", "cannot be read"},
		"outside of the block": {"  dispatch_sync_with_rethrow(stream->queue(), ^() {\n    if (biased) {\n" +
			"      auto kernel = cached->kernel<MPSNDArrayMatrixMultiplication>();\n" +
			"      auto lock = lockEncode(SerialEncode::NDArrayMatrixMultiplication);",
			"  auto lock = lockEncode(SerialEncode::NDArrayMatrixMultiplication);\n  dispatch_sync_with_rethrow(stream->queue(), ^() {\n    if (biased) {\n" +
				"      auto kernel = cached->kernel<MPSNDArrayMatrixMultiplication>();", without + "NDArrayMatrixMultiplication)"},
		"in a comment": {"    auto lock = lockEncode(SerialEncode::MatrixDecompositionLU);",
			"    auto lock = none; // lock = lockEncode(SerialEncode::MatrixDecompositionLU);", without + "MatrixDecompositionLU)"},
		"a new class":    {"[[[MPSMatrixSolveLU alloc]", "[[[MPSMatrixSolveCholesky alloc]", "MPSMatrixSolveCholesky is not in the table of kernels"},
		"no known class": {"auto solver = [[[MPSMatrixSolveLU alloc] initWithDevice:device] autorelease];", "", "cannot be read"},
	} {
		if c.old != "" && strings.Count(lockedKernels, c.old) != 1 {
			t.Errorf("%s: %q is there %d times, want once", name, c.old, strings.Count(lockedKernels, c.old))
		}
		calls := encodeCalls("Linear.mm", strings.Replace(lockedKernels, c.old, c.new, 1))
		var faults []string
		for _, call := range calls {
			if call.fault != "" {
				faults = append(faults, call.fault)
			}
		}
		if len(calls) != 4 || (c.want == "") != (len(faults) == 0) || len(faults) > 1 || c.want != "" && !strings.Contains(faults[0], c.want) {
			t.Errorf("%s: %d calls, found %q, want %q", name, len(calls), faults, c.want)
		}
	}
}

// On the real trees each kernel has its lock; without it, with it unlocked or with another's, it is found, and nothing else.
func TestEncodeLocksOfRealTrees(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP real trees: -short")
	}
	const linear, algebra = "aten/src/ATen/native/mps/operations/Linear.mm", "aten/src/ATen/native/mps/operations/LinearAlgebra.mm"
	const normalization = "aten/src/ATen/native/mps/operations/Normalization.mm"
	const multiply = "auto lock = lockEncode(SerialEncode::NDArrayMatrixMultiplication);\n"
	bias := func(sources string) string {
		return "        [kernel encodeToCommandEncoder:computeEncoder\n                         commandBuffer:commandBuffer\n" +
			"                          sourceArrays:@[ inputNDArray, weightNDArray" + sources + " ]\n"
	}
	for name, c := range map[string]struct {
		calls  int
		plants []plant
	}{
		"v2.6.0": {5, []plant{
			{algebra, "const auto lock = lockEncode(SerialEncode::MatrixDecompositionLU);", "", "MPSMatrixDecompositionLU is encoded without"},
			{algebra, "SerialEncode::MatrixSolveTriangular", "SerialEncode::NDArrayIdentity", "needs that of MatrixSolveTriangular"},
		}},
		"v2.9.1": {10, []plant{
			{linear, "        " + multiply + bias(""), bias(""), "MPSNDArrayMatrixMultiplication is encoded without"},
			{linear, multiply + bias(", biasNDArray"), multiply + "lock.unlock();\n" + bias(", biasNDArray"),
				"MPSNDArrayMatrixMultiplication is encoded without"},
			{algebra, "        lock = lockEncode(SerialEncode::MatrixSolveLU);",
				"        lock = lockEncode(SerialEncode::MatrixDecompositionLU);", "needs that of MatrixSolveLU"},
			{normalization, "const auto lock = mps::lockEncode(mps::SerialEncode::LayerNorm);", "",
				"layerNormKernel is encoded without"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cache := hosttest.Cache(t)
			tree, series := hosttest.TreeOf(t, cache, name)
			dir := patchedCopy(t, tree, series, cache)
			read := func() (calls []encodeCall, faults []string) {
				require.One(eachSource(dir, kernelFolders, func(file, text string) { calls = append(calls, encodeCalls(file, text)...) }))(t)
				for _, call := range calls {
					if call.fault != "" {
						faults = append(faults, fmt.Sprintf("%s:%d: %s", call.file, call.line, call.fault))
					}
				}
				return calls, faults
			}
			if calls, faults := read(); len(calls) != c.calls || len(faults) > 0 {
				t.Errorf("%d calls; found without any plant: %q", len(calls), faults)
			}
			for i, p := range c.plants {
				p.put(t, dir)
				if _, faults := read(); len(faults) != i+1 || !strings.Contains(strings.Join(faults, "\n"), p.found) {
					t.Errorf("found %q, want one more with %q", faults, p.found)
				}
			}
		})
	}
}

// What is found fails the stage at its place; without the patches that the checks are about there is no verdict.
func TestLocksAndObjectsInTheReport(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"neither patch": {map[string]string{"Linear.mm": lockedKernels}, []string{"skipped checkout", "skipped checkout"}},
		"right": {map[string]string{"OperationUtils.h": "enum class SerialEncode { NDArrayIdentity, Count };", "Linear.mm": lockedKernels,
			"OperationUtils.mm": "static auto& l = *new BundledShaderLibary;"}, []string{"passed checkout", "passed checkout"}},
		"nothing to judge": {map[string]string{"OperationUtils.h": "enum class SerialEncode { NDArrayIdentity, Count };"},
			[]string{"failed checkout", "skipped checkout"}},
		"wrong": {map[string]string{"OperationUtils.h": "enum class SerialEncode { Other, Count };",
			"Linear.mm":         strings.Replace(lockedKernels, "auto lock = ", "", 1),
			"OperationUtils.mm": "static auto& l = *new BundledShaderLibary;\nstatic std::mutex m;"},
			[]string{"failed aten/src/ATen/native/mps/Linear.mm:10", "failed aten/src/ATen/native/mps/OperationUtils.h",
				"failed aten/src/ATen/native/mps/OperationUtils.mm:2"}},
	} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, kernelFolders[0]), 0o755))
		require.Files(t, filepath.Join(dir, kernelFolders[0]), c.files)
		report := &reports.Stage{}
		require.NoError(t, checkEncodeLocks(dir, report))
		require.NoError(t, checkStatics(dir, report))
		var found []string
		for _, check := range report.Checks {
			found = append(found, string(check.Verdict)+" "+check.Subject)
		}
		require.Equal(t, found, c.want, name)
	}
}
