// Package stagetest holds what the tests of several stages share: options, a header, a host build of the real tree. Only test
// files import it.
package stagetest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mpsforge/internal/cxx"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/allocator"
	"mpsforge/validate/stage"
)

// Options share one cache between tests and runs: it is keyed by content.
func Options(t *testing.T) stage.CheckOptions {
	t.Helper()
	return stage.CheckOptions{
		Cache: Cache(), Artifacts: t.TempDir(),
		Header: Header(t), Stamp: "test", Seed: 1, Quick: true, Patience: 5 * time.Minute, Sink: events.Discard,
	}
}

// Progress is a sink that looks at how far a stage says that it is.
type Progress struct {
	mutex sync.Mutex
	most  events.StepProgress
}

func (p *Progress) Emit(event events.Event) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if e, ok := event.(events.StepProgress); ok && e.Done > p.most.Done {
		p.most = e
	}
}

// NeedTotal demands that the stage has done as much as it had announced.
func (p *Progress) NeedTotal(t *testing.T) {
	t.Helper()
	if p.most.Done != p.most.Total || p.most.Total == 0 {
		t.Errorf("done %d of %d", p.most.Done, p.most.Total)
	}
}

// Cache keeps compiled programs from run to run of the tests.
func Cache() string { return filepath.Join(os.TempDir(), "mpsforge-test-cache") }

// Header writes the slot allocator that the series adds, the same for all baselines, and returns its path.
func Header(t testing.TB) string {
	t.Helper()
	baselines := require.One(patches.Baselines(patches.Embedded()))(t)
	var header []byte
	for _, baseline := range baselines {
		series := require.One(patches.Load(patches.Embedded(), baseline))(t)
		var content []byte
		for _, patch := range series.Patches {
			for _, file := range patch.Files {
				if file.Path() != allocator.Header {
					continue
				}
				content = require.One(file.Apply(content))(t)
			}
		}
		if header != nil && !bytes.Equal(header, content) {
			t.Fatalf("the slot allocator of %s differs from that of %s", baseline, baselines[0])
		}
		header = content
	}
	if len(header) == 0 {
		t.Fatalf("no series adds %s", allocator.Header)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(allocator.Header))
	require.NoError(t, os.WriteFile(path, header, 0o644))
	return path
}

func NeedPassed(t *testing.T, report reports.Stage) {
	t.Helper()
	if report.Verdict != reports.Passed {
		t.Errorf("verdict %q: %s", report.Verdict, report.Reason)
	}
	for _, check := range report.Checks {
		if check.Verdict != reports.Passed {
			t.Errorf("%s: %s: %s\n%s", check.Name, check.Verdict, check.Detail, check.Output)
		}
	}
}

// Children runs a file of Python tests below testdata/children of a stage against the stage's Python programs. MPSFORGE_FLOOD
// has their processes write so many bytes where they write many.
func Children(t *testing.T, module string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	command := exec.CommandContext(t.Context(), python, "-B", "-m", "unittest", module)
	command.Dir = filepath.Join("testdata", "children")
	command.Env = append(os.Environ(), "PYTHONPATH=../../python:../../../../judge/pytests/python")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// Program compiles a program and gives its path. Without a compiler the test is skipped.
func Program(t testing.TB, flavour cxx.Flavour, sources []cxx.Source) string {
	t.Helper()
	tools := cxx.Find(t.Context(), Cache())
	if tools.Err != nil {
		t.Skipf("SKIP %s: %v", t.Name(), tools.Err)
	}
	builder := cxx.Builder{Cache: Cache(), Compiler: tools}
	return require.One(builder.Build(t.Context(), cxx.Target{Flavour: flavour, Sources: sources}))(t)
}

func Benchmark(b *testing.B, sources []cxx.Source, args []string, result any) {
	b.Helper()
	found := require.One(run.Command{Name: Program(b, cxx.Program, sources), Args: args}.Run(b.Context()))(b)
	require.NoError(b, json.Unmarshal(found.Stdout, result))
}
