package reports_test

import (
	"fmt"

	"mpsforge/reports"
)

// A stage gets its verdict from its checks, the report from its stages and from what was required to run.
func Example() {
	report := &reports.Report{Schema: reports.Schema, Stages: []reports.Stage{
		{Name: "conformance"},
		{Name: "runtime", Verdict: reports.Skipped, Reason: "no C++ compiler"},
	}}
	report.Stages[0].Add(reports.Check{Name: "claims are atomic", Verdict: reports.Passed})

	report.Conclude(nil)
	fmt.Println(report.Verdict)
	report.Conclude([]string{"runtime"})
	fmt.Println(report.Verdict, report.Missing)
	report.Stages[0].Add(reports.Check{Name: "no lost wake-up", Verdict: reports.Failed, Detail: "2 threads wait, a slot is free"})
	report.Conclude([]string{"runtime"})
	fmt.Println(report.Verdict, "-", report.Stage("conformance").Reason)
	// Output:
	// passed
	// skipped [runtime]
	// failed - no lost wake-up: 2 threads wait, a slot is free
}
