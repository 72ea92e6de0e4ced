//go:build cgo

package reference

import (
	"fmt"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/native"
	"mpsforge/validate/judge/stagetest"
)

// BenchmarkCommand is the overhead of one command of the software Metal over memset and memcpy of the same bytes. The
// bounds that issue 3 set are 5 microseconds without the checker and 25 with it.
func BenchmarkCommand(b *testing.B) {
	for _, check := range []string{"0", "1"} {
		for _, bytes := range []int{256, 65536} {
			name := fmt.Sprintf("checker=%s/bytes=%d", check, bytes)
			b.Run(name, func(b *testing.B) {
				sources := require.One(native.Files("schedule/", "metal/", "programs/metal_bench.cc"))(b)
				var found struct {
					Commands, Plain, Engine float64
				}
				stagetest.Benchmark(b, sources, []string{"200000", fmt.Sprint(bytes), check}, &found)
				b.ReportMetric((found.Engine-found.Plain)/found.Commands/1000, "µs-overhead/command")
				b.ReportMetric(found.Engine/found.Plain, "engine/plain")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkCheckerMemory is the memory after ten million commands against that after one hundred thousand.
func BenchmarkCheckerMemory(b *testing.B) {
	sources := require.One(native.Files("schedule/", "metal/", "programs/metal_bench.cc"))(b)
	var few, many memory
	stagetest.Benchmark(b, sources, []string{"100000", "64", "1"}, &few)
	stagetest.Benchmark(b, sources, []string{"10000000", "64", "1"}, &many)
	reportMemory(b, few, many)
}

// BenchmarkCheckerRanges is the same for the checker by itself and ranges that begin and end anywhere.
func BenchmarkCheckerRanges(b *testing.B) {
	sources, err := native.Files("metal/order.h", "metal/shadow.h", "metal/order.cc", "metal/shadow.cc", "metal/signals.cc", "programs/order_bench.cc")
	require.NoError(b, err)
	var few, many memory
	stagetest.Benchmark(b, sources, []string{"1000000"}, &few)
	stagetest.Benchmark(b, sources, []string{"10000000"}, &many)
	reportMemory(b, few, many)
	b.ReportMetric(many.Random, "ns/access")
	b.ReportMetric(many.Ranges, "ranges")
}

type memory struct {
	PeakKilobytes float64 `json:"peak_kilobytes"`
	Random        float64 `json:"random"`
	Ranges        float64 `json:"ranges"`
}

func reportMemory(b *testing.B, few, many memory) {
	b.ReportMetric(many.PeakKilobytes/few.PeakKilobytes, "peak-many/peak-few")
	b.ReportMetric(many.PeakKilobytes, "peak-kB")
	b.ReportMetric(0, "ns/op")
}
