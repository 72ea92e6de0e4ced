package kept

import (
	"os"
	"slices"
	"testing"
)

// A run that was killed goes on: its results are there, half a line is not, and what comes after it is whole.
func TestResultsGoOn(t *testing.T) {
	folder := t.TempDir()
	first, results, err := Open[string](folder, "stamp", "7")
	if err != nil || len(results) != 0 {
		t.Fatal(results, err)
	}
	if err := first.Add("one"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.file.WriteString(`"tw`); err != nil {
		t.Fatal(err)
	}
	second, results, err := Open[string](folder, "stamp", "7")
	if err != nil || !slices.Equal(results, []string{"one"}) || !second.Begun.Equal(first.Begun) {
		t.Fatal(results, err, second, first)
	}
	if err := second.Add("three"); err != nil {
		t.Fatal(err)
	}
	third, results, err := Open[string](folder, "stamp", "7")
	if err != nil || !slices.Equal(results, []string{"one", "three"}) {
		t.Fatal(results, err)
	}
	if err := third.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(third.Path); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// A file that a kill left before its first line was whole starts again.
func TestHalfAFirstLineIsBegunAnew(t *testing.T) {
	folder := t.TempDir()
	first, _, err := Open[string](folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first.Path, []byte(`{"beg`), 0o644); err != nil {
		t.Fatal(err)
	}
	second, results, err := Open[string](folder)
	if err != nil || len(results) != 0 || second.Begun.IsZero() {
		t.Error(results, err)
	}
}
