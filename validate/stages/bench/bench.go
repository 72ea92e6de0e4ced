// Package bench is the stage that measures what threads, processes and batches gain, with the tests of package pytests. It sets
// no bound on a speed; wrong values fail it as anywhere else.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

// tests are the operations whose scaling is measured.
var tests = []string{"basic", "linear", "mlp", "transformer"}

// Stage is the stage bench of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "bench", Question: "what do threads, processes and batches gain?",
		Needs: []stage.Need{stage.NeedsTorch},
		Run:   runStage,
	}
}

// runStage measures operations a second against threads, processes and batch size. Each result is compared, so that a
// speed of wrong numbers is none.
func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	names, counts, iterations := tests, []int{1, 2, 4, 8, 16}, 100
	if env.Quick {
		names, counts, iterations = tests[1:3], []int{1, 2, 4}, 30
	}
	if len(env.Python.Threads) > 0 {
		counts = env.Python.Threads
	}
	all, err := pytests.SelectTests(pytests.Tests(), env.Python.Only)
	if err != nil {
		return err
	}
	patched, stock, err := pytests.Proven(ctx, env, report)
	if err != nil {
		return err
	}
	r := pytests.Runner{Env: env, Stage: report, Step: stage.StepName(report.Name)}
	jobs := jobsOf(r, all, patched, stock, names, counts, iterations)
	if len(jobs) == 0 {
		return stage.Skipf("no test of this stage matches %q", env.Python.Only)
	}
	found, err := r.RunAll(ctx, jobs)
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(names, []string{"processes", "batching", scaleTest, "cpu-cost"}, stepTests) {
		for _, s := range []*pytests.Subject{patched, stock} {
			of := pytests.JobsWhere(found, func(o pytests.Job) bool { return o.Test.Name == name && o.Subject == s })
			if len(of) == 0 {
				continue
			}
			if err := r.Judge(of[0].Test, of); err != nil {
				return err
			}
		}
	}
	note := "Operations a second, median; efficiency is that of one thread times their number. No bound is checked."
	if !env.Machine.MetalRan {
		note += " These are speeds of this machine's CPU under the software Metal, not of a GPU."
	}
	report.Tables = append(report.Tables, scalingTable(found, names, note), batchingTable(found, note))
	report.AddTable(stepsTable(found, patched, stock, note))
	report.AddTable(scaleTable(found, note))
	report.AddTable(cpuTable(found))
	report.Plots = append(report.Plots, scalingPlots(found, names)...)
	report.Plots = append(report.Plots, scalePlots(found)...)
	if plot := batchingPlot(found); len(plot.Bars) > 0 {
		report.Plots = append(report.Plots, plot)
	}
	report.AddTable(pytests.ProcessTable(found, patched))
	return pytests.HarnessOnly(patched, report)
}

// jobsOf are the processes to run: tests by their names with the counts of threads, and those that are no matter of threads.
func jobsOf(r pytests.Runner, all []pytests.Test, patched, stock *pytests.Subject, names []string, counts []int, iterations int) []pytests.Job {
	var jobs []pytests.Job
	add := func(name string, counts []int, iterations int) {
		i := slices.IndexFunc(all, func(t pytests.Test) bool { return t.Name == name })
		if i < 0 {
			return // not selected
		}
		t := all[i]
		t.Noisy, t.Graph = true, false // one process at a time: it is measured
		for _, count := range counts {
			for range r.Repeats() {
				job := r.Job(t, patched, count, false)
				job.Run.Iterations = iterations
				// No delays: they widen windows, and are no part of a speed.
				job.Run.More = append(slices.Clone(job.Run.More), "MPSFORGE_METAL_MAX_DELAY_US=0")
				jobs = append(jobs, job)
			}
		}
	}
	for _, name := range names {
		add(name, counts, iterations)
	}
	processes, _ := pytests.Named("processes")
	add("processes", r.ThreadsOf(processes), iterations)
	batching, _ := pytests.Named("batching")
	add("batching", []int{1}, r.IterationsOf(batching))
	if scale, _ := pytests.Named(scaleTest); patched.Device == "mps" {
		add(scaleTest, r.ThreadsOf(scale), r.IterationsOf(scale))
	}
	for _, t := range all {
		switch {
		case slices.Contains(stepTests, t.Name):
			jobs = append(jobs, stepJobs(r, t, patched, stock)...)
		case t.Name == "cpu-cost" && patched.Device == "mps":
			job := r.Job(t, patched, 1, false)
			job.Run.More = append(slices.Clone(job.Run.More), "MPSFORGE_METAL_MAX_DELAY_US=0")
			jobs = append(jobs, job)
		}
	}
	return jobs
}

func scalingTable(all []pytests.Job, names []string, note string) reports.Table {
	table := reports.Table{Title: "Threads", Note: note, Columns: []string{"operation"}}
	counts := pytests.ThreadCounts(pytests.JobsWhere(all, func(o pytests.Job) bool { return slices.Contains(names, o.Test.Name) }))
	for _, count := range counts {
		table.Columns = append(table.Columns, fmt.Sprintf("%d threads", count))
	}
	for _, name := range names {
		if len(pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Name == name })) == 0 {
			continue // not selected
		}
		row := []string{name}
		var alone float64
		for _, count := range counts {
			same := pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Name == name && o.Run.Threads == count })
			text := pytests.SpeedCell(same)
			if count == 1 {
				alone = pytests.Speed(same)
			} else if found := pytests.Speed(same); alone > 0 && found > 0 {
				text += fmt.Sprintf(" (%.0f %%)", 100*found/alone/float64(count))
			}
			if bad := pytests.Problems(same); len(bad) > 0 {
				text = pytests.VerdictCell(same)
			}
			row = append(row, text)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// scalingPlots show what scalingTable and pytests.ProcessTable count.
func scalingPlots(all []pytests.Job, names []string) []reports.Plot {
	threads := reports.Plot{Title: "Operations a second against threads", Unit: "operations a second", X: "threads"}
	efficiency := reports.Plot{Title: "Efficiency of threads", Unit: "% of one thread's speed times their number", X: "threads"}
	for _, name := range names {
		line := speedLine(all, name, name)
		threads.Lines = append(threads.Lines, line)
		if len(line.Points) == 0 || line.Points[0].X != 1 {
			continue
		}
		relative := reports.PlotLine{Name: name}
		for _, p := range line.Points {
			relative.Points = append(relative.Points, reports.PlotPoint{X: p.X, Y: 100 * p.Y / line.Points[0].Y / p.X})
		}
		efficiency.Lines = append(efficiency.Lines, relative)
	}
	processes := reports.Plot{Title: "nn.Linear by processes and by threads", Unit: "operations a second", X: "at once",
		Lines: []reports.PlotLine{speedLine(all, "processes", "processes"), speedLine(all, "linear", "threads")}}
	var plots []reports.Plot
	for _, plot := range []reports.Plot{threads, efficiency, processes} {
		plot.Lines = slices.DeleteFunc(plot.Lines, func(line reports.PlotLine) bool { return len(line.Points) == 0 })
		if len(plot.Lines) > 0 {
			plots = append(plots, plot)
		}
	}
	return plots
}

// speedLine is the speed of a test at each count at which a process of it lived.
func speedLine(all []pytests.Job, test, name string) reports.PlotLine {
	line := reports.PlotLine{Name: name, Points: []reports.PlotPoint{}}
	same := pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Name == test })
	for _, count := range pytests.ThreadCounts(same) {
		at := pytests.JobsWhere(same, func(o pytests.Job) bool { return o.Run.Threads == count })
		if measured := pytests.Speeds(at); len(measured) > 0 {
			line.Points = append(line.Points, reports.PlotPoint{X: float64(count), Y: pytests.Speed(at), Samples: measured})
		}
	}
	return line
}

// batch is a measured way to push samples through the MLP.
type batch struct {
	name  string
	speed float64 // samples a second, median
}

// batches gives batches by one thread, the slowest first, and then single batches by threads.
func batches(all []pytests.Job) []batch {
	measured := map[string][]float64{}
	for _, o := range pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Name == "batching" && o.End.Problem == "" }) {
		for name, value := range o.Counted.Facts {
			measured[name] = append(measured[name], value)
		}
	}
	var found []batch
	for name, values := range measured {
		slices.Sort(values)
		found = append(found, batch{name, values[len(values)/2]})
	}
	slices.SortFunc(found, func(a, b batch) int { return cmp.Compare(a.speed, b.speed) })
	for _, threads := range pytests.ThreadCounts(pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Name == "mlp" })) {
		same := pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Name == "mlp" && o.Run.Threads == threads })
		// One operation of test mlp is a batch of 16.
		found = append(found, batch{fmt.Sprintf("samples/s of %s, batches of 16", process.ThreadsColumn(threads)), 16 * pytests.Speed(same)})
	}
	return found
}

// batchingTable sets batches by one thread against single samples by threads.
func batchingTable(all []pytests.Job, note string) reports.Table {
	table := reports.Table{Title: "Batches by one thread, MLP", Note: note, Columns: []string{"", "per second"}}
	for _, b := range batches(all) {
		table.Rows = append(table.Rows, []string{b.name, fmt.Sprintf("%.0f", b.speed)})
	}
	return table
}

func batchingPlot(all []pytests.Job) reports.Plot {
	plot := reports.Plot{Title: "Batches by one thread, and threads, MLP", Unit: "samples a second"}
	for _, b := range batches(all) {
		plot.Bars = append(plot.Bars, reports.PlotBar{Name: strings.TrimPrefix(b.name, "samples/s "), Value: b.speed})
	}
	return plot
}
