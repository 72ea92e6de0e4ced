//go:build cgo

package runtime

import (
	"fmt"
	"slices"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/host"
	"mpsforge/validate/process"
	"mpsforge/validate/stagetest"
)

// BenchmarkHostOperators is what the series costs on PyTorch's real sources over the software Metal: the main thread
// patched against stock, alone and beside a second stream, which makes operators order themselves; and 1 to 8 threads
// with streams of their own against stock with a lock around each operator, without which stock dies.
// The work of the GPU is a part of both, on the same processors.
func BenchmarkHostOperators(b *testing.B) {
	stock, root := stagetest.HostBuild(b.Context(), b, builds.Plain, true, false)
	patched, _ := stagetest.HostBuild(b.Context(), b, builds.Plain, false, false)
	seconds := func(built *host.Build, scenario string, threads int) float64 {
		one := hostRun{built: built, tools: root, scenario: scenario, threads: threads, iterations: 4000 / threads, warm: true, seed: 1, limit: process.Patient,
			more: []string{"MPSFORGE_METAL_MAX_DELAY_US=0"}}
		var took []float64
		for range 5 {
			end, result, err := one.run(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if end.Problem != "" {
				b.Fatalf("%s: %s", one.command(), end.Problem)
			}
			took = append(took, result.Seconds)
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	for _, scenario := range []string{"bench-operators-main", "bench-operators-beside"} {
		b.Run(scenario, func(b *testing.B) {
			b.ReportMetric(seconds(patched, scenario, 1)/seconds(stock, "bench-operators-main", 1), "patched/stock")
			b.ReportMetric(0, "ns/op")
		})
	}
	for _, threads := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			b.ReportMetric(seconds(patched, "bench-operators", threads)/seconds(stock, "bench-operators-locked", threads), "patched/stock-with-lock")
			b.ReportMetric(0, "ns/op")
		})
	}
}
