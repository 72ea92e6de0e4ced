package validate

import (
	"fmt"
	"slices"

	"mpsforge/reports"
)

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
			operations, wrong, errors = operations+one.counted.Operations, wrong+one.counted.Wrong, errors+len(one.counted.Errors)
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
