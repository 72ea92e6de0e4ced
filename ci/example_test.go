package ci_test

import (
	"fmt"
	"log"
	"strings"

	"mpsforge/ci"
	"mpsforge/reports"
)

// In a step of GitHub Actions a report becomes the step's summary, and its failures annotations.
func ExampleAnnotations() {
	report := &reports.Report{Stages: []reports.Stage{{Name: "checkout"}}}
	report.Stages[0].Add(reports.Check{Name: "use off the queue", Subject: "aten/src/ATen/native/mps/operations/Eye.mm:40", Verdict: reports.Failed,
		Detail: "is in no block"})
	report.Conclude(nil)

	var summary strings.Builder // the file that GITHUB_STEP_SUMMARY names
	if err := ci.WriteSummary(&summary, report, ci.SummaryLimit); err != nil {
		log.Fatal(err)
	}
	for _, annotation := range ci.Annotations(report) {
		fmt.Println(annotation)
	}
	// Output:
	// ::error file=aten/src/ATen/native/mps/operations/Eye.mm,line=40,title=checkout%3A use off the queue::is in no block
}
