package validate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"mpsforge/internal/require"
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
	text := require.One(os.ReadFile("../docs/verifying.md"))(t)
	if !strings.Contains(string(text), "\n\n"+stagesTable()+"\n") {
		t.Errorf("docs/verifying.md's table of the stages is not that of the code, which is:\n%s", stagesTable())
	}
}
