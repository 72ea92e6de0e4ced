package operators

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

var someEntries = []entry{
	{Name: "add", DTypes: []string{"bool", "float32", "float64", "int64"}, Out: true, InPlace: true, Backward: true},
	{Name: "bitwise_not", DTypes: []string{"bool", "int64"}, Out: true},
	{Name: "linspace", DTypes: []string{"complex128", "float64"}},
	{Name: "view", DTypes: []string{"float32"}, Backward: true},
}

// The long form covers each entry and possible type in the basic form by 4 threads.
func TestEveryEntryAndTypeRunsInTheBasicForm(t *testing.T) {
	var have []string
	for _, j := range (plan{seed: 1}).basics(someEntries) {
		have = append(have, j.cell.String())
	}
	want := []string{
		"add, bool, basic, 4 threads, seed 1", "add, float32, basic, 4 threads, seed 1", "add, int64, basic, 4 threads, seed 1",
		"bitwise_not, bool, basic, 4 threads, seed 1", "bitwise_not, int64, basic, 4 threads, seed 1", "view, float32, basic, 4 threads, seed 1",
	}
	require.Equal(t, have, want)
}

// The long form covers each form that an entry has, in float32 where it has that, and one pair and one group.
func TestEveryEntryRunsInEveryForm(t *testing.T) {
	have := map[string][]string{}
	for _, j := range (plan{seed: 1}).others(someEntries, map[string]string{"add": "view", "bitwise_not": "add"}) {
		have[j.Operator+" "+j.DType] = append(have[j.Operator+" "+j.DType], j.Form)
		if j.Threads < 2 || j.Threads > 16 {
			t.Errorf("%s", j.cell)
		}
	}
	for operator, single := range map[string][]string{"add float32": forms, "bitwise_not int64": {"out", "shared", "made-elsewhere", "handed-on",
		"strided", "first-work", "streams"}} {
		all := have[operator]
		if len(all) != len(single)+2 || !slices.Equal(all[:len(single)], single) || !strings.Contains(all[len(single)], "+") ||
			!strings.HasPrefix(all[len(single)+1], groupPrefix) {
			t.Errorf("%s: %q", operator, all)
		}
	}
	require.Equal(t, len(have), 2, "entries that do not run have forms", have)
}

// ThreadSanitizer runs each entry that has a possible type once.
func TestEveryEntryRunsOnceUnderThreadSanitizer(t *testing.T) {
	var have []string
	for _, j := range (plan{seed: 1}).sanitized(someEntries) {
		have = append(have, j.cell.String())
	}
	want := []string{"add, float32, basic, 4 threads, seed 1", "bitwise_not, int64, basic, 4 threads, seed 1", "view, float32, basic, 4 threads, seed 1"}
	require.Equal(t, have, want)
}

// The short form has each entry once, and what it draws depends on the seed and the entry alone.
func TestSampleIsDrawnBySeed(t *testing.T) {
	one, again, other := (plan{seed: 1}).sample(someEntries), (plan{seed: 1}).sample(slices.Clone(someEntries)[1:]), (plan{seed: 2}).sample(someEntries)
	if len(one) != 3 || len(again) != 2 {
		t.Fatalf("%d, %d jobs", len(one), len(again))
	}
	if one[1].cell != again[0].cell {
		t.Errorf("%s, and without the first entry %s", one[1].cell, again[0].cell)
	}
	if one[0].cell.Form == other[0].cell.Form && one[1].cell.Form == other[1].cell.Form && one[2].cell.Form == other[2].cell.Form {
		t.Error("another seed draws the same forms")
	}
}

// Over many seeds every thread count from 2 to 16 is drawn for a form.
func TestThreadCountsRotate(t *testing.T) {
	seen := map[int]bool{}
	for seed := range uint64(200) {
		seen[plan{seed: seed}.threads("add", "shared")] = true
	}
	if len(seen) != 15 || seen[1] || seen[17] {
		t.Errorf("%v", seen)
	}
}

// Every form and pair that is planned is one that the Python side knows, and others are refused by both.
func TestFormsAreThoseOfPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	all := append([]string{"basic", "group:add"}, forms...)
	for _, pair := range pairs() {
		all = append(all, pair[0]+"+"+pair[1])
	}
	program := "import sys, forms\nfor name in sys.argv[1:]: forms.parse(name)\nassert set(forms.FORMS) == {n for n in sys.argv[1:] if '+' not in " +
		"n and ':' not in n}"
	command := exec.Command(python, append([]string{"-c", program}, all...)...)
	command.Dir = "python"
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	for _, bad := range []string{"nonsense", "backward+out", "shared+made-elsewhere"} {
		command := exec.Command(python, "-B", "-c", "import sys, forms; forms.parse(sys.argv[1])", bad)
		command.Dir = "python"
		if output, err := command.CombinedOutput(); err == nil || !strings.Contains(string(output), "ValueError: ") {
			t.Errorf("%s: %v\n%s", bad, err, output)
		}
	}
}
