package validate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"mpsforge/reports"
)

// wilson is the 95 % interval of a rate, k of n, after Wilson (1927). Unlike the usual one it says something for 0 of n.
func wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959964 // of a normal distribution, for 95 %
	p, size := float64(k)/float64(n), float64(n)
	middle := (p + z*z/(2*size)) / (1 + z*z/size)
	half := z / (1 + z*z/size) * math.Sqrt(p*(1-p)/size+z*z/(4*size*size))
	return max(0, middle-half), min(1, middle+half)
}

// rate is a count of failures with its uncertainty.
func rate(k, n int) string {
	low, high := wilson(k, n)
	return fmt.Sprintf("%d of %d (95 %%: %.0f to %.0f %%)", k, n, 100*low, 100*high)
}

// verdictCell says in few words how processes ended.
func verdictCell(outcomes []pythonOutcome) string {
	if len(outcomes) == 0 {
		return ""
	}
	bad := problemsOf(outcomes)
	if len(bad) == 0 {
		if outcomes[0].end.skipped != "" {
			return "skipped"
		}
		return fmt.Sprintf("pass %d/%d", len(outcomes), len(outcomes))
	}
	text := fmt.Sprintf("FAIL %d/%d", len(bad), len(outcomes))
	what := bad[0].end.signature
	if what == "" {
		what, _, _ = strings.Cut(bad[0].end.problem, ":")
	}
	return text + ": " + what
}

func outcomesOf(all []pythonOutcome, holds func(pythonOutcome) bool) []pythonOutcome {
	return slices.DeleteFunc(slices.Clone(all), func(o pythonOutcome) bool { return !holds(o) })
}

// threadCounts lists the thread counts of outcomes, rising.
func threadCounts(all []pythonOutcome) []int {
	var counts []int
	for _, o := range all {
		if !slices.Contains(counts, o.run.threads) {
			counts = append(counts, o.run.threads)
		}
	}
	slices.Sort(counts)
	return counts
}

// speeds are the operations a second of the processes that lived.
func speeds(outcomes []pythonOutcome) []float64 {
	var all []float64
	for _, o := range outcomes {
		if o.end.problem == "" && o.end.counted.Seconds > 0 {
			all = append(all, float64(o.end.counted.Operations)/o.end.counted.Seconds)
		}
	}
	return all
}

// speed is their median, or 0.
func speed(outcomes []pythonOutcome) float64 {
	all := speeds(outcomes)
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func speedCell(outcomes []pythonOutcome) string {
	if found := speed(outcomes); found > 0 {
		return fmt.Sprintf("%.0f", found)
	}
	return "-"
}

// pythonTables are the field reports' tables, of this run.
func pythonTables(all []pythonOutcome, patched, stock *pythonSubject) []reports.Table {
	var tables []reports.Table
	add := func(table reports.Table) {
		if len(table.Rows) > 0 {
			tables = append(tables, table)
		}
	}
	add(basicTable(all))
	for _, s := range []*pythonSubject{patched, stock} {
		if s != nil {
			add(limitTable(all, s))
		}
	}
	add(boundaryTable(all, patched))
	add(processTable(all, patched))
	if stock != nil {
		add(stockTable(all, patched, stock))
	}
	add(coldTable(all))
	return tables
}

// basicTable is that of the field report on real models: operations, errors and speed.
func basicTable(all []pythonOutcome) reports.Table {
	table := reports.Table{Title: "Basic and stress tests", Columns: []string{"test", "subject", "config", "operations", "errors", "wrong values", "ops/s", "result"}}
	found := outcomesOf(all, func(o pythonOutcome) bool { return o.test.section == basicSection })
	var done []string
	for _, o := range found {
		config := fmt.Sprintf("%dt x %di", o.run.threads, o.run.iterations)
		key := o.test.name + o.subject.name + config
		if slices.Contains(done, key) {
			continue
		}
		done = append(done, key)
		same := outcomesOf(found, func(other pythonOutcome) bool {
			return other.test.name == o.test.name && other.subject == o.subject && other.run.threads == o.run.threads
		})
		var operations, wrong int64
		errors := 0
		for _, one := range same {
			operations, wrong, errors = operations+one.end.counted.Operations, wrong+one.end.counted.Wrong, errors+len(one.end.counted.Errors)
		}
		table.Rows = append(table.Rows, []string{o.test.name, o.subject.name, config, fmt.Sprint(operations), fmt.Sprint(errors), fmt.Sprint(wrong), speedCell(same), verdictCell(same)})
	}
	return table
}

// limitTable is that of the field report on the thread limit: thread counts against classes of operations, the
// two paths of Linear apart.
func limitTable(all []pythonOutcome, s *pythonSubject) reports.Table {
	table := reports.Table{Title: "Thread limit, " + s.name, Columns: []string{"operations"}}
	found := outcomesOf(all, func(o pythonOutcome) bool {
		return o.subject == s && o.test.class != "" && o.test.section != processSection
	})
	counts := threadCounts(found)
	for _, threads := range counts {
		table.Columns = append(table.Columns, fmt.Sprintf("%d threads", threads))
	}
	var done []string
	for _, o := range found {
		name := o.test.class
		if path := o.path(); path != "" {
			name += " (" + path + ")"
		}
		if slices.Contains(done, name) {
			continue
		}
		done = append(done, name)
		row := []string{name}
		for _, threads := range counts {
			row = append(row, verdictCell(outcomesOf(found, func(other pythonOutcome) bool {
				return other.test.class == o.test.class && other.path() == o.path() && other.run.threads == threads
			})))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// boundaryTable says how many threads can hold a stream at once.
func boundaryTable(all []pythonOutcome, s *pythonSubject) reports.Table {
	table := reports.Table{Title: "Thread boundary, " + s.name, Columns: []string{"threads", "result", "ops/s"}}
	found := outcomesOf(all, func(o pythonOutcome) bool { return o.subject == s && o.test.name == "boundary" })
	for _, threads := range threadCounts(found) {
		same := outcomesOf(found, func(o pythonOutcome) bool { return o.run.threads == threads })
		table.Rows = append(table.Rows, []string{fmt.Sprint(threads), verdictCell(same), speedCell(same)})
	}
	return table
}

// processTable is the second one of that report: the same operation by processes and by threads.
func processTable(all []pythonOutcome, s *pythonSubject) reports.Table {
	table := reports.Table{Title: "nn.Linear by processes and by threads, " + s.name, Columns: []string{"at once", "processes", "ops/s", "threads", "ops/s"}}
	of := func(name string, count int) []pythonOutcome {
		return outcomesOf(all, func(o pythonOutcome) bool {
			return o.subject == s && o.test.name == name && !o.run.graph && (count == 0 || o.run.threads == count)
		})
	}
	for _, count := range threadCounts(of("processes", 0)) {
		processes, threads := of("processes", count), of("linear", count)
		table.Rows = append(table.Rows, []string{fmt.Sprint(count), verdictCell(processes), speedCell(processes), verdictCell(threads), speedCell(threads)})
	}
	return table
}

// stockTable compares the two torches where both ran.
func stockTable(all []pythonOutcome, patched, stock *pythonSubject) reports.Table {
	table := reports.Table{Title: "Stock and patched", Columns: []string{"test", "threads", "stock", "patched"}}
	for _, t := range pythonTests() {
		on := func(s *pythonSubject, threads int) []pythonOutcome {
			return outcomesOf(all, func(o pythonOutcome) bool {
				return o.subject == s && o.test.name == t.name && (threads == 0 || o.run.threads == threads)
			})
		}
		for _, threads := range threadCounts(on(stock, 0)) {
			table.Rows = append(table.Rows, []string{t.name, fmt.Sprint(threads), verdictCell(on(stock, threads)), verdictCell(on(patched, threads))})
		}
	}
	return table
}

// coldTable shows what a warm-up would hide.
func coldTable(all []pythonOutcome) reports.Table {
	table := reports.Table{Title: "Cold and warm", Note: "Warm: one thread has used everything once before. No other test warms up.", Columns: []string{"test", "subject", "threads", "cold", "warm"}}
	found := outcomesOf(all, func(o pythonOutcome) bool { return o.test.section == coldSection })
	var done []string
	for _, o := range found {
		key := fmt.Sprint(o.test.name, o.subject.name, o.run.threads)
		if slices.Contains(done, key) {
			continue
		}
		done = append(done, key)
		same := func(warm bool) string {
			return verdictCell(outcomesOf(found, func(other pythonOutcome) bool {
				return other.test.name == o.test.name && other.subject == o.subject && other.run.threads == o.run.threads && other.run.warmup == warm
			}))
		}
		table.Rows = append(table.Rows, []string{o.test.name, o.subject.name, fmt.Sprint(o.run.threads), same(false), same(true)})
	}
	return table
}
