//go:build cgo

package conformance

import (
	"fmt"
	"os"
	"testing"

	"mpsforge/internal/cxx"
	"mpsforge/native"
	"mpsforge/validate/stagetest"
)

// BenchmarkSlots is a lease and its return in the patch's allocator against a vector under a mutex.
func BenchmarkSlots(b *testing.B) {
	for _, threads := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			sources, err := native.Files("programs/slots_bench.cc")
			if err != nil {
				b.Fatal(err)
			}
			header, err := os.ReadFile(stagetest.Header(b))
			if err != nil {
				b.Fatal(err)
			}
			var found struct{ Plain, Patch float64 }
			stagetest.Benchmark(b, append(sources, cxx.Source{Path: "include/ATen/mps/MPSStreamSlots.h", Data: header}), []string{fmt.Sprint(threads), fmt.Sprint(400000 / threads)}, &found)
			b.ReportMetric(found.Patch/found.Plain, "patch/mutex")
			b.ReportMetric(found.Patch, "patch-ns")
			b.ReportMetric(found.Plain, "mutex-ns")
			b.ReportMetric(0, "ns/op")
		})
	}
}
