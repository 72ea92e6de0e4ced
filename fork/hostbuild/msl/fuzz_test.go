package msl

import "testing"

// FuzzKernels: a shader's process says what its kernels are; what it says is taken whole or refused.
func FuzzKernels(f *testing.F) {
	f.Add("kernel copy\nargument 0 0 2 4 float in\nargument 2 0 0 0 - -\nargument 1 1 3 16 float4\n")
	f.Add("argument 0 0 0 0 -\nkernel\nkernel a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		kernels, err := parseKernels(text)
		if err != nil {
			return
		}
		for _, k := range kernels {
			for _, a := range k.Arguments {
				if k.Name == "" || a.Name == "" || a.Index < 0 || a.Size < 0 || a.place < 0 {
					t.Errorf("%+v of %q", k, text)
				}
			}
		}
	})
}
