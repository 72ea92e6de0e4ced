//go:build cgo

package runtime

import (
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/stagetest"
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
			var names []string
			for _, patch := range series.Patches {
				names = append(names, patch.Header.Values("Scenario")...)
			}
			rows, err := chosen(names)
			if err != nil || len(names) == 0 {
				t.Fatalf("its scenarios, %q: %v", names, err)
			}
			for _, s := range rows {
				t.Run(s.Name, func(t *testing.T) {
					died := 0
					for _, threads := range []int{2, 8} {
						for seed := range uint64(seeds) {
							one := hostRun{built: built, tools: root, scenario: s.Name, threads: threads, iterations: s.Iterations, warm: !s.Cold,
								seed: seed + 1, limit: process.Patient}
							if end, _, err := one.run(t.Context()); err != nil || end.Problem != "" {
								t.Errorf("%d threads, seed %d: %v %s\n%s", threads, one.seed, err, end.Problem, end.Again)
							}
							if died > 0 {
								continue
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
		})
	}
}
