package bench

import (
	"fmt"
	"slices"

	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/pytests"
)

// scaleTest has up to 256 threads, each with a stream of its own: neither their speed nor what the process takes may have a cliff.
const scaleTest = "scale"

// The facts of test scale, as test_throughput.py has them, beside stepsFact.
const (
	threadBytesFact = "bytes a thread"
	streamsFact     = "streams"
)

// scaleFacts gives the values of a fact at each number of threads at which a process lived.
func scaleFacts(all []pytests.Job, fact string) reports.PlotLine {
	line := reports.PlotLine{Name: fact, Points: []reports.PlotPoint{}}
	lived := pytests.JobsWhere(all, func(o pytests.Job) bool { return o.Test.Name == scaleTest && o.End.Problem == "" })
	for _, threads := range pytests.ThreadCounts(lived) {
		var values []float64
		for _, o := range pytests.JobsWhere(lived, func(o pytests.Job) bool { return o.Run.Threads == threads }) {
			values = append(values, o.Counted.Facts[fact])
		}
		line.Points = append(line.Points, reports.PlotPoint{X: float64(threads), Y: median(values), Samples: slices.Sorted(slices.Values(values))})
	}
	return line
}

func scaleTable(all []pytests.Job, note string) reports.Table {
	table := reports.Table{Title: "Threads with a stream each", Note: note + " Memory is what the process grew by until all had their streams.",
		Columns: []string{"worker threads", "streams", "steps/s of all", "MB a thread"}}
	steps, memory, streams := scaleFacts(all, stepsFact), scaleFacts(all, threadBytesFact), scaleFacts(all, streamsFact)
	for i, at := range steps.Points {
		table.Rows = append(table.Rows, []string{process.ThreadsColumn(int(at.X)), fmt.Sprintf("%.0f", streams.Points[i].Y), fmt.Sprintf("%.0f", at.Y),
			fmt.Sprintf("%.2f", memory.Points[i].Y/(1<<20))})
	}
	return table
}

func scalePlots(all []pytests.Job) []reports.Plot {
	speed := reports.Plot{Title: "Steps a second by threads with a stream each", Unit: "steps a second, of all threads", X: "threads",
		Lines: []reports.PlotLine{scaleFacts(all, stepsFact)}}
	memory := reports.Plot{Title: "Memory by threads with a stream each", Unit: "bytes a thread", X: "threads",
		Lines: []reports.PlotLine{scaleFacts(all, threadBytesFact)}}
	if len(speed.Lines[0].Points) == 0 {
		return nil
	}
	return []reports.Plot{speed, memory}
}
