package onethread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mpsforge/internal/events"
	lines "mpsforge/internal/words"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// Each side runs every program so often, and one that seems to differ more often.
const (
	runs = 2
	more = 3
)

// compared is one program on both sides.
type compared struct {
	name           string
	stock, patched []facts
	output         string // of its last run on patched
}

// verdict is how a program's measure was judged.
type verdict string

const (
	equal    verdict = "the same"
	allowed  verdict = "allowed"
	unsteady verdict = "not the same on stock twice"
	differs  verdict = "different"
)

// judge compares one measure. Stock must do the same each time, or nothing can be said; then patched must, each time. The texts are
// stock's and patched's of a difference.
func (c *compared) judge(m measure, all []*allowance) (verdict, string, string) {
	first := c.stock[0]
	if slices.ContainsFunc(c.stock, func(f facts) bool { return !first.same(f, m) }) {
		return unsteady, "", ""
	}
	if first[m] == nil && c.patched[0][m] == nil {
		return equal, "", "" // it died on both, which the measure end has
	}
	worst := equal
	for _, f := range c.patched {
		switch {
		case first.same(f, m):
		case allow(all, c.name, m, first[m], f[m]):
			worst = allowed
		default:
			stock, patched := difference(first[m], f[m])
			return differs, stock, patched
		}
	}
	return worst, "", ""
}

// doubtful says whether any measure seems to differ, which more runs decide: two runs of stock may be alike by chance.
func (c *compared) doubtful() bool {
	return slices.ContainsFunc(measures, func(m measureText) bool { v, _, _ := c.judge(m.name, allowances()); return v == differs })
}

// both runs programs on both sides at once, and adds what is found.
func (r *runner) both(programs []*compared, times int, done *int64, total int64) error {
	var names []string
	for range times {
		for _, c := range programs {
			names = append(names, c.name)
		}
	}
	var mutex sync.Mutex
	var failed [2]error
	var wait sync.WaitGroup
	for i, s := range []*server{r.stock, r.patched} {
		wait.Go(func() {
			at := 0
			failed[i] = s.run(names, func(found result) {
				mutex.Lock()
				defer mutex.Unlock()
				c := programs[at%len(programs)]
				at++
				if s == r.stock {
					c.stock = append(c.stock, factsOf(found))
				} else {
					c.patched, c.output = append(c.patched, factsOf(found)), found.Output
				}
				*done++
				r.env.Sink.Emit(events.StepProgress{Step: stage.StepName(r.report.Name), Done: *done, Total: total, Unit: "runs", Note: s.subject.Name +
					", " + c.name})
			})
		})
	}
	wait.Wait()
	return cmp.Or(failed[0], failed[1])
}

// compareAll runs and judges the programs.
func (r *runner) compareAll(names []string) error {
	var programs []*compared
	for _, name := range names {
		programs = append(programs, &compared{name: name})
	}
	var done int64
	total := int64(2 * runs * len(programs))
	if err := r.both(programs, runs, &done, total); err != nil {
		return err
	}
	doubtful := slices.DeleteFunc(slices.Clone(programs), func(c *compared) bool { return !c.doubtful() })
	if len(doubtful) > 0 {
		if err := r.both(doubtful, more, &done, total+int64(2*more*len(doubtful))); err != nil {
			return err
		}
	}
	r.report.Count("programs", int64(len(programs)))
	r.report.Count("runs", done)
	kinds, onStock, still := map[string]int{}, map[string]int{}, 0
	for _, c := range programs {
		kind, _, _ := strings.Cut(c.name, " ")
		kinds[kind]++
		onStock[strings.Fields(c.stock[0][ends][0])[0]]++
		if !slices.ContainsFunc(c.stock[0][commits], func(line string) bool { return strings.HasPrefix(line, "commit ") }) {
			still++
		}
		r.report.Count("commits on stock",
			int64(len(slices.DeleteFunc(slices.Clone(c.stock[0][commits]), func(line string) bool { return !strings.HasPrefix(line, "commit ") }))))
		r.report.Count("values compared", int64(len(c.stock[0][values])))
	}
	r.report.Facts = append(r.report.Facts, reports.Fact{Name: "programs", Value: listing(kinds)},
		reports.Fact{Name: "how they end on stock", Value: fmt.Sprintf("%s; without a commit: %d", listing(onStock), still)})
	for _, m := range measures {
		r.judgeAll(m, programs)
	}
	r.tables(programs)
	return nil
}

// judgeAll makes each difference of a measure a failed check, and sums the others up.
func (r *runner) judgeAll(m measureText, programs []*compared) {
	counts := map[string]int{}
	summary := reports.Check{Name: string(m.name), Subject: "stock against patched", Verdict: reports.Passed}
	for _, c := range programs {
		v, stock, patched := c.judge(m.name, r.allowed)
		counts[string(v)]++
		if v == differs {
			r.report.Add(reports.Check{Name: c.name + ": " + string(m.name), Subject: "stock against patched", Verdict: reports.Failed,
				Detail: fmt.Sprintf("seed %d; stock: %s; patched: %s; again: %s", r.env.Seed, stock, patched, r.again(c.name)),
				Output: lines.LastLines(c.output, 20)})
		}
	}
	summary.Detail = m.is + ": " + listing(counts)
	switch {
	case counts[string(differs)] > 0:
		summary.Verdict = reports.Failed
	case counts[string(equal)]+counts[string(allowed)] == 0:
		summary.Verdict = reports.Skipped
	}
	r.report.Add(summary)
}

// tables list what was allowed, and what says nothing. In a long form, what is allowed and did not occur fails.
func (r *runner) tables(programs []*compared) {
	table := reports.Table{Title: "Allowed differences from stock", Columns: []string{"difference", "measure", "programs", "reason"}}
	whole := !r.env.Quick && r.env.OneThread.Programs == ""
	for _, a := range r.allowed {
		slices.Sort(a.programs)
		seen := slices.Compact(a.programs)
		table.Rows = append(table.Rows, []string{a.name, string(a.measure), fmt.Sprint(len(seen)), a.reason})
		if whole && len(seen) == 0 {
			r.report.Add(reports.Check{Name: "allowed: " + a.name, Subject: "list of allowed differences", Verdict: reports.Failed,
				Detail: "no program of this run had it: delete it from validate/stages/onethread/allowed.go"})
		}
	}
	r.report.Tables = append(r.report.Tables, table)
	excluded := reports.Table{Title: "Measures that are not the same on stock twice", Columns: []string{"program", "measures"}}
	for _, c := range programs {
		var which []string
		for _, m := range measures {
			if v, _, _ := c.judge(m.name, nil); v == unsteady {
				which = append(which, string(m.name))
			}
		}
		if len(which) > 0 {
			excluded.Rows = append(excluded.Rows, []string{c.name, strings.Join(which, ", ")})
		}
	}
	r.report.AddTable(excluded)
}

func listing(counts map[string]int) string {
	var words []string
	for name, count := range counts {
		words = append(words, fmt.Sprintf("%s %d", name, count))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
