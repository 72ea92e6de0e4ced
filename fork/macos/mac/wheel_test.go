package mac

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// A pointer of a library with chained fixups has a chain in its upper bits.
func TestPointers(t *testing.T) {
	for name, c := range map[string]struct {
		chained bool
		raw     uint64
		address uint64
		bound   bool
	}{
		"plain":                          {false, 0x4000, 0x4000, false},
		"plain, another library's":       {false, 0, 0, true},
		"chained":                        {true, 0x0008_0000_0000_4000, 0x4000, false},
		"chained, the last of its chain": {true, 0x4000, 0x4000, false},
		"chained, another library's":     {true, 0x8010_0000_0000_0007, 7, true},
	} {
		if address, bound := (&Image{chained: c.chained}).pointer(c.raw); bound != c.bound || !bound && address != c.address {
			t.Errorf("%s: %#x, %v", name, address, bound)
		}
	}
}

// A damaged wheel is refused, with what is wrong with it.
func TestDamagedWheels(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"not an archive":          {nil, "not a valid zip file"},
		"of another system":       {map[string]string{"torch/lib/libtorch_cpu.so": "ELF"}, "it has no " + wheels.LibtorchCPU},
		"without Python's part":   {map[string]string{wheels.LibtorchCPU: "Mach-O"}, "it has no " + libtorchPython},
		"with another program":    {map[string]string{wheels.LibtorchCPU: "no Mach-O at all", libtorchPython: ""}, "invalid magic number"},
		"with a library cut off":  {map[string]string{wheels.LibtorchCPU: "\xcf\xfa\xed\xfe\x0c\x00\x00\x01", libtorchPython: ""}, "EOF"},
		"with an empty file":      {map[string]string{wheels.LibtorchCPU: "", libtorchPython: ""}, "EOF"},
		"with a path that climbs": {map[string]string{wheels.LibtorchCPU + "/../../../../x": ""}, "not the plain path"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "torch.whl")
			file, err := os.Create(path)
			require.NoError(t, err)
			defer file.Close()
			if c.files == nil {
				_, err = file.WriteString("wheel")
			} else {
				archive := zip.NewWriter(file)
				for name, text := range c.files {
					part := require.One(archive.Create(name))(t)
					require.One(part.Write([]byte(text)))(t)
				}
				err = archive.Close()
			}
			require.NoError(t, err)
			if _, err := ReadWheel(path); !errors.Is(err, ErrWheel) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What 2.6.0's own wheel has, where the cache holds it.
func TestLibrariesOfAWheel(t *testing.T) {
	cache := hosttest.Cache(t)
	series := require.One(patches.Load(patches.Embedded(), "v2.6.0"))(t)
	host := require.One(series.HostFacts())(t)
	wheel := wheels.Wheel(host.Wheel)
	if testing.Short() || !wheel.Have(cache, wheels.TorchParts) {
		t.Skip("SKIP wheel of 2.6.0: the cache does not have it, or the test is to be short")
	}
	dir := require.One(wheel.Get(t.Context(), cache, wheels.TorchParts, nil))(t)
	facts := require.One(readLibraries(dir))(t)
	if !slices.Contains(facts.Exports[wheels.LibtorchCPU], "__ZN2at3mps19getDefaultMPSStreamEv") || !slices.Contains(facts.Bindings, "_mps_emptyCache") ||
		!slices.Contains(facts.Classes, "MPSGraph") || !slices.Contains(facts.Selectors, "commitAndContinue") ||
		len(facts.Kernels["metal_basic"]) != 159 || facts.Minimum != "11.0" {
		t.Errorf("%d exports, %d bindings, %d classes, %d selectors, %d kernels, macOS %s", len(facts.Exports[wheels.LibtorchCPU]), len(facts.Bindings),
			len(facts.Classes), len(facts.Selectors),
			len(facts.Kernels["metal_basic"]), facts.Minimum)
	}
	if slots := facts.Vtables["__ZTVN2at3mps8MPSHooksE"]; len(slots) < 3 || !slices.Contains(slots[2], "__ZNK2at3mps8MPSHooks17hasPrimaryContextEa") {
		t.Errorf("MPSHooks: %v", slots)
	}
}
