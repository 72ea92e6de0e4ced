package validate_test

import (
	"context"
	"fmt"
	"log"

	"mpsforge/patches"
	"mpsforge/validate"
)

// The pipeline runs the stages that are asked for; what does not run is reported, and counts for no pass.
func Example() {
	series, err := patches.Load(patches.Embedded(), patches.DefaultBaseline)
	if err != nil {
		log.Fatal(err)
	}
	linted, err := patches.Lint(patches.Embedded(), patches.DefaultBaseline, validate.ScenarioNames())
	if err != nil {
		log.Fatal(err)
	}
	report, err := validate.Run(context.Background(), validate.Options{
		Series: series, Lint: linted, NoCheckout: "this example has none",
		Stages: []string{"series", "checkout"}, Require: []string{"checkout"}, Quick: true,
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, report := range report.Stages[:3] {
		fmt.Printf("%s: %s; %q\n", report.Name, report.Verdict, report.Reason)
	}
	fmt.Println("the whole:", report.Verdict, report.Missing)
	// Output:
	// series: passed; ""
	// checkout: skipped; "this example has none"
	// reference: not run; "not asked for"
	// the whole: skipped [checkout]
}
