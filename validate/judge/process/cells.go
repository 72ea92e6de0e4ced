package process

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"mpsforge/internal/words"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/crash"
)

// Cells puts processes with the same number of threads and the same path into one cell.
func Cells(processes []Result) []reports.Cell {
	var cells []reports.Cell
	for _, p := range processes {
		at := slices.IndexFunc(cells, func(c reports.Cell) bool { return c.Threads == p.Threads && c.Path == p.Path })
		if at < 0 {
			at = len(cells)
			cells = append(cells, reports.Cell{Threads: p.Threads, Path: p.Path, Outcome: reports.OutcomePassed})
		}
		cell := &cells[at]
		cell.Of++
		switch {
		case p.Skipped != "":
			cell.Outcome, cell.Detail = reports.OutcomeSkipped, p.Skipped
		case p.Problem == "":
		default:
			cell.Bad++
			if cell.Bad == 1 {
				cell.Outcome, cell.Signature, cell.Detail = p.Kind, p.Signature, p.Problem
			}
		}
	}
	slices.SortStableFunc(cells, func(a, b reports.Cell) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Threads, b.Threads))
	})
	return cells
}

// MostFindings is how many a check keeps; the first ones are enough.
const MostFindings = 5

// Findings collects what checkers found in processes, each message once.
func Findings(processes []Result) []reports.Finding {
	var all []reports.Finding
	for _, p := range processes {
		for _, found := range p.findings() {
			found.Threads = p.Threads
			seen := slices.ContainsFunc(all, func(old reports.Finding) bool {
				return old.Kind == found.Kind && old.Message == found.Message && old.First == found.First && old.Second == found.Second
			})
			if !seen && len(all) < MostFindings {
				all = append(all, found)
			}
		}
	}
	return all
}

// Report is a finding of the software Metal in the report's words.
func Report(f script.Finding) reports.Finding {
	return reports.Finding{Kind: string(f.Kind), Message: f.Message, First: f.First, Second: f.Second, Signature: crash.NumberName(f.Signature)}
}

// OutcomeOf is the outcome of a process in which the software Metal found this first.
func OutcomeOf(f script.Finding) reports.Outcome {
	if f.Kind == script.Race {
		return reports.OutcomeRace
	}
	return reports.OutcomeViolation
}

// findings of the software Metal, also of a process that one of them ended, and of ThreadSanitizer.
func (r Result) findings() []reports.Finding {
	var all []reports.Finding
	for _, f := range r.Found {
		all = append(all, Report(f))
	}
	if r.Kind == reports.OutcomeCrashed {
		if found, ok := r.violation(); ok {
			all = append(all, found)
		}
	}
	return append(all, dataRaces(r.Output)...)
}

// violation reads the one that ended the process: below Metal's words stand the calls (native/metal/findings.cc,
// abort_if_asked).
func (r Result) violation() (reports.Finding, bool) {
	found, err := crash.Read("standard error", []byte(r.Output))
	if err != nil || len(found.Matches) == 0 {
		return reports.Finding{}, false
	}
	match := found.Matches[0]
	lines := strings.Split(r.Output, "\n")
	if match.Line < 1 || match.Line >= len(lines) {
		return reports.Finding{}, false
	}
	second, first, both := strings.Cut(lines[match.Line], ", after ")
	if !both { // a real Metal names no calls
		return reports.Finding{}, false
	}
	return reports.Finding{Kind: string(script.Violation), Message: match.Text, First: crash.Shorten(first), Second: crash.Shorten(second),
		Signature: match.Signature}, true
}

var (
	// raceSide begins one side of a report of ThreadSanitizer: "Previous write of size 4 at 0x7b by thread T5:"
	raceSide = regexp.MustCompile(`^\s+((?:[Pp]revious )?(?:[Aa]tomic )?(?:[Rr]ead|[Ww]rite)) of size \d+ at \S+ by (.*?)(?: \(mutexes:.*)?:$`)
	// ownFrame is a frame in PyTorch's sources: "#3 at::mps::f(int) aten/src/ATen/mps/M.mm:109:3 (lib.so+0x1)"
	ownFrame = regexp.MustCompile(`^\s+#\d+ (.*) \S*aten/src/ATen/(\S+)`)
	anyFrame = regexp.MustCompile(`^\s+#\d+ (\S+)`)
)

// dataRaces reads the reports of ThreadSanitizer: of each side the access and the first place that is PyTorch's.
func dataRaces(output string) []reports.Finding {
	var all []reports.Finding
	for _, report := range strings.Split(output, "WARNING: ThreadSanitizer: ")[1:] {
		kind, _, _ := strings.Cut(report, " (pid=")
		report, _, _ = strings.Cut(report, "==================")
		var sides []string
		var side, place string
		end := func() {
			if side != "" {
				sides = append(sides, crash.Shorten(strings.TrimSuffix(side+": "+place, ": ")))
			}
			side, place = "", ""
		}
		owned := false
		for _, line := range strings.Split(report, "\n") {
			if match := raceSide.FindStringSubmatch(line); match != nil {
				end()
				side, owned = strings.ToLower(match[1])+" by "+match[2], false
			} else if match := ownFrame.FindStringSubmatch(line); match != nil && !owned {
				function, _, _ := strings.Cut(match[1], "(")
				place, owned = function+", "+match[2], true
			} else if match := anyFrame.FindStringSubmatch(line); match != nil && place == "" {
				place = match[1]
			} else if strings.TrimSpace(line) == "" {
				end()
			}
		}
		end()
		found := reports.Finding{Kind: crash.Shorten(words.FirstLine(kind)), Message: "ThreadSanitizer: " + summaryOf(report)}
		if len(sides) > 0 {
			found.First = sides[0]
		}
		if len(sides) > 1 {
			found.Second = sides[1]
		}
		all = append(all, found)
	}
	return all
}

// summaryOf is ThreadSanitizer's own last line of a report, without the program's name for itself.
func summaryOf(report string) string {
	line := lineWith(report, "SUMMARY: ThreadSanitizer: ")
	return strings.TrimPrefix(line, "SUMMARY: ThreadSanitizer: ")
}
