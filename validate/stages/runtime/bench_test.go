//go:build cgo

package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/stagetest"
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
			require.NoError(b, err)
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

// BenchmarkTranslatedKernels is what PyTorch's own Metal kernels cost on this processor: a dispatch beside the kernel's own work,
// and element-wise kernels against the same loop in C++ with the same checks of bounds. The bounds that issue 20 set are 5
// microseconds, and 4 times without the record of what is touched, which the race checker needs (recorded=1).
func BenchmarkTranslatedKernels(b *testing.B) {
	built, root := stagetest.HostBuild(b.Context(), b, builds.Plain, false, true)
	for _, recorded := range []string{"0", "1"} {
		b.Run("recorded="+recorded, func(b *testing.B) {
			environment := append(hosts.Sanitizers(root), "MPSFORGE_METAL_CHECK_ORDER="+recorded)
			found, err := run.Command{Name: built.Tests["shaders_test"], Args: []string{"bench"}, Env: run.Environment(environment, nil)}.Run(b.Context())
			if err != nil {
				b.Fatalf("%v\n%s", err, found.Stdout)
			}
			var cost struct {
				Microseconds float64
				Ratios       map[string]float64
			}
			if err := json.Unmarshal(found.Stdout, &cost); err != nil {
				b.Skipf("SKIP: %s", found.Stdout)
			}
			b.ReportMetric(cost.Microseconds, "µs/dispatch")
			for kernel, ratio := range cost.Ratios {
				b.ReportMetric(ratio, kernel+"/C++")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
