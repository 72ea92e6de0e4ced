//go:build cgo

package runtime

import (
	"slices"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/host"
	"mpsforge/validate/process"
	"mpsforge/validate/stagetest"
)

// The first pull request keeps two threads alive, with right values, in each scenario that it names, on both versions; stock does not. More
// threads than two live, too.
func TestFirstPullRequestKeepsThreadsAlive(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP -short: builds PyTorch's MPS sources twice")
	}
	const seeds = 4
	for _, baseline := range []string{"v2.9.1", host.DebianBaseline} {
		t.Run(baseline, func(t *testing.T) {
			built, root, series := stagetest.HostBuildOfFirst(t.Context(), t, baseline)
			stock, _ := stagetest.HostBuildOf(t.Context(), t, baseline, builds.Plain, true, false)
			for _, patch := range series.Patches {
				for _, name := range patch.Header.Values("Scenario") {
					t.Run(name, func(t *testing.T) {
						at := slices.IndexFunc(scenarios(), func(s scenario) bool { return s.name == name })
						if at < 0 {
							t.Fatal("no such scenario")
						}
						s, died := scenarios()[at], 0
						for _, threads := range []int{2, 8} {
							for seed := range uint64(seeds) {
								one := hostRun{built: built, tools: root, scenario: name, threads: threads, iterations: s.iterations, warm: !s.cold, seed: seed + 1, limit: process.Patient}
								if end, _, err := one.run(t.Context()); err != nil || end.Problem != "" {
									t.Errorf("%d threads, seed %d: %v %s\n%s", threads, one.seed, err, end.Problem, end.Again)
								}
								one.built, one.limit = stock, process.Impatient
								if end, _, err := one.run(t.Context()); err != nil {
									t.Fatal(err)
								} else if end.Problem != "" {
									died++
								}
							}
						}
						if died == 0 {
							t.Errorf("stock lived %d times: the scenario shows nothing", 2*seeds)
						}
					})
				}
			}
		})
	}
}
