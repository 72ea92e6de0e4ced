package onethread

import (
	"fmt"

	"mpsforge/reports"
)

// controlled are the differences that validate/stages/onethread/python/controls.py plants after a program, and the measure that must show each.
var controlled = []struct {
	fault string
	shown measure
}{
	{"raise", ends},
	{"crash", ends},
	{"value", values},
	{"kernel", commits},
	{"wait", commits},
	{"peak", peak},
	{"kept", final},
	{"graph", compiled},
	{"pipeline", compiled},
	{"event", objects},
}

// controls run a program on the patched sources, and the same with a difference planted. A measure that does not show its own says
// nothing of the programs.
func (r *runner) controls() error {
	names := []string{controlWord + "none", controlWord + "again"}
	for _, c := range controlled {
		names = append(names, controlWord+c.fault)
	}
	found := map[string]facts{}
	if err := r.patched.run(names, func(one result) { found[one.Name] = factsOf(one) }); err != nil {
		return err
	}
	plain := found[names[0]]
	for _, m := range measures {
		if !plain.same(found[names[1]], m.name) {
			return fmt.Errorf("the control's %s is not the same twice: nothing can be said", m.name)
		}
	}
	for i, c := range controlled {
		check := reports.Check{Name: "planted: " + c.fault, Subject: "controls", Verdict: reports.Passed}
		changed := found[names[2+i]]
		before, after := difference(plain[c.shown], changed[c.shown])
		check.Detail = fmt.Sprintf("%s: without it: %s; with it: %s", c.shown, before, after)
		if plain.same(changed, c.shown) || allow(allowances(), names[2+i], c.shown, plain[c.shown], changed[c.shown]) {
			check.Verdict, check.Detail = reports.Failed, fmt.Sprintf("%s does not show it", c.shown)
		}
		r.report.Add(check)
	}
	return nil
}
