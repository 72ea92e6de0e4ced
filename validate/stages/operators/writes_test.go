package operators

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"mpsforge/internal/require"
)

// A job takes torchgen's word for what kernels write beside what schemas declare, and has that table by value: libtorch of a host build
// comes with a torchgen of its own.
func TestJobsKnowTheTableOfWrites(t *testing.T) {
	table := func(file string) []string {
		text := require.One(os.ReadFile(file))(t)
		found := regexp.MustCompile(`(?s)\n\+?MPS_WRITES = \{\n(.*?)\n\+?\}\n`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no table MPS_WRITES", file)
		}
		var names []string
		for _, quoted := range regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(found[1], -1) {
			if name := string(quoted[1]); name != "true" && name != "training" { // under which condition
				names = append(names, name)
			}
		}
		return names
	}
	known := table("python/job.py")
	patched, err := filepath.Glob("../../../patches/v*/op-guards.patch")
	if err != nil || len(patched) == 0 {
		t.Fatalf("patches with the table: %d, %v", len(patched), err)
	}
	for _, file := range patched {
		if names := table(file); !slices.Equal(names, known) {
			t.Errorf("%s has %q, job.py has %q", file, names, known)
		}
	}
}
