//go:build cgo

package validate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/events"
	"mpsforge/native/slots"
	"mpsforge/patches"
	"mpsforge/reports"
)

// slotTestOptions share one cache between tests and runs: it is keyed by content.
func slotTestOptions(t *testing.T) stageOptions {
	t.Helper()
	return stageOptions{
		cache: testCache(), artifacts: t.TempDir(),
		header: testHeader(t), stamp: "test", seed: 1, quick: true, patience: 5 * time.Minute, sink: events.Discard,
	}
}

// testCache keeps compiled programs from run to run of the tests.
func testCache() string { return filepath.Join(os.TempDir(), "mpsforge-test-cache") }

// testHeader writes the slot allocator that the series adds, the same for all baselines, and returns its path.
func testHeader(t testing.TB) string {
	t.Helper()
	baselines, err := patches.Baselines(patches.Embedded())
	if err != nil {
		t.Fatal(err)
	}
	var header []byte
	for _, baseline := range baselines {
		series, err := patches.Load(patches.Embedded(), baseline)
		if err != nil {
			t.Fatal(err)
		}
		var content []byte
		for _, patch := range series.Patches {
			for _, file := range patch.Files {
				if file.Path() != slotHeader {
					continue
				}
				if content, err = file.Apply(content); err != nil {
					t.Fatal(err)
				}
			}
		}
		if header != nil && !bytes.Equal(header, content) {
			t.Fatalf("the slot allocator of %s differs from that of %s", baseline, baselines[0])
		}
		header = content
	}
	if len(header) == 0 {
		t.Fatalf("no series adds %s", slotHeader)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(slotHeader))
	if err := os.WriteFile(path, header, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func needPassed(t *testing.T, stage reports.Stage) {
	t.Helper()
	if stage.Verdict != reports.Passed {
		t.Errorf("verdict %q: %s", stage.Verdict, stage.Reason)
	}
	for _, check := range stage.Checks {
		if check.Verdict != reports.Passed {
			t.Errorf("%s: %s: %s\n%s", check.Name, check.Verdict, check.Detail, check.Output)
		}
	}
}

func TestReferencePasses(t *testing.T) {
	stage := reports.Stage{Name: "reference"}
	if err := checkReference(t.Context(), slotTestOptions(t), &stage); err != nil {
		t.Fatal(err)
	}
	needPassed(t, stage)
}

func TestConformancePassesAndProvesIdentity(t *testing.T) {
	stage := reports.Stage{Name: "conformance"}
	if err := checkConformance(t.Context(), slotTestOptions(t), &stage); err != nil {
		t.Fatal(err)
	}
	needPassed(t, stage)
	if len(stage.Facts) == 0 || stage.Facts[0].Name != "identity" || !strings.HasSuffix(stage.Facts[0].Value, " test") {
		t.Errorf("facts = %v, want the identity with the stamp first", stage.Facts)
	}
	if stage.Counts["interleavings"] < 10000 || stage.Counts["operations"] < 10000 {
		t.Errorf("counts = %v: too little was done", stage.Counts)
	}
	t.Logf("counts %v", stage.Counts)
	for _, check := range stage.Checks {
		if check.Name == "history: three words, share" && !strings.Contains(check.Detail, "at most 70 of 70") {
			t.Errorf("the histories do not fill the pool: %s", check.Detail)
		}
		t.Logf("%6.2f s  %s: %s", check.Seconds, check.Name, check.Detail)
	}
}

func TestBuildNamesTheFirstError(t *testing.T) {
	tools := findCompiler(t.Context(), slotTestOptions(t).cache)
	if tools.err != nil {
		t.Fatal(tools.err)
	}
	builder := subjectBuilder{t.TempDir(), tools}
	_, err := builder.build(t.Context(), target{program, []source{{"bad.cc", []byte("int main() {\n  return nonsense;\n}\n")}}, nil})
	if err == nil || !strings.Contains(err.Error(), "src/bad.cc:2:") || !strings.Contains(err.Error(), tools.path) {
		t.Errorf("err = %v, want file, line and command", err)
	}
	left, err := os.ReadDir(filepath.Join(builder.cache, "native"))
	if err != nil || len(left) != 0 {
		t.Errorf("a failed build left %v (%v)", left, err)
	}
}

func TestBuildIsKeptAndKeyedByContent(t *testing.T) {
	tools := findCompiler(t.Context(), slotTestOptions(t).cache)
	builder := subjectBuilder{t.TempDir(), tools}
	build := func(text string) string {
		path, err := builder.build(t.Context(), target{program, []source{{"main.cc", []byte(text)}}, nil})
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := build("int main() { return 0; }\n")
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	if again := build("int main() { return 0; }\n"); again != first {
		t.Errorf("same content at %s and %s", first, again)
	}
	if after, err := os.Stat(first); err != nil || after.ModTime() != before.ModTime() {
		t.Errorf("built twice (%v)", err)
	}
	if other := build("int main() { return 1; }\n"); other == first {
		t.Error("other content at the same place")
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	tools := findCompiler(t.Context(), slotTestOptions(t).cache)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	builder := subjectBuilder{t.TempDir(), tools}
	_, err := builder.build(ctx, target{program, []source{{"main.cc", []byte("int main() {}\n")}}, nil})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want context.Canceled", err)
	}
}

func TestCString(t *testing.T) {
	if got, want := cString("a\"b\\c\n?é"), `"a\042b\134c\012\077\303\251"`; got != want {
		t.Errorf("cString = %s, want %s", got, want)
	}
}

// record makes records for the model; times are the position and what follows.
func leased(start, end int64, thread, slot uint32, generation uint64) slots.Record {
	return slots.Record{Start: start, End: end, Thread: thread, Kind: slots.Acquire, Slot: slot, Generation: generation}
}

func returned(start, end int64, thread, slot uint32, generation uint64) slots.Record {
	return slots.Record{Start: start, End: end, Thread: thread, Kind: slots.Release, Slot: slot, Generation: generation, Accepted: true, Valid: true}
}

func TestModelJudgesHistories(t *testing.T) {
	shared := func(start, end int64, thread uint32, first bool) slots.Record {
		return slots.Record{Start: start, End: end, Thread: thread, Outcome: slots.Shared, FirstShare: first}
	}
	refused := returned(30, 40, 0, 0, 1)
	refused.Accepted = false
	for _, c := range []struct {
		name    string
		slots   uint32
		records []slots.Record
		legal   bool
	}{
		{"lowest free", 2, []slots.Record{leased(0, 10, 0, 0, 1), leased(11, 20, 0, 1, 1)}, true},
		{"not the lowest", 2, []slots.Record{leased(0, 10, 0, 1, 1)}, false},
		{"not the lowest, but at the same time", 2, []slots.Record{leased(0, 10, 0, 1, 1), leased(5, 15, 1, 0, 1)}, true},
		{"two leases on a slot", 1, []slots.Record{leased(0, 10, 0, 0, 1), leased(11, 20, 1, 0, 1)}, false},
		{"generation repeated", 1, []slots.Record{leased(0, 10, 0, 0, 1), returned(11, 20, 0, 0, 1), leased(21, 30, 0, 0, 1)}, false},
		{"shared while one was free", 2, []slots.Record{leased(0, 10, 0, 0, 1), shared(11, 20, 1, true)}, false},
		{"shared while full", 1, []slots.Record{leased(0, 10, 0, 0, 1), shared(11, 20, 1, true), shared(21, 30, 1, false)}, true},
		{"first share twice", 1, []slots.Record{leased(0, 10, 0, 0, 1), shared(11, 20, 1, true), shared(21, 30, 1, true)}, false},
		{"second return accepted", 1, []slots.Record{leased(0, 10, 0, 0, 1), returned(11, 20, 0, 0, 1), returned(30, 40, 0, 0, 1)}, false},
		{"second return refused", 1, []slots.Record{leased(0, 10, 0, 0, 1), returned(11, 20, 0, 0, 1), refused}, true},
		{"first return refused", 1, []slots.Record{leased(0, 10, 0, 0, 1), refused}, false},
	} {
		steps := make([]step, len(c.records))
		for i := range c.records {
			steps[i].Record = &c.records[i]
		}
		if illegal(slotState{slots: c.slots}, steps, time.Minute) == c.legal {
			t.Errorf("%s: legal = %v, want %v", c.name, !c.legal, c.legal)
		}
	}
}

// A fault after a long right beginning must come out as a few operations that are illegal by themselves.
func TestMinimiseFindsTheFault(t *testing.T) {
	var records []slots.Record
	now := int64(0)
	next := func() (int64, int64) { now += 10; return now, now + 5 }
	for generation := uint64(1); generation < 200; generation += 2 {
		start, end := next()
		records = append(records, leased(start, end, 0, 0, generation))
		start, end = next()
		records = append(records, slots.Record{Start: start, End: end, Thread: 1, Outcome: slots.Shared, FirstShare: generation == 1})
		start, end = next()
		records = append(records, returned(start, end, 0, 0, generation))
	}
	start, end := next()
	records = append(records, leased(start, end, 0, 0, 201))
	start, end = next()
	records = append(records, leased(start, end, 1, 0, 203)) // while the other holds it
	for generation := uint64(205); generation < 300; generation += 2 {
		start, end = next()
		records = append(records, leased(start, end, 0, 0, generation))
	}
	state, steps := minimise(t.Context(), slotState{slots: 1}, records)
	if len(steps) != 1 || steps[0].Generation != 203 || state.generation[0] != 201 || !state.shared {
		t.Errorf("minimised to %d operations from %v", len(steps), state.generation[0])
	}
}
