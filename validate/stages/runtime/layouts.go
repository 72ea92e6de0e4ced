package runtime

import (
	"slices"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/reports"
)

// layouts compares the classes that extensions are built with: one that was compiled against stock must still fit.
func (r *stageRun) layouts(stock, patched []host.Layout) {
	for _, before := range stock {
		if !r.env.Shard.Has(layoutJob(before)) {
			continue
		}
		check := reports.Check{Name: "layout", Subject: before.Class, Verdict: reports.Passed}
		i := slices.IndexFunc(patched, func(l host.Layout) bool { return l.Class == before.Class })
		if i < 0 {
			check.Verdict, check.Detail = reports.Failed, "the class is gone"
		} else {
			fits := false
			if check.Detail, fits = host.CompareLayouts(before, patched[i]); !fits {
				check.Verdict = reports.Failed
			}
		}
		r.add(check)
	}
}
