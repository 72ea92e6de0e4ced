// Package stagetest holds what the tests of several stages share.
package validate

import (
	"bytes"
	"encoding/json"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
	"mpsforge/reports"
	"os"
	"path/filepath"
	"testing"
	"time"
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

func benchmarkProgram(b *testing.B, sources []source, args []string, result any) {
	b.Helper()
	tools := findCompiler(b.Context(), testCache())
	if tools.err != nil {
		b.Skipf("SKIP: %v", tools.err)
	}
	builder := subjectBuilder{testCache(), tools}
	path, err := builder.build(b.Context(), target{program, sources, nil})
	if err != nil {
		b.Fatal(err)
	}
	found, err := run.Command{Name: path, Args: args}.Run(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(found.Stdout, result); err != nil {
		b.Fatal(err)
	}
}
