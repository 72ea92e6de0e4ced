package operators

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mpsforge/patches"
	"mpsforge/reports"
)

// listing writes counts, the largest first.
func listing(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s: %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}

// coverage is the table of what ran, and how it ended, by type and form.
func coverage(subject string, entries []entry, ends []outcome, known patches.KnownOperators) reports.Table {
	table := reports.Table{Title: "coverage, " + subject,
		Note: "A job is an entry of the operator database with a type and a form, run by several threads at once and compared bit for bit with the " +
			"same run alone. A job that does not run alone is not a pass. " +
			"Known failures are counted under what was seen. Not planned: types that Metal does not have, and forms of entries that do not run in " +
			"the basic form.",
		Key:     2,
		Columns: []string{"form", "types", "jobs", "right", "wrong values", "race", "other faults", "of these known", "does not apply", "does not run alone"}}
	type row struct{ form, dtype string }
	counts := map[row]map[string]int{}
	for _, o := range ends {
		at := row{o.Job.Form, o.Job.DType}
		switch {
		case strings.Contains(at.form, "+"):
			at = row{"pairs of forms", "main"}
		case strings.HasPrefix(at.form, groupPrefix):
			at = row{"group", "main"}
		case at.form != "basic":
			at.dtype = "main"
		}
		if counts[at] == nil {
			counts[at] = map[string]int{}
		}
		column := string(o.Result.Status)
		if o.faulty() && o.Result.Status != wrongValues && o.Result.Status != raced {
			column = "other faults"
		}
		counts[at]["jobs"]++
		counts[at][column]++
		if o.faulty() && knownOf(known, o) != nil {
			counts[at]["of these known"]++
		}
	}
	order := append([]string{"basic"}, forms...)
	rows := slices.SortedFunc(maps.Keys(counts), func(a, b row) int {
		place := func(form string) int { return (slices.Index(order, form) + len(order) + 1) % (len(order) + 1) }
		return cmp.Or(cmp.Compare(place(a.form), place(b.form)), cmp.Compare(a.form, b.form), cmp.Compare(counts[b]["jobs"], counts[a]["jobs"]),
			cmp.Compare(a.dtype, b.dtype))
	})
	total := map[string]int{}
	for _, at := range rows {
		cells := []string{at.form, at.dtype}
		for _, column := range table.Columns[2:] {
			cells = append(cells, fmt.Sprint(counts[at][column]))
			total[column] += counts[at][column]
		}
		table.Rows = append(table.Rows, cells)
	}
	cells := []string{"all", fmt.Sprintf("of %d entries", len(entries))}
	for _, column := range table.Columns[2:] {
		cells = append(cells, fmt.Sprint(total[column]))
	}
	table.Rows = append(table.Rows, cells)
	return table
}

// grouped is a table of jobs by a text, the most frequent first, with the operators.
func grouped(title, note, column string, ends []outcome, text func(outcome) string) reports.Table {
	table := reports.Table{Title: title, Note: note, Key: 1, Columns: []string{column, "jobs", "operators", "which"}}
	counts, names := map[string]int{}, map[string][]string{}
	for _, o := range ends {
		if key := text(o); key != "" {
			counts[key]++
			if !slices.Contains(names[key], o.Job.Operator) {
				names[key] = append(names[key], o.Job.Operator)
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		slices.Sort(names[key])
		which := strings.Join(names[key][:min(8, len(names[key]))], ", ")
		if len(names[key]) > 8 {
			which += ", ..."
		}
		table.Rows = append(table.Rows, []string{key, fmt.Sprint(counts[key]), fmt.Sprint(len(names[key])), which})
	}
	return table
}

// howUnlike is the first sentence of how an answer differs from the CPU's, without the case and its numbers.
func howUnlike(text string) string {
	_, after, found := strings.Cut(text, ": result ")
	if !found {
		return text
	}
	_, after, _ = strings.Cut(after, ": ")
	if end := strings.IndexAny(after, "!."); end > 0 && !strings.Contains(after, "dtype") {
		after = after[:end]
	}
	return after
}

// debts adds the tables of what the storm could not judge, or judged more weakly.
func debts(report *reports.Stage, subject string, ends []outcome) {
	report.AddTable(grouped("does not run alone, "+subject, "By reason; none of these is a pass.", "reason", ends, func(o outcome) string {
		if o.Result.Status != notAlone {
			return ""
		}
		return o.Result.Reason
	}))
	report.AddTable(grouped("some samples do not run alone, "+subject, "The other samples of these jobs ran.", "reason of the first", ends,
		func(o outcome) string {
			if o.Result.Status == notAlone || len(o.Result.Partly) == 0 {
				return ""
			}
			return o.Result.Partly[0]
		}))
	report.AddTable(grouped("differs from the CPU, "+subject,
		"Alone, beyond the tolerances of torch.testing and of the entry: not caused by threads, but by the host build or the sources. --operators "+
			"NAME shows the numbers.", "how", ends, func(o outcome) string { return howUnlike(o.Result.CPU) }))
	report.AddTable(grouped("random operators, "+subject,
		"Two runs alone gave two results. With a generator of one seed they are compared bit for bit; else only their shape, type and magnitude.",
		"compared by", ends, func(o outcome) string { return o.Result.Random }))
}
