package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
)

// What a process has counted is there although it has crashed, and what a second one counts is added to it.
func TestCountsOfProcessesThatCrash(t *testing.T) {
	root, cache := hosttest.Root(t)
	dir := t.TempDir()
	source := `#include <cstdlib>
int twice(int x) {
  if (x > 1) {
    return 2 * x;
  }
  return x;
}
void after(int x) {
  {
    if (x > 1)
      return;
  }
  twice(x);
}
int main(int count, char**) {
  int result = twice(count);
  after(count);
  if (result > 0)
    std::abort();
  return result;
}
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "program.cc"), []byte(source), 0o644))
	built := require.One(host.MakeCounting(t.Context(), root, cache, dir, "program.cc"))(t)
	for _, args := range [][]string{nil, {"more"}} {
		if _, err := (run.Command{Name: built.Library, Args: args}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "aborted") {
			t.Fatalf("the program has not crashed: %v", err)
		}
	}
	counts := require.One(built.Counts(t.Context(), root))(t)
	for line, want := range map[int]uint64{3: 3, 4: 1, 6: 2, 10: 2, 11: 1, 13: 1, 19: 2, 20: 0} {
		if got, code := counts["program.cc"][line]; !code || got != want {
			t.Errorf("line %d has run %d times (code: %v), want %d", line, got, code, want)
		}
	}
	require.NoError(t, built.ForgetCounts())
	if _, err := built.Counts(t.Context(), root); err == nil {
		t.Error("there are counts although none has run since")
	}
}
