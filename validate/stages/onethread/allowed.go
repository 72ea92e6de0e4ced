package onethread

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// allowance is a difference from stock that is meant. One that no long form has seen is to be deleted: it fails the stage.
type allowance struct {
	name    string
	measure measure
	program *regexp.Regexp // of whatever it differs in; nil: of any program, where changed makes the two sides equal
	reason  string
	changed func(lines []string) []string

	programs []string // of this run that it was needed for
}

// allowances are all of them. What a patch corrects, or costs with one thread, is in patches/README.md.
func allowances() []*allowance {
	return []*allowance{
		{name: "a handler for an event", measure: commits, changed: withoutHandlersOfSignals,
			reason: "failed-work: a command buffer that fails signals nothing; a handler gives its event the value, so that who waits for it does " +
				"not wait for ever"},
		{name: "an upload beyond the budget", measure: commits, program: regexp.MustCompile(`^shape upload larger than the budget$`),
			reason: "cpu-copies: copies to MPS that do not block hold at most 64 MB; what is larger blocks"},
		{name: "views that are cast on their way to the CPU", measure: values, program: regexp.MustCompile(`^shape casts of views to the cpu$`),
			reason: "cpu-copies: stock converts in the source's own buffer and copies the wrong part of it"},
		{name: "commits of such a cast", measure: commits, program: regexp.MustCompile(`^shape casts of views to the cpu$`),
			reason: "cpu-copies: the cast has a buffer of its own"},
		{name: "kernels of such a cast", measure: compiled, program: regexp.MustCompile(`^shape casts of views to the cpu$`),
			reason: "cpu-copies: the view is gathered by a kernel before its copy"},
		{name: "more graphs than the bound", measure: compiled, program: regexp.MustCompile(`^shape more shapes than the bound$`),
			reason: "allocator-streams: the process keeps 512 graphs, and one more for each that is built again (PYTORCH_MPS_GRAPH_CACHE_SIZE=0 is no bound)"},
	}
}

// allow says whether a difference is on the list, and notes for what.
func allow(all []*allowance, program string, m measure, stock, patched []string) bool {
	var needed []*allowance
	for _, a := range all {
		switch {
		case a.measure != m || a.program != nil && !a.program.MatchString(program):
		case a.program != nil:
			a.programs = append(a.programs, program)
			return true
		default:
			before := fmt.Sprint(stock, patched)
			if stock, patched = a.changed(stock), a.changed(patched); fmt.Sprint(stock, patched) != before {
				needed = append(needed, a)
			}
		}
	}
	if !slices.Equal(stock, patched) {
		return false
	}
	for _, a := range needed {
		a.programs = append(a.programs, program)
	}
	return true
}

// withoutHandlersOfSignals drops the handlers that directly follow the signal of an event.
func withoutHandlersOfSignals(lines []string) (kept []string) {
	for i, line := range lines {
		if i > 0 && strings.HasPrefix(line, "completed handler ") && strings.HasPrefix(lines[i-1], "signal ") {
			continue
		}
		kept = append(kept, line)
	}
	return kept
}
