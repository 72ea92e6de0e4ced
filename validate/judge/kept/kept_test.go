package kept

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mpsforge/internal/require"
)

func open(t *testing.T, r *Run, want ...string) *File[string] {
	t.Helper()
	file, results, err := Open[string](r, "stamp", "7")
	if err != nil || !slices.Equal(results, want) {
		t.Fatalf("%q, %v, want %q", results, err, want)
	}
	return file
}

func add(t *testing.T, file *File[string], results ...string) {
	t.Helper()
	for _, result := range results {
		require.NoError(t, file.Add(result))
	}
}

// A run that was killed goes on: its results are there, half a line is not, and what comes after it is whole. At its end they go.
func TestResultsGoOn(t *testing.T) {
	cache := t.TempDir()
	first := open(t, &Run{Cache: cache, Stage: "operators"})
	add(t, first, "one")
	require.One(first.file.WriteString(`"tw`))(t)
	second := open(t, &Run{Cache: cache, Stage: "operators"}, "one")
	if !second.Begun.Equal(first.Begun) {
		t.Errorf("begun at %s, want %s", second.Begun, first.Begun)
	}
	add(t, second, "three")
	last := &Run{Cache: cache, Stage: "operators"}
	open(t, last, "one", "three")
	require.NoError(t, last.Finish())
	open(t, &Run{Cache: cache, Stage: "operators"})
}

// What several goroutines add at once are whole lines.
func TestResultsOfSeveralGoroutinesAreWhole(t *testing.T) {
	cache := t.TempDir()
	f := open(t, &Run{Cache: cache, Stage: "runtime"})
	want := make([]string, 64)
	var wait sync.WaitGroup
	for i := range want {
		want[i] = strings.Repeat(string(rune('0'+i)), 10000)
		wait.Go(func() {
			if err := f.Add(want[i]); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	_, all, err := Open[string](&Run{Cache: cache, Stage: "runtime"}, "stamp", "7")
	if slices.Sort(all); err != nil || !slices.Equal(all, want) {
		t.Errorf("%d results, error %v", len(all), err)
	}
}

// A file that a kill left before its first line was whole starts again.
func TestHalfAFirstLineIsBegunAnew(t *testing.T) {
	run := &Run{Cache: t.TempDir(), Stage: "operators"}
	first := open(t, run)
	require.NoError(t, os.WriteFile(first.file.Name(), []byte(`{"beg`), 0o644))
	if second := open(t, run); second.Begun.IsZero() {
		t.Error("it does not say when it was begun")
	}
}

// What a shard has kept serves the whole run and other shards, each of which writes a file of its own. The end of a shard takes its own
// results away, the end of the whole run all.
func TestShardsAndTheWholeShareResults(t *testing.T) {
	cache := t.TempDir()
	one, two, whole := &Run{Cache: cache, Stage: "operators", Shard: "1-of-2"}, &Run{Cache: cache, Stage: "operators", Shard: "2-of-2"},
		&Run{Cache: cache, Stage: "operators"}
	first := open(t, one)
	add(t, first, "one")
	add(t, open(t, two, "one"), "two")
	add(t, first, "three") // at the same time
	add(t, open(t, whole, "one", "three", "two"), "four")
	require.NoError(t, one.Finish())
	open(t, &Run{Cache: cache, Stage: "operators", Shard: "1-of-2"}, "two", "four")
	require.NoError(t, whole.Finish())
	if err := two.Finish(); err != nil {
		t.Errorf("a shard whose results the whole run has taken away: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "operators", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// A run says how much it keeps, once it keeps something, and when it begins to.
func TestRunSaysWhatIsKept(t *testing.T) {
	begun := 0
	run := &Run{Cache: t.TempDir(), Stage: "operators", Begin: func() { begun++ }}
	run.Reached("jobs", 3, 70)
	if run.String() != "" || begun != 0 {
		t.Errorf("nothing is kept: %q, %d", run, begun)
	}
	open(t, run)
	if _, _, err := Open[string](run, "other"); err != nil {
		t.Fatal(err)
	}
	if run.String() != "operators 3 of 70 jobs planned so far" || begun != 1 {
		t.Errorf("%q, %d", run, begun)
	}
}

// Whatever is no result is an error, and says which file to delete.
func TestAnotherFileIsRefused(t *testing.T) {
	run := &Run{Cache: t.TempDir(), Stage: "operators"}
	path := open(t, run).file.Name()
	require.NoError(t, os.WriteFile(path, []byte("{\"begun\": \"2026-01-02T03:04:05Z\"}\n7\n"), 0o644))
	_, _, err := Open[string](run, "stamp", "7")
	require.Says(t, err, path+": line 2: ")
}
