package validate

import (
	"mpsforge/fork/build"
	"mpsforge/patches"
	"mpsforge/reports"
	"testing"
)

// Which bad ends are no news: stock where it must or may fail, a series without the scenario's patches; never the whole
// series, and never stock where one queue orders everything.
func TestWhichRunsMayFail(t *testing.T) {
	series := &patches.Series{Patches: []*patches.Patch{{Name: "stream-discipline"}, {Name: "hand-over"}}}
	r := &runtimeRun{env: &Env{Options: Options{Series: series}, Identity: &reports.Identity{}}}
	r.env.Identity.Patches = []string{"stream-discipline", "hand-over"}
	whole := []string{"stream-discipline", "hand-over"}
	for name, c := range map[string]struct {
		scenario runtimeScenario
		applied  []string
		threads  int
		want     bool
	}{
		"stock that must fail":               {runtimeScenario{stock: stockFails, least: 2}, nil, 2, true},
		"stock with one thread":              {runtimeScenario{stock: stockFails, least: 2}, nil, 1, false},
		"stock that must live":               {runtimeScenario{stock: stockLives}, nil, 4, false},
		"the whole series":                   {runtimeScenario{stock: stockFails, patches: []string{"hand-over"}}, whole, 4, false},
		"a patch that the series has not":    {runtimeScenario{stock: stockFails, patches: []string{"thread-leases"}}, whole, 4, true},
		"a patch that was left out on trial": {runtimeScenario{stock: stockFails, patches: []string{"hand-over"}}, whole[:1], 4, true},
	} {
		if got := r.mayFail(c.scenario, &build.HostBuild{Stamp: build.Stamp{Patches: c.applied}}, c.threads); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for want, applied := range map[string][]string{"stock": nil, "patched": whole, "without hand-over": whole[:1]} {
		if got := (&hostBuilder{env: r.env}).subject(applied); got != want {
			t.Errorf("%v is called %q, want %q", applied, got, want)
		}
	}
}
