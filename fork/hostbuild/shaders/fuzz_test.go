package shaders

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// FuzzLibrary: a section of a wheel is read within its bounds, or refused.
func FuzzLibrary(f *testing.F) {
	whole := library("fmax_float", []byte("code"))
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	huge := slices.Clone(whole)
	binary.LittleEndian.PutUint64(huge[32:], math.MaxUint64) // the size of the list: three bytes with its count
	f.Add(huge)
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := parseLibrary("metal_basic", data)
		if err != nil {
			return
		}
		for _, module := range found.Modules {
			if module.Name == "" || len(module.Bitcode) > len(data) {
				t.Errorf("module %q of %d bytes", module.Name, len(module.Bitcode))
			}
		}
	})
}
