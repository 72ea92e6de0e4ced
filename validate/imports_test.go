package validate

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// A stage imports neither the pipeline nor another stage, and packages import downwards only: the commands the pipeline, the
// pipeline its stages, the stages what lies beside them, all of them the packages below.
func TestImportsGoDown(t *testing.T) {
	command := exec.Command("go", "list", "-json=ImportPath,Imports", "mpsforge/...")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var found struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&found); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, imported := range found.Imports {
			require.Equal(t, goesUp(found.ImportPath, imported), "", found.ImportPath, "imports", imported)
		}
	}
}

// floors are the folders at the top, from the lowest up. A package imports from its own floor and from lower ones.
var floors = [][]string{{"internal"}, {"patches", "native", "reports", "docs"}, {"fork"}, {"validate"}, {"ci"}, {"cmd"}}

// goesUp says why one package may not import another, or nothing.
func goesUp(from, to string) string {
	from, inside := strings.CutPrefix(from, "mpsforge/")
	to, ours := strings.CutPrefix(to, "mpsforge/")
	if !inside || !ours {
		return ""
	}
	floor := func(path string) int {
		top, _, _ := strings.Cut(path, "/")
		return slices.IndexFunc(floors, func(folders []string) bool { return slices.Contains(folders, top) })
	}
	stage, isStage := strings.CutPrefix(to, "validate/stages/")
	stage, _, _ = strings.Cut(stage, "/")
	switch {
	case floor(from) < 0:
		return "its folder is on no floor of this test"
	case floor(to) > floor(from):
		return "that is on a higher floor"
	case to == "validate" && strings.HasPrefix(from, "validate/"):
		return "the pipeline knows the stages, not the other way round"
	case isStage && strings.HasPrefix(from, "validate/") && !strings.HasPrefix(from+"/", "validate/stages/"+stage+"/"):
		return "a stage is for the pipeline alone; what several need has a package of its own"
	}
	return ""
}

// The test above can fail.
func TestImportsThatGoUpAreFound(t *testing.T) {
	for _, c := range []struct {
		from, to string
		up       bool
	}{
		{"mpsforge/validate", "mpsforge/validate/stages/series", false},
		{"mpsforge/validate/stages/runtime", "mpsforge/validate/judge/hosts", false},
		{"mpsforge/validate/stages/runtime", "fmt", false},
		{"mpsforge/validate/stages/runtime", "mpsforge/validate", true},
		{"mpsforge/validate/stages/bench", "mpsforge/validate/stages/python", true},
		{"mpsforge/validate/stages/runtime", "mpsforge/validate/stages/runtime/own", false},
		{"mpsforge/validate/judge/hosts", "mpsforge/validate/stages/runtime", true},
		{"mpsforge/fork", "mpsforge/validate/judge/crash", true},
		{"mpsforge/internal/run", "mpsforge/reports", true},
		{"mpsforge/native", "mpsforge/fork", true},
		{"mpsforge/elsewhere", "mpsforge/internal/run", true},
	} {
		if reason := goesUp(c.from, c.to); (reason != "") != c.up {
			t.Errorf("%s imports %s: %q", c.from, c.to, reason)
		}
	}
}
