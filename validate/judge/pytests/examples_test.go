package pytests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/stagetest"
)

var pythonBlock = regexp.MustCompile("(?ms)^```python\n(.*?)^```$")

// The examples of docs/threads.md do what the page says: each is a program of its own whose assertions hold on device mps.
func TestExamplesOfThreadsPage(t *testing.T) {
	page := require.One(os.ReadFile("../../../docs/threads.md"))(t)
	examples := pythonBlock.FindAllSubmatch(page, -1)
	if len(examples) == 0 {
		t.Fatal("the page has no examples")
	}
	built, _ := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	for i, example := range examples {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			if !strings.Contains(string(example[1]), "assert ") {
				t.Fatal("it asserts nothing")
			}
			file := filepath.Join(t.TempDir(), "example.py")
			require.NoError(t, os.WriteFile(file, example[1], 0o644))
			if found, err := (run.Command{Name: built.Python, Args: []string{file}, Env: run.Environment(metalEnvironment, nil)}).Run(t.Context()); err != nil {
				t.Errorf("%v\n%s", err, found.Stdout)
			}
		})
	}
}
