package reports_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The name of an outcome says its value, which users read in reports.
func TestOutcomesAreNamedAfterTheirValues(t *testing.T) {
	source, err := os.ReadFile("report.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\t(\w+) +Outcome += "(.*)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 8 {
		t.Fatalf("outcomes found: %v", found)
	}
	for _, one := range found {
		if name := strings.ReplaceAll(one[2], " ", ""); !strings.EqualFold(one[1], "Outcome"+name) {
			t.Errorf("%s = %q", one[1], one[2])
		}
	}
}
