package validate

import (
	"fmt"
	"math"
	"mpsforge/reports"
	"slices"
	"strings"
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
		if outcomes[0].end.Skipped != "" {
			return "skipped"
		}
		return fmt.Sprintf("pass %d/%d", len(outcomes), len(outcomes))
	}
	text := fmt.Sprintf("FAIL %d/%d", len(bad), len(outcomes))
	what := bad[0].end.Signature
	if what == "" {
		what, _, _ = strings.Cut(bad[0].end.Problem, ":")
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
		if o.end.Problem == "" && o.counted.Seconds > 0 {
			all = append(all, float64(o.counted.Operations)/o.counted.Seconds)
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
