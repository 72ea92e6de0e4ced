package pytests

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

// Rate is a count of failures with its uncertainty.
func Rate(k, n int) string {
	low, high := wilson(k, n)
	return fmt.Sprintf("%d of %d (95 %%: %.0f to %.0f %%)", k, n, 100*low, 100*high)
}

// VerdictCell says in few words how processes ended.
func VerdictCell(outcomes []Job) string {
	if len(outcomes) == 0 {
		return ""
	}
	bad := Problems(outcomes)
	if len(bad) == 0 {
		if outcomes[0].End.Skipped != "" {
			return "skipped"
		}
		return fmt.Sprintf("pass %d/%d", len(outcomes), len(outcomes))
	}
	end, word := bad[0].End, "FAIL"
	if end.Kind == reports.OutcomeCrashed {
		word = "crashed"
	}
	_, what, _ := strings.Cut(end.Signature, " ") // without its number, which looks like a count here
	if what == "" {
		what, _, _ = strings.Cut(end.Problem, ":")
	}
	return fmt.Sprintf("%s %d/%d: %s", word, len(bad), len(outcomes), what)
}

func JobsWhere(all []Job, holds func(Job) bool) []Job {
	return slices.DeleteFunc(slices.Clone(all), func(o Job) bool { return !holds(o) })
}

// ThreadCounts lists the thread counts of outcomes, rising.
func ThreadCounts(all []Job) []int {
	var counts []int
	for _, o := range all {
		if !slices.Contains(counts, o.Run.Threads) {
			counts = append(counts, o.Run.Threads)
		}
	}
	slices.Sort(counts)
	return counts
}

// Speeds are the operations a second of the processes that lived.
func Speeds(outcomes []Job) []float64 {
	var all []float64
	for _, o := range outcomes {
		if o.End.Problem == "" && o.Counted.Seconds > 0 {
			all = append(all, float64(o.Counted.Operations)/o.Counted.Seconds)
		}
	}
	return all
}

// Speed is their median, or 0.
func Speed(outcomes []Job) float64 {
	all := Speeds(outcomes)
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func SpeedCell(outcomes []Job) string {
	if found := Speed(outcomes); found > 0 {
		return fmt.Sprintf("%.0f", found)
	}
	return "-"
}

// ProcessTable is the second one of that report: the same operation by processes and by threads.
func ProcessTable(all []Job, s *Subject) reports.Table {
	table := reports.Table{Title: "nn.Linear by processes and by threads, " + s.Name, Columns: []string{"at once", "processes", "ops/s", "threads", "ops/s"}}
	of := func(name string, count int) []Job {
		return JobsWhere(all, func(o Job) bool {
			return o.Subject == s && o.Test.Name == name && !o.Run.Graph && (count == 0 || o.Run.Threads == count)
		})
	}
	for _, count := range ThreadCounts(of("processes", 0)) {
		processes, threads := of("processes", count), of("linear", count)
		table.Rows = append(table.Rows, []string{fmt.Sprint(count), VerdictCell(processes), SpeedCell(processes), VerdictCell(threads), SpeedCell(threads)})
	}
	return table
}
