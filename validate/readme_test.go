package validate

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stagesTable is the table of the stages in docs/verifying.md.
func stagesTable() string {
	var table strings.Builder
	table.WriteString("| stage | question | needs |\n| --- | --- | --- |\n")
	for _, s := range Stages() {
		var needs []string
		for _, need := range s.Needs {
			needs = append(needs, string(need))
		}
		text := strings.Join(needs, ", ")
		if text == "" {
			text = "nothing"
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", s.Name, s.Question, text)
	}
	return table.String()
}

func TestDocumentHasTheStages(t *testing.T) {
	text, err := os.ReadFile("../docs/verifying.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n\n"+stagesTable()+"\n") {
		t.Errorf("docs/verifying.md's table of the stages is not that of the code, which is:\n%s", stagesTable())
	}
}

// The specification has the same stages in the same order; what it says of them is longer.
func TestSpecificationHasTheStages(t *testing.T) {
	text, err := os.ReadFile("../docs/spec/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| stage | question |")
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z]+(?:-[a-z]+)*) \|`).FindAllStringSubmatch(table, -1) {
		names = append(names, row[1])
	}
	if !slices.Equal(names, StageNames()) {
		t.Errorf("docs/spec/verification.md has the stages %v, the code %v", names, StageNames())
	}
}
