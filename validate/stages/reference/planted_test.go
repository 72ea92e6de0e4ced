//go:build cgo

package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/cxx"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/native/script"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/stagetest"
)

// fault is a bug planted into a source of the engine or the reference pool. The program of the corpus that must find it
// names it in its front matter.
type fault struct {
	name     string
	file     string
	old, new string   // old is in the file just once
	way      way      // how the program is run
	want     sighting // what it must find
}

// way is how a program is run: the mode, first seed, number of runs, deviations, longest delay and patience.
type way []string

var (
	drawn    = way{"drawn", "1", "1000", "0", "0", "3000"}
	searched = way{"search", "1", "20000", "1", "0", "3000"}
	freely   = way{"free", "1", "20", "0", "100", "3000"}
)

// sighting is what a fault must show itself by: the kind of a finding, or one of the kinds below.
type sighting struct {
	kind      script.Kind
	signature int
	text      string // a regular expression that the message matches; of a stuck run: its trace
}

// Kinds of sightings that are no findings.
const (
	unmet   script.Kind = "unmet expectation" // a value of the program is wrong
	stuck   script.Kind = "stuck run"         // by the scheduler, which knows that no thread can go on: never by a time-out
	missing script.Kind = "missing finding"   // the program is there to be found wrong, and is not in every run
)

// judge says whether a run of a program on the engine with a fault shows what is expected. A process that dies, does not
// end in time or answers something else shows nothing, whatever it may have been up to: the error says what came instead.
func (s sighting) judge(program corpus.Expectation, stdout []byte, err error) error {
	if err != nil {
		return fmt.Errorf("not found as expected: no %s, but the process failed: %w", s, err)
	}
	var result struct {
		Error string `json:"error"`
		script.Result
	}
	if err := json.Unmarshal(stdout, &result); err != nil {
		return fmt.Errorf("not found as expected: no %s, but no result: %w: %.200s", s, err, stdout)
	}
	if result.Error != "" {
		return fmt.Errorf("not found as expected: no %s, but no run: %s", s, result.Error)
	}
	problem := program.Problem(&result.Result)
	if problem == "" {
		return fmt.Errorf("not found as expected: no %s: %d runs, nothing found", s, result.Runs)
	}
	if !s.in(&result.Result, problem) {
		return fmt.Errorf("not found as expected: no %s, but %s", s, problem)
	}
	return nil
}

func (s sighting) in(result *script.Result, problem string) bool {
	text := regexp.MustCompile(s.text)
	switch s.kind {
	case missing:
		return text.MatchString(problem)
	case stuck: // with a trace: what ran freely has none
		return result.Stuck && slices.ContainsFunc(result.Failures, func(f script.Failure) bool {
			trace, traced := strings.CutPrefix(f.Text, "the run is stuck: every thread waits: ")
			return traced && text.MatchString(trace)
		})
	case unmet:
		return !result.Stuck && slices.ContainsFunc(result.Failures, func(f script.Failure) bool { return text.MatchString(f.Text) })
	default:
		return !result.Stuck && slices.ContainsFunc(result.Findings, func(f script.Finding) bool {
			return f.Kind == s.kind && f.Signature == s.signature && text.MatchString(f.Message)
		})
	}
}

func (s sighting) String() string {
	text := string(s.kind)
	if s.signature != 0 {
		text += fmt.Sprintf(" with signature %d", s.signature)
	}
	if s.text != "" {
		text += fmt.Sprintf(" like %q", s.text)
	}
	return text
}

// programOf is the program that names the fault.
func programOf(t *testing.T, fault string) corpus.Program {
	t.Helper()
	for _, program := range programsOf(t) {
		if slices.Contains(program.Finds, fault) {
			return program
		}
	}
	t.Fatalf("no program of the corpus names the fault %q", fault)
	return corpus.Program{}
}

// What a program says that it finds is planted, and nothing is named twice.
func TestCorpusNamesThePlantedFaults(t *testing.T) {
	named := map[string]int{}
	for _, program := range programsOf(t) {
		for _, found := range program.Finds {
			named[found]++
			if !slices.ContainsFunc(faults, func(f fault) bool { return f.name == found }) {
				t.Errorf("%s: %s finds %q, which nobody plants", program.Group, program.Name, found)
			}
		}
	}
	for _, fault := range faults {
		require.Equal(t, named[fault.name], 1, fault.name, "is found by", "programs")
	}
}

// The rules of the guard protocol name the faults that prove them: all of them, and no others.
func TestGuardRulesNameTheirFaults(t *testing.T) {
	page := require.One(os.ReadFile("../../../docs/dev/spec/guard.md"))(t)
	var cited []string
	for _, found := range regexp.MustCompile("`((?:guard|memory): [^`]+)`").FindAllSubmatch(page, -1) {
		cited = append(cited, string(found[1]))
	}
	for _, name := range cited {
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.name == name }) {
			t.Errorf("docs/dev/spec/guard.md names the fault %q, which nobody plants", name)
		}
	}
	for _, fault := range faults {
		if strings.HasPrefix(fault.name, "guard: ") && !slices.Contains(cited, fault.name) {
			t.Errorf("no rule of docs/dev/spec/guard.md names the fault %q", fault.name)
		}
	}
}

// runFault runs the program that is there for the fault on some build of the engine.
func runFault(t *testing.T, engine string, fault fault, program corpus.Program) ([]byte, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.txt")
	require.NoError(t, os.WriteFile(path, []byte(program.Text), 0o644))
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	way := fault.way
	if way == nil {
		way = drawn
	}
	result, err := run.Command{Name: engine, Args: append(slices.Clone(way), path)}.Run(limited)
	if late := limited.Err(); late != nil { // the engine itself ends what is stuck
		err = fmt.Errorf("no end: %w", late)
	}
	return result.Stdout, err
}

// Each fault must be found by the program named after what is broken, by the finding that is expected: a judge that
// accepts them proves nothing, and one that dies of them proves no more. Beside each is its control: on the engine
// without a fault the same program, run the same way, comes to what it must.
func TestPlantedFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: each faulty engine is compiled and run; go test -run '^TestPlantedFaultsAreFound$' ./validate/stages/reference")
	}
	sources := require.One(engineSources())(t)
	sound := stagetest.Program(t, cxx.Program, sources)
	step := 1
	if os.Getenv("MPSFORGE_LONG_TESTS") == "" {
		t.Log("SKIP two of three faults of TestPlantedFaultsAreFound: an engine is compiled for each; asked for by MPSFORGE_LONG_TESTS=1, as make unit does")
		step = 3
	}
	for i := 0; i < len(faults); i += step {
		fault := faults[i]
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			program := programOf(t, fault.name)
			stdout, err := runFault(t, stagetest.Program(t, cxx.Program, plantFault(t, sources, fault)), fault, program)
			if err := fault.want.judge(program.Expect, stdout, err); err != nil {
				t.Errorf("%q: %v", program.Name, err)
			}
			stdout, err = runFault(t, sound, fault, program)
			var result script.Result
			if err != nil || json.Unmarshal(stdout, &result) != nil || result.Runs == 0 {
				t.Fatalf("control without the fault: %v: %.300s", err, stdout)
			}
			require.Equal(t, program.Expect.Problem(&result), "", "control without the fault")
		})
	}
}

// What is not the expected finding must not count as one: this is what keeps the test above from passing on any failure.
func TestPlantedFaultIsNotFoundByAnotherFailure(t *testing.T) {
	died := func(command string) error { // as the engine would, with a trap or a crash planted into it
		_, err := run.Command{Name: "sh", Args: []string{"-c", command}}.Run(t.Context())
		if err == nil {
			t.Fatalf("%q lives", command)
		}
		return err
	}
	const race = `{"runs":3,"runs_with":{"race":3},"findings":[{"kind":"race","message":"race on bytes 0 to 64 of buffer b: nothing orders"}]}`
	const violation = `{"runs":3,"runs_with":{"violation":3},"findings":[{"kind":"violation","signature":3,"message":"commit an already committed ` +
		`command buffer"}]}`
	const value = `{"runs":3,"failures":[{"text":"main, line 4: is 5, not 6"}]}`
	const waits = `{"stuck":true,"failures":[{"text":"the run is stuck: every thread waits: 0: lock"}]}`
	const late = `{"stuck":true,"failures":[{"text":"the run is stuck: every thread waits"}]}`
	const none = `{"runs":3}`
	racy := sighting{kind: script.Race, text: "buffer b:"}
	for _, c := range []struct {
		name    string
		want    sighting
		program corpus.Expectation
		stdout  string
		err     error
		problem string // empty: found
	}{
		{"the race", racy, corpus.Clean, race, nil, ""},
		{"a race on another buffer", sighting{kind: script.Race, text: "buffer d:"}, corpus.Clean, race, nil,
			"but unexpected race: race on bytes 0 to 64 of buffer b"},
		{"a violation for a race", racy, corpus.Clean, violation, nil, "but unexpected violation"},
		{"the violation", sighting{kind: script.Violation, signature: 3, text: "already committed"}, corpus.Clean, violation, nil, ""},
		{"a violation of another signature", sighting{kind: script.Violation, signature: 4, text: "already committed"}, corpus.Clean, violation, nil,
			"but unexpected violation"},
		{"the wrong value", sighting{kind: unmet, text: "line 4: is 5, not 6"}, corpus.Clean, value, nil, ""},
		{"a wrong value elsewhere", sighting{kind: unmet, text: "line 9: "}, corpus.Clean, value, nil, "but main, line 4: is 5, not 6"},
		{"a wrong value for a race", racy, corpus.Clean, value, nil, "but main, line 4"},
		{"the scheduler's word that no thread can go on", sighting{kind: stuck}, corpus.Clean, waits, nil, ""},
		{"another trace", sighting{kind: stuck, text: "1: lock"}, corpus.Clean, waits, nil, "but the run is stuck"},
		{"a time-out for it", sighting{kind: stuck}, corpus.Clean, late, nil, "but the run is stuck"},
		{"a hang for a race", racy, corpus.Clean, late, nil, "but the run is stuck"},
		{"nothing found", racy, corpus.Clean, none, nil, "3 runs, nothing found"},
		{"the missing finding", sighting{kind: missing, text: "^a violation in 0 of 3 runs only$"}, violation3, none, nil, ""},
		{"another finding for a missing one", sighting{kind: missing, text: "^a violation in 0 of 3 runs only$"}, violation3, race, nil, "but unexpected race"},
		{"a trap", racy, corpus.Clean, "", died("kill -TRAP $$"), "but the process failed: sh"},
		{"a trap after the race was printed", racy, corpus.Clean, race, died("kill -TRAP $$"), "but the process failed: sh"},
		{"a trap where the program is stuck", sighting{kind: stuck}, corpus.Clean, waits, died("kill -TRAP $$"), "but the process failed: sh"},
		{"a trap where a finding is missing", sighting{kind: missing, text: ""}, violation3, "", died("kill -TRAP $$"), "but the process failed: sh"},
		{"an exit code", racy, corpus.Clean, race, died("exit 2"), "but the process failed: sh"},
		{"half of a result", racy, corpus.Clean, race[:40], nil, "but no result"},
		{"a text that is not a program", racy, corpus.Clean, `{"error":"line 1: no verb x"}`, nil, "but no run: line 1: no verb x"},
	} {
		err := c.want.judge(c.program, []byte(c.stdout), c.err)
		switch {
		case c.problem == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case err == nil || !strings.HasPrefix(err.Error(), "not found as expected: no "+string(c.want.kind)) || !strings.Contains(err.Error(), c.problem):
			t.Errorf("%s: %v, want not found as expected: %s", c.name, err, c.problem)
		}
	}
}

// violation3 is a program that must be found to break a rule of Metal.
var violation3 = corpus.Expectation{Kind: script.Violation, Signature: 3, Text: "already committed"}

// plantFault returns the engine's sources with the fault in them.
func plantFault(t *testing.T, sources []cxx.Source, fault fault) []cxx.Source {
	t.Helper()
	planted := slices.Clone(sources)
	for i, file := range planted {
		if file.Path != fault.file {
			continue
		}
		if n := bytes.Count(file.Data, []byte(fault.old)); n != 1 {
			t.Fatalf("%s has %d places like %q", fault.file, n, fault.old)
		}
		planted[i].Data = []byte(strings.Replace(string(file.Data), fault.old, fault.new, 1))
		return planted
	}
	t.Fatalf("no source %s", fault.file)
	return nil
}
