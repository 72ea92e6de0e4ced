package process

import (
	"os"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/native/script"
	"mpsforge/reports"
)

// Processes with the same number of threads and the same path share a cell; the first bad one names it.
func TestCells(t *testing.T) {
	died := Result{Problem: "died", Kind: reports.OutcomeCrashed, Signature: "6 encode-after-commit"}
	wrong := Result{Problem: "wrong values: 1 of 2", Kind: reports.OutcomeWrongValues}
	died.Threads, wrong.Threads = 4, 4
	got := Cells([]Result{died, {Threads: 1}, {Threads: 4}, wrong, {Threads: 1}, {Threads: 4, Path: "graph"}, {Threads: 2, Skipped: "no interface"}})
	want := []reports.Cell{
		{Threads: 1, Outcome: reports.OutcomePassed, Of: 2},
		{Threads: 2, Outcome: reports.OutcomeSkipped, Of: 1, Detail: "no interface"},
		{Threads: 4, Outcome: reports.OutcomeCrashed, Bad: 2, Of: 3, Signature: "6 encode-after-commit", Detail: "died"},
		{Threads: 4, Path: "graph", Outcome: reports.OutcomePassed, Of: 1},
	}
	require.Equal(t, got, want)
}

// Of what ThreadSanitizer wrote, both sides of each race are reported: the access, the thread, the first place in PyTorch.
func TestDataRaces(t *testing.T) {
	text := require.One(os.ReadFile("testdata/tsan-profiler.txt"))(t) // of a run on stock 2.6.0
	got := Findings([]Result{{Threads: 1, Output: string(text)}, {Threads: 4, Output: string(text)}})
	want := []reports.Finding{
		{Kind: "data race", Threads: 1,
			Message: "ThreadSanitizer: data race aten/src/ATen/mps/MPSProfiler.mm:223:21 in at::mps::Profiler::MPSProfiler::StopTrace()",
			First:   "write by main thread: at::mps::Profiler::MPSProfiler::StopTrace, mps/MPSProfiler.mm:223:21",
			Second:  "previous read by thread T5: at::mps::Profiler::MPSProfiler::endProfileExecution, mps/MPSProfiler.mm:277:8"},
		{Kind: "data race", Threads: 1,
			Message: "ThreadSanitizer: data race aten/src/ATen/mps/MPSProfiler.mm:167:21 in at::mps::Profiler::MPSProfiler::initialize()",
			First:   "write by main thread: at::mps::Profiler::MPSProfiler::initialize, mps/MPSProfiler.mm:167:21",
			Second:  "previous read by thread T5: updateCopyStats, mps/MPSProfiler.mm:427:9"},
	}
	require.Equal(t, got, want)
}

// A violation that ended the process is reported with both calls; Metal itself names none.
func TestViolationThatEndedTheProcess(t *testing.T) {
	const words = "-[IOGPUMetalCommandBuffer validate]:215: failed assertion `commit an already committed command buffer'\n"
	ours := Result{Kind: reports.OutcomeCrashed, Output: "before\n" + words +
		"commit of command buffer 3 of queue 2 by thread 4, after commit of command buffer 3 of queue 2 by thread 1\n"}
	found := ours.findings()
	if len(found) != 1 || found[0].First != "commit of command buffer 3 of queue 2 by thread 1" ||
		found[0].Second != "commit of command buffer 3 of queue 2 by thread 4" ||
		found[0].Kind != "violation" || found[0].Signature == "" {
		t.Errorf("%+v", found)
	}
	require.Equal(t, (Result{Kind: reports.OutcomeCrashed, Output: words + "Abort trap\n"}).findings(), nil)
}

// Most findings have no signature; those that have one are named as docs/troubleshooting.md names it.
func TestFindingsAreNamedByTheirSignature(t *testing.T) {
	for number, want := range map[int]string{0: "", 3: "3 double-commit"} {
		require.Equal(t, Report(script.Finding{Kind: "race", Signature: number}).Signature, want, "signature", number, "is named")
	}
}
