package validate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"mpsforge/reports"
)

// benchTests are the operations whose scaling is measured.
var benchTests = []string{"basic", "linear", "mlp", "transformer"}

// benchStage measures operations a second against threads, processes and batch size. Each result is compared, so that a
// speed of wrong numbers is none.
func benchStage(ctx context.Context, env *Env, stage *reports.Stage) error {
	names, counts, iterations := benchTests, []int{1, 2, 4, 8, 16}, 100
	if env.Quick {
		names, counts, iterations = benchTests[1:3], []int{1, 2, 4}, 30
	}
	if len(env.Python.Threads) > 0 {
		counts = env.Python.Threads
	}
	all, err := selectTests(pythonTests(), env.Python.Only)
	if err != nil {
		return err
	}
	patched, _, err := provenPythons(ctx, env, stage)
	if err != nil {
		return err
	}
	r := pythonStageRun{env: env, stage: stage, step: StepName(stage.Name)}
	var jobs []pythonOutcome
	add := func(name string, counts []int, iterations int) {
		i := slices.IndexFunc(all, func(t pythonTest) bool { return t.name == name })
		if i < 0 {
			return // not selected
		}
		t := all[i]
		t.noisy, t.graph = true, false // one process at a time: it is measured
		for _, count := range counts {
			for range r.repeats() {
				job := r.pythonJob(t, patched, count, false)
				job.run.iterations = iterations
				// No delays: they widen windows, and are no part of a speed.
				job.run.more = append(slices.Clone(job.run.more), "MPSFORGE_METAL_MAX_DELAY_US=0")
				jobs = append(jobs, job)
			}
		}
	}
	for _, name := range names {
		add(name, counts, iterations)
	}
	processes, _ := pythonTestNamed("processes")
	add("processes", r.threadsOf(processes), iterations)
	batching, _ := pythonTestNamed("batching")
	add("batching", []int{1}, r.iterationsOf(batching))
	if len(jobs) == 0 {
		return Skipf("no test of this stage matches %q", env.Python.Only)
	}
	found, err := r.runAll(ctx, jobs)
	if err != nil {
		return err
	}
	for _, name := range append(slices.Clone(names), "processes", "batching") {
		of := outcomesOf(found, func(o pythonOutcome) bool { return o.test.name == name })
		if len(of) == 0 {
			continue
		}
		if err := r.judge(of[0].test, of); err != nil {
			return err
		}
	}
	note := "Operations a second, median; efficiency is that of one thread times their number. Nothing is promised: there is no bound."
	if !env.Machine.MetalRan {
		note += " These are speeds of this machine's CPU under the software Metal, not of a GPU."
	}
	stage.Tables = append(stage.Tables, scalingTable(found, names, note), batchingTable(found, note))
	stage.Plots = append(stage.Plots, scalingPlots(found, names)...)
	if plot := batchingPlot(found); len(plot.Bars) > 0 {
		stage.Plots = append(stage.Plots, plot)
	}
	if table := processTable(found, patched); len(table.Rows) > 0 {
		stage.Tables = append(stage.Tables, table)
	}
	return harnessOnly(patched, stage)
}

func scalingTable(all []pythonOutcome, names []string, note string) reports.Table {
	table := reports.Table{Title: "Threads", Note: note, Columns: []string{"operation"}}
	counts := threadCounts(outcomesOf(all, func(o pythonOutcome) bool { return slices.Contains(names, o.test.name) }))
	for _, count := range counts {
		table.Columns = append(table.Columns, fmt.Sprintf("%d threads", count))
	}
	for _, name := range names {
		if len(outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == name })) == 0 {
			continue // not selected
		}
		row := []string{name}
		var alone float64
		for _, count := range counts {
			same := outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == name && o.run.threads == count })
			text := speedCell(same)
			if count == 1 {
				alone = speed(same)
			} else if found := speed(same); alone > 0 && found > 0 {
				text += fmt.Sprintf(" (%.0f %%)", 100*found/alone/float64(count))
			}
			if bad := problemsOf(same); len(bad) > 0 {
				text = verdictCell(same)
			}
			row = append(row, text)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// scalingPlots show what scalingTable and processTable count.
func scalingPlots(all []pythonOutcome, names []string) []reports.Plot {
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
func speedLine(all []pythonOutcome, test, name string) reports.PlotLine {
	line := reports.PlotLine{Name: name, Points: []reports.PlotPoint{}}
	same := outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == test })
	for _, count := range threadCounts(same) {
		at := outcomesOf(same, func(o pythonOutcome) bool { return o.run.threads == count })
		if measured := speeds(at); len(measured) > 0 {
			line.Points = append(line.Points, reports.PlotPoint{X: float64(count), Y: speed(at), Samples: measured})
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
func batches(all []pythonOutcome) []batch {
	measured := map[string][]float64{}
	for _, o := range outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == "batching" && o.end.Problem == "" }) {
		for name, value := range o.counted.Facts {
			measured[name] = append(measured[name], value)
		}
	}
	var found []batch
	for name, values := range measured {
		slices.Sort(values)
		found = append(found, batch{name, values[len(values)/2]})
	}
	slices.SortFunc(found, func(a, b batch) int { return cmp.Compare(a.speed, b.speed) })
	for _, threads := range threadCounts(outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == "mlp" })) {
		same := outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == "mlp" && o.run.threads == threads })
		// One operation of test mlp is a batch of 16.
		found = append(found, batch{fmt.Sprintf("samples/s of %s, batches of 16", threadsColumn(threads)), 16 * speed(same)})
	}
	return found
}

// batchingTable sets batches by one thread against single samples by threads.
func batchingTable(all []pythonOutcome, note string) reports.Table {
	table := reports.Table{Title: "Batches by one thread, MLP", Note: note, Columns: []string{"", "per second"}}
	for _, b := range batches(all) {
		table.Rows = append(table.Rows, []string{b.name, fmt.Sprintf("%.0f", b.speed)})
	}
	return table
}

func batchingPlot(all []pythonOutcome) reports.Plot {
	plot := reports.Plot{Title: "Batches by one thread, and threads, MLP", Unit: "samples a second"}
	for _, b := range batches(all) {
		plot.Bars = append(plot.Bars, reports.PlotBar{Name: strings.TrimPrefix(b.name, "samples/s "), Value: b.speed})
	}
	return plot
}
