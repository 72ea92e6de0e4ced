package python

import (
	"fmt"
	"slices"

	"mpsforge/reports"
	"mpsforge/validate/judge/pytests"
)

// tables adds the field reports' tables, of this run.
func tables(report *reports.Stage, all []pytests.Job, patched, stock *pytests.Subject) {
	report.AddTable(basicTable(all))
	for _, s := range []*pytests.Subject{patched, stock} {
		if s != nil {
			report.AddTable(limitTable(all, s))
		}
	}
	report.AddTable(boundaryTable(all, patched))
	report.AddTable(pytests.ProcessTable(all, patched))
	if stock != nil {
		report.AddTable(stockTable(all, patched, stock))
	}
	report.AddTable(coldTable(all))
}

// basicTable is that of the field report on real models: operations, errors and speed.
func basicTable(all []pytests.Job) reports.Table {
	table := reports.Table{Title: "Basic and stress tests", Columns: []string{"test", "subject", "config", "operations", "errors", "wrong values",
		"ops/s", "result"}}
	found := pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Section == pytests.BasicSection })
	var done []string
	for _, o := range found {
		config := fmt.Sprintf("%dt x %di", o.Run.Threads, o.Run.Iterations)
		key := o.Test.Name + o.Subject.Name + config
		if slices.Contains(done, key) {
			continue
		}
		done = append(done, key)
		same := pytests.JobsWhere(found, func(other pytests.Job) bool {
			return other.Test.Name == o.Test.Name && other.Subject == o.Subject && other.Run.Threads == o.Run.Threads
		})
		var operations, wrong int64
		errors := 0
		for _, one := range same {
			operations, wrong, errors = operations+one.Counted.Operations, wrong+one.Counted.Wrong, errors+len(one.Counted.Errors)
		}
		table.Rows = append(table.Rows, []string{o.Test.Name, o.Subject.Name, config, fmt.Sprint(operations), fmt.Sprint(errors), fmt.Sprint(wrong),
			pytests.SpeedCell(same), pytests.VerdictCell(same)})
	}
	return table
}

// limitTable is that of the field report on the thread limit: thread counts against classes of operations, the
// two paths of Linear apart.
func limitTable(all []pytests.Job, s *pytests.Subject) reports.Table {
	table := reports.Table{Title: "Thread limit, " + s.Name, Columns: []string{"operations"}}
	found := pytests.JobsWhere(all, func(o pytests.Job) bool {
		return o.Subject == s && o.Test.Class != "" && o.Test.Section != pytests.ProcessSection
	})
	counts := pytests.ThreadCounts(found)
	for _, threads := range counts {
		table.Columns = append(table.Columns, fmt.Sprintf("%d threads", threads))
	}
	var done []string
	for _, o := range found {
		name := o.Test.Class
		if path := o.Path(); path != "" {
			name += " (" + path + ")"
		}
		if slices.Contains(done, name) {
			continue
		}
		done = append(done, name)
		row := []string{name}
		for _, threads := range counts {
			row = append(row, pytests.VerdictCell(pytests.JobsWhere(found, func(other pytests.Job) bool {
				return other.Test.Class == o.Test.Class && other.Path() == o.Path() && other.Run.Threads == threads
			})))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// boundaryTable says how many threads can hold a stream at once.
func boundaryTable(all []pytests.Job, s *pytests.Subject) reports.Table {
	table := reports.Table{Title: "Thread boundary, " + s.Name, Columns: []string{"threads", "result", "ops/s"}}
	found := pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Subject == s && o.Test.Name == "boundary" })
	for _, threads := range pytests.ThreadCounts(found) {
		same := pytests.JobsWhere(found, func(o pytests.Job) bool { return o.Run.Threads == threads })
		table.Rows = append(table.Rows, []string{fmt.Sprint(threads), pytests.VerdictCell(same), pytests.SpeedCell(same)})
	}
	return table
}

// stockTable compares the two torches where both ran.
func stockTable(all []pytests.Job, patched, stock *pytests.Subject) reports.Table {
	table := reports.Table{Title: "Stock and patched", Columns: []string{"test", "threads", "stock", "patched"}}
	for _, t := range pytests.Tests() {
		on := func(s *pytests.Subject, threads int) []pytests.Job {
			return pytests.JobsWhere(all, func(o pytests.Job) bool {
				return o.Subject == s && o.Test.Name == t.Name && (threads == 0 || o.Run.Threads == threads)
			})
		}
		for _, threads := range pytests.ThreadCounts(on(stock, 0)) {
			table.Rows = append(table.Rows, []string{t.Name, fmt.Sprint(threads), pytests.VerdictCell(on(stock, threads)),
				pytests.VerdictCell(on(patched, threads))})
		}
	}
	return table
}

// coldTable shows what a warm-up would hide.
func coldTable(all []pytests.Job) reports.Table {
	table := reports.Table{Title: "Cold and warm", Note: "Warm: one thread has used everything once before. No other test warms up.",
		Columns: []string{"test", "subject", "threads", "cold", "warm"}}
	found := pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Section == pytests.ColdSection })
	var done []string
	for _, o := range found {
		key := fmt.Sprint(o.Test.Name, o.Subject.Name, o.Run.Threads)
		if slices.Contains(done, key) {
			continue
		}
		done = append(done, key)
		same := func(warm bool) string {
			return pytests.VerdictCell(pytests.JobsWhere(found, func(other pytests.Job) bool {
				return other.Test.Name == o.Test.Name && other.Subject == o.Subject && other.Run.Threads == o.Run.Threads && other.Run.Warmup == warm
			}))
		}
		table.Rows = append(table.Rows, []string{o.Test.Name, o.Subject.Name, fmt.Sprint(o.Run.Threads), same(false), same(true)})
	}
	return table
}
