package crash

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// TestTroubleshootingHasTheSignatures holds the page's tables to the table of the code.
func TestTroubleshootingHasTheSignatures(t *testing.T) {
	page := require.One(os.ReadFile("../../../docs/troubleshooting.md"))(t)
	for _, class := range []Class{ThreadClass, NotThreadClass, UnknownClass} {
		var table strings.Builder
		table.WriteString("| what you see | what it is | `mpsforge metal explain` |\n| --- | --- | --- |\n")
		for _, s := range signatures {
			if s.Class == class {
				seen := "nothing is printed"
				if len(s.Texts) > 0 {
					seen = "`" + s.Texts[0] + "`"
				} else if len(s.Stacks) > 0 {
					seen = s.Stacks[0]
				}
				fmt.Fprintf(&table, "| %s | %s | `%s` |\n", seen, s.Meaning, s.Slug)
			}
		}
		if !strings.Contains(string(page), "\n\n"+table.String()+"\n") {
			t.Errorf("docs/troubleshooting.md's table of the %s is not that of the code, which is:\n%s", class, &table)
		}
	}
}
