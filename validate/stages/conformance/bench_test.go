//go:build cgo

package conformance

import (
	"fmt"
	"os"
	"testing"

	"mpsforge/internal/cxx"
	"mpsforge/internal/require"
	"mpsforge/native"
	"mpsforge/validate/judge/stagetest"
)

// BenchmarkSlots is a lease and its return in the patch's allocator, under so many threads that do nothing else, against the life of
// a thread that does nothing: a thread leases once.
func BenchmarkSlots(b *testing.B) {
	for _, threads := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			sources := require.One(native.Files("programs/slots_bench.cc"))(b)
			header := require.One(os.ReadFile(stagetest.Header(b)))(b)
			var found struct{ Thread, Lease float64 }
			stagetest.Benchmark(b, append(sources, cxx.Source{Path: "include/ATen/mps/MPSStreamSlots.h", Data: header}),
				[]string{fmt.Sprint(threads), fmt.Sprint(400000 / threads)}, &found)
			b.ReportMetric(found.Lease/found.Thread, "lease/thread")
			b.ReportMetric(found.Lease, "lease-ns")
			b.ReportMetric(found.Thread, "thread-ns")
			b.ReportMetric(0, "ns/op")
		})
	}
}
