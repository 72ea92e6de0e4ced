package python

import (
	"encoding/json"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/reports"
	"mpsforge/validate/judge/pytests"
)

// The field reports' tables, from made-up outcomes like theirs.
func TestPythonTables(t *testing.T) {
	patched, stock := &pytests.Subject{Name: "patched", Device: "mps"}, &pytests.Subject{Name: "stock", Device: "mps"}
	named := func(name string) pytests.Test {
		test, found := pytests.Named(name)
		if !found {
			t.Fatalf("no test %s", name)
		}
		return test
	}
	graph := tableJob(named("linear"), patched, 4, "", "")
	graph.Run.Graph = true
	warm := tableJob(named("cold-start"), patched, 8, "", "")
	warm.Run.Warmup = true
	all := []pytests.Job{
		tableJob(named("basic"), patched, 4, "", ""), tableJob(named("basic"), stock, 4, "died by signal aborted: x", "3 double-commit"),
		tableJob(named("linear"), patched, 2, "", ""), tableJob(named("linear"), patched, 4, "died by signal segmentation fault: y", ""), graph,
		tableJob(named("boundary"), patched, 32, "", ""), tableJob(named("processes"), patched, 4, "", ""),
		tableJob(named("cold-start"), patched, 8, "wrong values: 1", ""), warm,
	}
	var report reports.Stage
	tables(&report, all, patched, stock)
	text := require.One(json.Marshal(report.Tables))(t)
	for _, row := range [][]string{
		{"basic", "patched", "4t x 10i", "40", "0", "0", "20", "pass 1/1"},
		{"raw tensor operations", "", "pass 1/1"},
		{"nn.Linear (no graph)", "pass 1/1", "crashed 1/1: died by signal segmentation fault"},
		{"nn.Linear (graph)", "", "pass 1/1"},
		{"32", "pass 1/1", "160"},
		{"4", "pass 1/1", "20", "crashed 1/1: died by signal segmentation fault", "-"},
		{"basic", "4", "crashed 1/1: double-commit", "pass 1/1"},
		{"cold-start", "patched", "8", "FAIL 1/1: wrong values", "pass 1/1"},
	} {
		want := require.One(json.Marshal(row))(t)
		require.Contains(t, string(text), string(want))
	}
}

func tableJob(test pytests.Test, subject *pytests.Subject, threads int, problem, signature string) pytests.Job {
	o := pytests.Job{Test: test, Subject: subject, Run: pytests.Run{Subject: subject, Test: test.Name, Threads: threads, Iterations: 10}}
	if strings.HasPrefix(problem, "died") {
		o.End.Kind = reports.OutcomeCrashed
	}
	o.End.Threads, o.End.Problem, o.End.Signature = threads, problem, signature
	o.Counted = pytests.Counts{Operations: int64(threads * 10), Values: 100, Seconds: 2}
	return o
}
