package bench

import (
	"fmt"
	"slices"
	"strings"

	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/pytests"
)

// stepTests are steps of a model, patched by threads at once against stock with a lock of the program's own around each step, which
// is how stock can be used by threads at all. Their one fact is their speed (STEPS_FACT in test_throughput.py).
var stepTests = []string{"steps-16", "steps-512"}

const stepsFact = "steps a second"

// stepJobs are the processes of these tests: patched and stock alternate, so that both have the same share of the machine's moods.
func stepJobs(r pytests.Runner, t pytests.Test, patched, stock *pytests.Subject) []pytests.Job {
	runs := 5
	if r.Env.Quick {
		runs = 1
	}
	var jobs []pytests.Job
	for range runs {
		for _, threads := range []int{1, 4} {
			for _, s := range []*pytests.Subject{patched, stock} {
				if s == nil {
					continue
				}
				job := r.Job(t, s, threads, false)
				job.Run.More = append(slices.Clone(job.Run.More), "MPSFORGE_METAL_MAX_DELAY_US=0")
				if s == stock {
					job.Run.More = append(job.Run.More, "MPSFORGE_ONE_AT_A_TIME=1")
				}
				jobs = append(jobs, job)
			}
		}
	}
	return jobs
}

// stepsTable gives medians, and the ratio of each patched run to the stock run beside it: the median and the worst of them.
func stepsTable(all []pytests.Job, patched, stock *pytests.Subject, note string) reports.Table {
	table := reports.Table{Title: "Steps by threads against stock under a lock", Note: note,
		Columns: []string{"test", "worker threads", "patched, steps/s", "stock, steps/s", "ratio", "worst ratio", "pairs"}}
	for _, name := range stepTests {
		for _, threads := range []int{1, 4} {
			of := func(s *pytests.Subject) (speeds []float64) {
				for _, o := range pytests.JobsWhere(all, func(o pytests.Job) bool {
					return o.Test.Name == name && o.Subject == s && o.Run.Threads == threads
				}) {
					speed := 0.0 // a process that failed is a run, too
					if o.End.Problem == "" {
						speed = o.Counted.Facts[stepsFact]
					}
					speeds = append(speeds, speed)
				}
				return speeds
			}
			here, there := of(patched), of(stock)
			if len(here) == 0 {
				continue
			}
			row := []string{name, process.ThreadsColumn(threads), fmt.Sprintf("%.0f", median(here)), "-", "-", "-", "0"}
			var ratios []float64
			for i := range min(len(here), len(there)) {
				if there[i] > 0 {
					ratios = append(ratios, here[i]/there[i])
				}
			}
			if len(ratios) > 0 {
				row = append(row[:3], fmt.Sprintf("%.0f", median(there)), fmt.Sprintf("%.2f", median(ratios)), fmt.Sprintf("%.2f", slices.Min(ratios)),
					fmt.Sprint(len(ratios)))
			}
			table.Rows = append(table.Rows, row)
		}
	}
	return table
}

// cpuTable shows what several streams cost the operators of the CPU.
func cpuTable(all []pytests.Job) reports.Table {
	table := reports.Table{Title: "Operators of the CPU beside several streams", Columns: []string{"", "times"},
		Note: "Two processes measure in turn, one with one stream, one with several: the median of the blocks' ratios."}
	for _, o := range pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Name == "cpu-cost" && o.End.Problem == "" }) {
		for name, ratio := range o.Counted.Facts {
			table.Rows = append(table.Rows, []string{name, fmt.Sprintf("%.2f", ratio)})
		}
	}
	slices.SortFunc(table.Rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return table
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
