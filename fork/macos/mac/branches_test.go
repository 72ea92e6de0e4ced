package mac

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// readCode reads a library's file.
func readCode(file string) (*machineCode, error) {
	image, err := OpenImage(file)
	if err != nil {
		return nil, err
	}
	library, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return image.code(library), nil
}

// backendBranches are those into the backend of a wheel's libtorch_cpu, without an overlay that replaces it.
func backendBranches(c *machineCode) (shims int, others []branch) {
	for _, one := range c.branchesTo(func(name string) bool {
		return strings.Contains(name, "2at3mps") || strings.Contains(name, "2at6native") && strings.Contains(name, "mps")
	}) {
		if aotiShim(one.from) {
			shims++
		} else {
			others = append(others, one)
		}
	}
	return shims, others
}

const (
	attention = "__ZN2at6native28scaled_dot_product_attentionERKNS_6TensorES3_S3_RKNSt3__18optionalIS1_EEdbNS5_IdEEb"
	format    = "__ZN2at6nativeL31determine_backend_memory_formatERKNS_6TensorES3_NS0_11ConvBackendE"
	copying   = "__ZN2at6native5copy_ERNS_6TensorERKS1_b"
	generator = "__ZN5torch3jit25make_generator_for_deviceEN3c106DeviceENSt3__18optionalIxEE"

	newer  = "__ZN2at3mps20is_macos_13_or_newerENS0_12MacOSVersionE"
	copied = "__ZN2at6native3mps9mps_copy_ERNS_6TensorERKS2_b"
	made   = "__ZN2at3mps6detail18createMPSGeneratorEy"
)

// No source of it is here: what its wheel says is all that is known of it.
func TestTheWheelOf291HasNoBranchThatIsNotKnown(t *testing.T) {
	_, cache := hosttest.Root(t)
	series := require.One(patches.Load(patches.Embedded(), "v2.9.1"))(t)
	facts := require.One(series.MacFacts())(t)
	wheel := wheels.Wheel(facts.Wheel)
	if !wheel.Have(cache, wheels.TorchParts) {
		t.Skipf("SKIP branches of v2.9.1: the cache does not have %s", wheel.Name())
	}
	dir := require.One(wheel.Get(t.Context(), cache, wheels.TorchParts, events.Discard))(t)
	code := require.One(readCode(filepath.Join(dir, wheels.LibtorchCPU)))(t)
	shims, others := backendBranches(code)
	if want := []branch{{attention, newer}, {copying, copied}, {format, newer}, {generator, made}}; shims != 78 || !slices.Equal(others, want) {
		t.Errorf("%d branches of AOTInductor's functions, and %q, want %q", shims, others, want)
	}
}

// A generator that TorchScript makes is of torch's own class (harmless).
func TestTheSeriesLeavesTheGeneratorAlone(t *testing.T) {
	for _, baseline := range []string{"v2.6.0", "v2.9.1"} {
		t.Run(baseline, func(t *testing.T) {
			series := require.One(patches.Load(patches.Embedded(), baseline))(t)
			for _, patch := range series.Patches {
				for _, path := range patch.Paths() {
					if strings.Contains(path, "MPSGeneratorImpl") {
						t.Errorf("%s changes %s", patch.Name, path)
					}
				}
			}
		})
	}
}
