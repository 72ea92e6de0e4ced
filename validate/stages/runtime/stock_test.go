package runtime

import (
	"regexp"
	"slices"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/require"
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
		require.Equal(t, r.mayFail(c.scenario, &host.Build{Stamp: builds.Stamp{Patches: c.applied}}, c.threads), c.want, name)
	}
	for want, applied := range map[string][]string{"stock": nil, "patched": whole, "without hand-over": whole[:1]} {
		require.Equal(t, (&hosts.Builder{Env: r.env}).Subject(applied), want, applied, "is called")
	}
}

// Stock's end counts if the row names it, or if it is one of threads that encode on one stream at once.
func TestWhichEndsOfStockCount(t *testing.T) {
	row := scenario{Stock: process.StockFails, Ends: []string{"^hung", "signature 16 "}}
	for name, c := range map[string]struct {
		end  process.Result
		want bool
	}{
		"named by its text":              {process.Result{Problem: "hung: not done after 20s"}, true},
		"named by its signature":         {process.Result{Problem: "died by signal aborted: x", Signature: "16 dispatch-sync-own-queue"}, true},
		"encoded at once, a signature":   {process.Result{Problem: "died by signal aborted: x", Signature: "6 encode-after-commit"}, true},
		"encoded at once, the engine":    {process.Result{Problem: "died by signal aborted: set_kernel of command buffer 8 of queue 2 by thread w"}, true},
		"encoded at once, a lost object": {process.Result{Problem: "died by signal aborted: -[E e]: message sent to deallocated instance 0x7f"}, true},
		"races":                          {process.Result{Problem: "data races by ThreadSanitizer: 1", Races: 1, OnlyRaces: true}, true},
		"another signature":              {process.Result{Problem: "died by signal aborted: x", Signature: "10 matrix-multiplication-encoded-twice"}, false},
		"another text":                   {process.Result{Problem: "wrong values: 1 of 2, the first: mm: off by up to 3"}, false},
		"a damaged heap, unnamed":        {process.Result{Problem: "died by signal aborted: free(): invalid pointer"}, false},
	} {
		require.Equal(t, row.names(c.end), c.want, name)
	}
	damaged := process.Result{Problem: "died by signal aborted: free(): invalid pointer"}
	if !(scenario{Ends: []string{process.HeapCorrupted}}).names(damaged) {
		t.Error("a damaged heap that the row names does not count")
	}
	for _, s := range scenarios() {
		if len(s.Ends) > 0 && s.Stock == process.StockLives {
			t.Errorf("%s names ends of stock, which must live", s.Name)
		}
		for _, end := range slices.Concat(s.Ends, s.Without) {
			if _, err := regexp.Compile(end); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
}
