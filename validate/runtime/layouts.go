package runtime

import (
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork/host"
	"mpsforge/reports"
)

// layouts compares the classes that extensions are built with: one that was compiled against stock must still fit.
func (r *stageRun) layouts(stock, patched []host.Layout) {
	for _, before := range stock {
		check := reports.Check{Name: "layout", Subject: before.Class, Verdict: reports.Passed}
		i := slices.IndexFunc(patched, func(l host.Layout) bool { return l.Class == before.Class })
		if i < 0 {
			check.Verdict, check.Detail = reports.Failed, "the class is gone"
		} else {
			check.Detail = compareLayouts(before, patched[i], &check.Verdict)
		}
		r.add(check)
	}
}

// compareLayouts tells how a class changed. Members may be renamed, and virtual functions added behind the others; a
// size, an offset or an order that changes is a failure.
func compareLayouts(before, after host.Layout, verdict *reports.Verdict) string {
	var changes []string
	names := func(members []host.Member) (names, offsets []string) {
		for _, m := range members {
			names, offsets = append(names, m.Name), append(offsets, m.Offset)
		}
		return names, offsets
	}
	namesBefore, offsetsBefore := names(before.Members)
	namesAfter, offsetsAfter := names(after.Members)
	if before.Size == 0 { // functions
		if len(namesAfter) < len(namesBefore) || !slices.Equal(namesBefore, namesAfter[:len(namesBefore)]) {
			*verdict = reports.Failed
			return fmt.Sprintf("before: %s; after: %s", strings.Join(namesBefore, ", "), strings.Join(namesAfter, ", "))
		}
		if added := namesAfter[len(namesBefore):]; len(added) > 0 {
			return fmt.Sprintf("the %d functions as before, in their order; added behind them: %s", len(namesBefore), strings.Join(added, ", "))
		}
		return fmt.Sprintf("the %d functions as before, in their order", len(namesBefore))
	}
	if before.Size != after.Size {
		changes = append(changes, fmt.Sprintf("%d bytes before, %d after", before.Size, after.Size))
	}
	for i := range max(len(namesBefore), len(namesAfter)) {
		at := func(offsets, names []string) string {
			if i >= len(names) {
				return "nothing"
			}
			return names[i] + " at " + offsets[i]
		}
		if was, is := at(offsetsBefore, namesBefore), at(offsetsAfter, namesAfter); was != is {
			changes = append(changes, was+" is now "+is)
		}
	}
	if before.Size != after.Size || !slices.Equal(offsetsBefore, offsetsAfter) {
		*verdict = reports.Failed
	}
	if len(changes) == 0 {
		return fmt.Sprintf("%d bytes, %d members, as before", before.Size, len(before.Members))
	}
	return fmt.Sprintf("%d bytes; %s", before.Size, strings.Join(changes, "; "))
}
