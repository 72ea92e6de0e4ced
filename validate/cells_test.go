package validate

import (
	"os"
	"slices"
	"testing"

	"mpsforge/reports"
)

// Processes with the same number of threads and the same path share a cell; the first bad one names it.
func TestCells(t *testing.T) {
	died := ending{problem: "died", kind: reports.Crashed, signature: "6 encode-after-commit"}
	wrong := ending{problem: "wrong values: 1 of 2", kind: reports.WrongValues}
	got := cellsOf([]oneProcess{
		{threads: 4, end: died}, {threads: 1}, {threads: 4}, {threads: 4, end: wrong}, {threads: 1}, {threads: 4, path: "graph"}, {threads: 2, skipped: "no interface"},
	})
	want := []reports.Cell{
		{Threads: 1, Outcome: reports.Lived, Of: 2},
		{Threads: 2, Outcome: reports.Left, Of: 1, Detail: "no interface"},
		{Threads: 4, Outcome: reports.Crashed, Bad: 2, Of: 3, Signature: "6 encode-after-commit", Detail: "died"},
		{Threads: 4, Path: "graph", Outcome: reports.Lived, Of: 1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Of what ThreadSanitizer wrote, both sides of each race are told: the access, the thread, the first place in PyTorch.
func TestDataRaces(t *testing.T) {
	text, err := os.ReadFile("testdata/tsan-profiler.txt") // of a run on stock 2.6.0
	if err != nil {
		t.Fatal(err)
	}
	got := findingsOf([]oneProcess{{threads: 1, end: ending{output: string(text)}}, {threads: 4, end: ending{output: string(text)}}})
	want := []reports.Finding{
		{Kind: "data race", Threads: 1, Message: "ThreadSanitizer: data race aten/src/ATen/mps/MPSProfiler.mm:223:21 in at::mps::Profiler::MPSProfiler::StopTrace()",
			First:  "write by main thread: at::mps::Profiler::MPSProfiler::StopTrace, mps/MPSProfiler.mm:223:21",
			Second: "previous read by thread T5: at::mps::Profiler::MPSProfiler::endProfileExecution, mps/MPSProfiler.mm:277:8"},
		{Kind: "data race", Threads: 1, Message: "ThreadSanitizer: data race aten/src/ATen/mps/MPSProfiler.mm:167:21 in at::mps::Profiler::MPSProfiler::initialize()",
			First:  "write by main thread: at::mps::Profiler::MPSProfiler::initialize, mps/MPSProfiler.mm:167:21",
			Second: "previous read by thread T5: updateCopyStats, mps/MPSProfiler.mm:427:9"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A violation that ended the process is told with both calls; Metal itself names none.
func TestViolationThatEndedTheProcess(t *testing.T) {
	const words = "-[IOGPUMetalCommandBuffer validate]:215: failed assertion `commit an already committed command buffer'\n"
	ours := ending{kind: reports.Crashed, output: "before\n" + words + "commit of command buffer 3 of queue 2 by thread 4, after commit of command buffer 3 of queue 2 by thread 1\n"}
	found := ours.findings()
	if len(found) != 1 || found[0].First != "commit of command buffer 3 of queue 2 by thread 1" || found[0].Second != "commit of command buffer 3 of queue 2 by thread 4" ||
		found[0].Kind != "violation" || found[0].Signature == "" {
		t.Errorf("%+v", found)
	}
	if found := (ending{kind: reports.Crashed, output: words + "Abort trap\n"}).findings(); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// Speeds become lines with their samples; efficiency is relative to one thread; a count at which no process lived has
// no point.
func TestScalingPlots(t *testing.T) {
	at := func(name string, threads int, operations int64, problem string) pythonOutcome {
		o := pythonOutcome{test: pythonTest{name: name}, subject: &pythonSubject{}, run: pythonRun{threads: threads}}
		o.end.counted.Operations, o.end.counted.Seconds, o.end.problem = operations, 2, problem
		return o
	}
	plots := scalingPlots([]pythonOutcome{at("linear", 1, 200, ""), at("linear", 2, 300, ""), at("linear", 2, 360, ""), at("linear", 4, 0, "died"), at("processes", 2, 500, "")}, []string{"linear", "mlp"})
	if len(plots) != 3 {
		t.Fatalf("%d plots", len(plots))
	}
	speed, efficiency, processes := plots[0].Lines, plots[1].Lines, plots[2].Lines
	if len(speed) != 1 || len(speed[0].Points) != 2 || speed[0].Points[1].Y != 180 || !slices.Equal(speed[0].Points[1].Samples, []float64{150, 180}) {
		t.Errorf("%+v", speed)
	}
	if len(efficiency) != 1 || efficiency[0].Points[1].Y != 90 || efficiency[0].Points[1].Samples != nil {
		t.Errorf("%+v", efficiency)
	}
	if len(processes) != 2 || processes[0].Name != "processes" || processes[1].Name != "threads" {
		t.Errorf("%+v", processes)
	}
}
