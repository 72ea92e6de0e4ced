package validate

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"mpsforge/reports"
)

// benchTests are the operations whose scaling is measured.
var benchTests = []string{"basic", "linear", "mlp", "transformer"}

// benchStage measures operations a second against threads, processes and batch size. Each result is compared, so that a
// speed of wrong numbers is none.
func (p *pipeline) benchStage(ctx context.Context, stage *reports.Stage) error {
	names, counts, iterations := benchTests, []int{1, 2, 4, 8, 16}, 100
	if p.Quick {
		names, counts, iterations = benchTests[1:3], []int{1, 2, 4}, 30
	}
	if len(p.Python.Threads) > 0 {
		counts = p.Python.Threads
	}
	all, err := selectTests(pythonTests(), p.Python.Only)
	if err != nil {
		return err
	}
	patched, _, err := p.provenPythons(ctx, stage)
	if err != nil {
		return err
	}
	var jobs []pythonOutcome
	add := func(name string, counts []int, iterations int) {
		i := slices.IndexFunc(all, func(t pythonTest) bool { return t.name == name })
		if i < 0 {
			return // not selected
		}
		t := all[i]
		t.noisy, t.graph = true, false // one process at a time: it is measured
		for _, count := range counts {
			for range p.repeats() {
				job := p.pythonJob(t, patched, count, false)
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
	add("processes", p.threadsOf(processes), iterations)
	batching, _ := pythonTestNamed("batching")
	add("batching", []int{1}, p.iterationsOf(batching))
	if len(jobs) == 0 {
		return skipf("no test of this stage matches %q", p.Python.Only)
	}
	r := pythonStageRun{pipeline: p, stage: stage, step: stepName(stage.Name)}
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
	if !p.report.Machine.MetalRan {
		note += " These are speeds of this machine's CPU under the software Metal, not of a GPU."
	}
	stage.Tables = append(stage.Tables, scalingTable(found, names, note), batchingTable(found, note))
	stage.Plots = append(stage.Plots, scalingPlot(found, names))
	if table := processTable(found, patched); len(table.Rows) > 0 {
		stage.Tables = append(stage.Tables, table)
	}
	return p.harnessOnly(patched, stage)
}

func scalingTable(all []pythonOutcome, names []string, note string) reports.Table {
	table := reports.Table{Title: "Threads", Note: note, Columns: []string{"operation"}}
	counts := threadCounts(outcomesOf(all, func(o pythonOutcome) bool { return slices.Contains(names, o.test.name) }))
	for _, count := range counts {
		table.Columns = append(table.Columns, fmt.Sprintf("%d threads", count))
	}
	for _, name := range names {
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
		if len(strings.Join(row[1:], "")) > 0 {
			table.Rows = append(table.Rows, row)
		}
	}
	return table
}

// scalingPlot shows what scalingTable counts, and beside it what processes and batches do.
func scalingPlot(all []pythonOutcome, names []string) reports.Plot {
	plot := reports.Plot{Title: "Threads and processes", Unit: "operations a second"}
	for _, name := range append(slices.Clone(names), "processes") {
		same := outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == name })
		for _, count := range threadCounts(same) {
			label := fmt.Sprintf("%d threads", count)
			switch {
			case name == "processes":
				label = fmt.Sprintf("%d processes", count)
			case count == 1:
				label = "1 thread"
			}
			plot.Bars = append(plot.Bars, reports.PlotBar{Group: name, Name: label,
				Value: speed(outcomesOf(same, func(o pythonOutcome) bool { return o.run.threads == count }))})
		}
	}
	return plot
}

// batchingTable sets batches by one thread against single samples by threads.
func batchingTable(all []pythonOutcome, note string) reports.Table {
	table := reports.Table{Title: "Batches by one thread, MLP", Note: note, Columns: []string{"", "per second"}}
	rows := map[string][]float64{}
	for _, o := range outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == "batching" && o.end.problem == "" }) {
		for name, value := range o.end.counted.Facts {
			rows[name] = append(rows[name], value)
		}
	}
	var names []string
	for name := range rows {
		names = append(names, name)
		sort.Float64s(rows[name])
	}
	median := func(name string) float64 { return rows[name][len(rows[name])/2] }
	sort.Slice(names, func(i, j int) bool { return median(names[i]) < median(names[j]) })
	for _, name := range names {
		table.Rows = append(table.Rows, []string{name, fmt.Sprintf("%.0f", median(name))})
	}
	for _, threads := range threadCounts(outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == "mlp" })) {
		same := outcomesOf(all, func(o pythonOutcome) bool { return o.test.name == "mlp" && o.run.threads == threads })
		// One operation of test mlp is a batch of 16.
		table.Rows = append(table.Rows, []string{fmt.Sprintf("samples/s of %d threads, batches of 16", threads), fmt.Sprintf("%.0f", 16*speed(same))})
	}
	return table
}
