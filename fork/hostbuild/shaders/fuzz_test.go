package shaders

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
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

// FuzzTranslate: text of a wheel's kernels is translated or refused, and the argument numbers of what is made are counted.
func FuzzTranslate(f *testing.F) {
	f.Add(kernelText)
	f.Add(strings.NewReplacer("DECLARED", "declare float @air.fast_exp.f32(float)", "BODY",
		"  %4 = load float, ptr addrspace(2) %0, align 4\n"+
			"  %5 = call float @air.fast_exp.f32(float %4)\n  store float %5, ptr addrspace(1) %1, align 4").Replace(kernelText))
	f.Add(strings.NewReplacer("DECLARED", "", "BODY",
		"  %4 = sdiv <4 x i32> %2, %3\n  %5 = load <4 x half>, ptr addrspace(1) %1, align 8, !tbaa !1").Replace(kernelText))
	for _, text := range []string{"  call @0(0", "define void @f() {\n  call void @f(", "declare float @air.dot.v4f32()\n",
		"declare void @air.simdgroup_matrix_8x8_multiply_accumulate.v64f32()\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		made, err := translate("s", text)
		if err != nil {
			return
		}
		for _, k := range made.kernels {
			if k.name == "" || k.symbol == "" {
				t.Errorf("kernel %+v", k)
			}
		}
	})
}
