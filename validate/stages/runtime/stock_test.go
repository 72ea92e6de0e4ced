package runtime

import (
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// Which bad ends are no news: stock where it must or may fail, a series without the scenario's patches; never the whole
// series, and never stock where one queue orders everything.
func TestWhichRunsMayFail(t *testing.T) {
	series := &patches.Series{Patches: []*patches.Patch{{Name: "stream-discipline"}, {Name: "hand-over"}}}
	r := &stageRun{env: &stage.Env{Options: stage.Options{Series: series}, Identity: &reports.Identity{}}}
	r.env.Identity.Patches = []string{"stream-discipline", "hand-over"}
	whole := []string{"stream-discipline", "hand-over"}
	for name, c := range map[string]struct {
		scenario scenario
		applied  []string
		threads  int
		want     bool
	}{
		"stock that must fail":               {scenario{Stock: process.StockFails, Least: 2}, nil, 2, true},
		"stock with one thread":              {scenario{Stock: process.StockFails, Least: 2}, nil, 1, false},
		"stock that must live":               {scenario{Stock: process.StockLives}, nil, 4, false},
		"the whole series":                   {scenario{Stock: process.StockFails, Patches: []string{"hand-over"}}, whole, 4, false},
		"a patch that the series has not":    {scenario{Stock: process.StockFails, Patches: []string{"thread-leases"}}, whole, 4, true},
		"a patch that was left out on trial": {scenario{Stock: process.StockFails, Patches: []string{"hand-over"}}, whole[:1], 4, true},
	} {
		if got := r.mayFail(c.scenario, &host.Build{Stamp: builds.Stamp{Patches: c.applied}}, c.threads); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for want, applied := range map[string][]string{"stock": nil, "patched": whole, "without hand-over": whole[:1]} {
		if got := (&hosts.Builder{Env: r.env}).Subject(applied); got != want {
			t.Errorf("%v is called %q, want %q", applied, got, want)
		}
	}
}
