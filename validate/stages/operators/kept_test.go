package operators

import (
	"os"
	"path/filepath"
	"testing"

	"mpsforge/validate/judge/kept"
)

// A long form that was killed goes on: what it had ended is there, half a line is not.
func TestKeptResultsGoOn(t *testing.T) {
	run := &kept.Run{Cache: t.TempDir(), Stage: "operators"}
	jobs := (plan{seed: 7}).basics(someEntries)
	first, err := openKept(run, "stamp", 7)
	if err != nil {
		t.Fatal(err)
	}
	done := outcome{Job: jobs[1], Result: result{Status: wrongValues, Text: "planted"}}
	done.Job.ID = 5
	if err := first.Add(done); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(first.Folder, "whole.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"job": {"oper`); err != nil {
		t.Fatal(err)
	}
	second, err := openKept(run, "stamp", 7)
	if err != nil {
		t.Fatal(err)
	}
	ends, left := second.split(jobs)
	if len(ends) != 1 || ends[0].Result.Text != "planted" || len(left) != len(jobs)-1 || left[1].cell != jobs[2].cell {
		t.Errorf("%+v, %d left", ends, len(left))
	}
	if err := second.Add(outcome{Job: jobs[0]}); err != nil {
		t.Fatal(err)
	}
	third, err := openKept(run, "stamp", 7)
	if err != nil {
		t.Fatal(err)
	}
	if ends, _ := third.split(jobs); len(ends) != 2 {
		t.Errorf("%d ends", len(ends))
	}
	if err := run.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(third.Folder); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

// Another seed, or another library, has results of its own.
func TestKeptResultsBelongToTheirRun(t *testing.T) {
	run := &kept.Run{Cache: t.TempDir(), Stage: "operators"}
	one, err := openKept(run, "stamp", 7)
	if err != nil {
		t.Fatal(err)
	}
	other, err := openKept(run, "stamp", 8)
	if err != nil {
		t.Fatal(err)
	}
	if one.Folder == other.Folder {
		t.Errorf("%s", one.Folder)
	}
}

// A line that was changed is an error that names it: results of nobody knows what are not used.
func TestKeptResultsThatAreNoneAreRefused(t *testing.T) {
	run := &kept.Run{Cache: t.TempDir(), Stage: "operators"}
	one, err := openKept(run, "stamp")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(one.Folder, "whole.jsonl"), []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openKept(run, "stamp"); err == nil {
		t.Error("no error")
	}
}
