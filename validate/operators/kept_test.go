package operators

import (
	"os"
	"testing"
)

// A long form that was killed goes on: what it had ended is there, half a line is not.
func TestKeptResultsGoOn(t *testing.T) {
	cache := t.TempDir()
	jobs := (plan{seed: 7}).basics(someEntries)
	first, err := openKept(cache, "stamp", 7)
	if err != nil {
		t.Fatal(err)
	}
	done := outcome{Job: jobs[1], Result: result{Status: wrongValues, Text: "planted"}}
	done.Job.ID = 5
	if err := first.add(done); err != nil {
		t.Fatal(err)
	}
	if _, err := first.file.WriteString(`{"job": {"oper`); err != nil {
		t.Fatal(err)
	}
	second, err := openKept(cache, "stamp", 7)
	if err != nil {
		t.Fatal(err)
	}
	ends, left := second.split(jobs)
	if len(ends) != 1 || ends[0].Result.Text != "planted" || len(left) != len(jobs)-1 || left[1].cell != jobs[2].cell {
		t.Errorf("%+v, %d left", ends, len(left))
	}
	if err := second.add(outcome{Job: jobs[0]}); err != nil {
		t.Fatal(err)
	}
	third, err := openKept(cache, "stamp", 7)
	if err != nil {
		t.Fatal(err)
	}
	if ends, _ := third.split(jobs); len(ends) != 2 {
		t.Errorf("%d ends", len(ends))
	}
	if err := third.finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(third.path); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

// Another seed, or another library, has results of its own.
func TestKeptResultsBelongToTheirRun(t *testing.T) {
	cache := t.TempDir()
	one, err := openKept(cache, "stamp", 7)
	if err != nil {
		t.Fatal(err)
	}
	other, err := openKept(cache, "stamp", 8)
	if err != nil {
		t.Fatal(err)
	}
	if one.path == other.path {
		t.Errorf("%s", one.path)
	}
}

// A line that was changed is an error that names it: results of nobody knows what are not used.
func TestKeptResultsThatAreNoneAreRefused(t *testing.T) {
	cache := t.TempDir()
	one, err := openKept(cache, "stamp")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(one.path, []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openKept(cache, "stamp"); err == nil {
		t.Error("no error")
	}
}
