package mac

import (
	"maps"
	"slices"
	"strings"
)

// branch is one from a function to another one of the same library. No symbol pointer is between them that an overlay could lead.
type branch struct{ from, to string }

// nearby is how far functions are from each other at most that were compiled for the backend: they are in its sources' order.
const nearby = 0x20000

// branchesTo are those of libtorch_cpu into functions that an overlay replaces, but for those of the backend itself.
func (c *machineCode) branchesTo(replaced func(name string) bool) (found []branch) {
	targets := map[uint64]string{}
	for _, symbol := range c.image.file.Symtab.Syms {
		// Weak ones are of headers, and anybody's.
		if symbol.Type&0xe0 == 0 && symbol.Type&typeMask == typeSection && symbol.Type&(typeExternal|typePrivate) != 0 &&
			symbol.Desc&weakDefined == 0 && replaced(symbol.Name) {
			targets[symbol.Value] = symbol.Name
		}
	}
	var backend [][2]uint64 // from its first such function to its last one
	for _, address := range slices.Sorted(maps.Keys(targets)) {
		if last := len(backend) - 1; last >= 0 && address-backend[last][1] < nearby {
			backend[last][1] = address
		} else {
			backend = append(backend, [2]uint64{address, address})
		}
	}
	c.branches(func(from, to uint64) {
		target, into := targets[to]
		if !into || slices.ContainsFunc(backend, func(part [2]uint64) bool { return from >= part[0] && from <= part[1] }) {
			return
		}
		// Its instances of templates, and what torchgen wrote for it, are elsewhere.
		if names := c.functionAt(from); len(names) > 0 && (!strings.Contains(strings.ToLower(names[0]), "mps") || aotiShim(names[0])) {
			found = append(found, branch{names[0], target})
		}
	})
	slices.SortFunc(found, func(a, b branch) int { return strings.Compare(a.from+" "+a.to, b.from+" "+b.to) })
	return slices.Compact(found)
}

// aotiShim: models that AOTInductor compiled call these functions in C, which are the backend's only by their names. Images that need one
// are refused by native/overlay/macho/rebind.cc.
func aotiShim(name string) bool { return strings.HasPrefix(name, "_aoti_torch_mps_") }

// harmless are the functions of torch's own copy that may still be branched to, each by how those begin of which it is known.
var harmless = map[string][]string{
	// The overlay's kernel for copy_ is called before it (native/torch/backend/copy.cc). Those that call native::copy_ themselves are
	// quantized and sparse operators, which have no tensors on device mps, and Static Runtime, which the Python package refuses.
	"__ZN2at6native3mps9mps_copy_ERNS_6TensorERKS2_b": {"__ZN2at6native5copy_ERNS_6TensorERKS1_b"},
	// It asks the one object of MTLDevice, which is the process's, for its macOS.
	"__ZN2at3mps20is_macos_13_or_newerENS0_12MacOSVersionE": {""},
	// A generator of TorchScript: all that it has is in the object, and the class is the same in both copies (TestTheSeriesLeavesTheGeneratorAlone).
	"__ZN2at3mps6detail18createMPSGeneratorEy": {"__ZN5torch3jit25make_generator_for_device"},
}

func (b branch) harmless() bool {
	return aotiShim(b.from) || slices.ContainsFunc(harmless[b.to], func(from string) bool { return strings.HasPrefix(b.from, from) })
}
