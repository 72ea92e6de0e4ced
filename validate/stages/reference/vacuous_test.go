//go:build cgo

package reference

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/cxx"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/native/script"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/stagetest"
)

// orderingCalls are the verbs that order what follows them after something else. The calls that they wait for (post, signal,
// event.record) are no such calls: without them nothing goes on.
var orderingCalls = []string{
	"wait", "completed", "scheduled", "attain", "stop", "barrier", "await", "synchronize", "synchronize_device", "event.wait", "event.synchronize",
}

// removal is a program without one of its ordering calls.
type removal struct{ call, text string }

// withoutOrdering has a program for each ordering call, with an empty line in its place; and one for the join of the threads,
// with a further thread for what came after it.
func withoutOrdering(text string) []removal {
	lines := strings.Split(text, "\n")
	var all []removal
	for i, line := range lines {
		words := strings.Fields(line)
		without := slices.Clone(lines)
		switch {
		case len(words) == 1 && words[0] == "end":
			without[i] = "thread after_the_join"
		case len(words) > 0 && slices.Contains(orderingCalls, words[0]):
			without[i] = ""
		default:
			continue
		}
		all = append(all, removal{line, strings.Join(without, "\n")})
	}
	return all
}

// effort is the ways in which a program without one of its calls is run.
type effort struct {
	scheduled []way
	freely    way // of a program that runs freely only
}

// The long form does what the quick one does, too: a death later on takes all of a process's findings with it.
var (
	quick = effort{[]way{{"drawn", "1", "100", "0", "0", "3000"}, {"search", "1", "500", "1", "0", "3000"}}, way{"free", "1", "10", "0", "200", "3000"}}
	long  = effort{slices.Concat(quick.scheduled, []way{{"drawn", "1", "5000", "0", "0", "3000"}, {"search", "1", "50000", "2", "0", "3000"}}),
		way{"free", "1", "100", "0", "200", "3000"}}
)

// vacuous reports whether a clean program has ordering calls, and stays clean whichever of them is left out: then it does not
// show that any of them orders. The runs are processes, as one may die of a handler that comes after the program's end; that
// is not a finding.
func vacuous(t *testing.T, engine string, program corpus.Program, effort effort) bool {
	t.Helper()
	ways := effort.scheduled
	if program.Freely {
		ways = []way{effort.freely}
	}
	removals := withoutOrdering(program.Text)
	path := filepath.Join(t.TempDir(), "program.txt")
	for _, removal := range removals {
		require.NoError(t, os.WriteFile(path, []byte(removal.text), 0o644))
		for _, way := range ways {
			output, err := run.Command{Name: engine, Args: append(slices.Clone(way), path)}.Run(t.Context())
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Logf("%s without %q: the process died, which shows nothing: %.200v", program.Name, removal.call, err)
				continue
			}
			var result struct {
				Error string `json:"error"`
				script.Result
			}
			if err := json.Unmarshal(output.Stdout, &result); err != nil || result.Error != "" {
				t.Fatalf("%s without %q: %v %s", program.Name, removal.call, err, result.Error)
			}
			if problem := corpus.Clean.Problem(&result.Result); problem != "" {
				t.Logf("%s notices that %q is gone: %.120s", program.Name, removal.call, problem)
				return false
			}
		}
	}
	return len(removals) > 0
}

// vacuousReasons reads testdata/vacuous.txt: by GROUP/FILE, why a program stays clean.
func vacuousReasons(t *testing.T) map[string]string {
	t.Helper()
	data := require.One(os.ReadFile("testdata/vacuous.txt"))(t)
	reasons := map[string]string{}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		file, reason, found := strings.Cut(line, ": ")
		if !found || reason == "" || reasons[file] != "" {
			t.Fatalf("testdata/vacuous.txt:%d: want GROUP/FILE: REASON, each file once", i+1)
		}
		reasons[file] = reason
	}
	return reasons
}

// soundEngine is the engine as it is, outside of this process.
func soundEngine(t *testing.T) string {
	t.Helper()
	sources := require.One(engineSources())(t)
	return stagetest.Program(t, cxx.Program, sources)
}

// mostVacuous is how many programs vacuous.txt may list. Lower it with each that is gone; it must not rise.
const mostVacuous = 20

// longOnly begins the reason of a program whose order is noticed in the long form.
const longOnly = "noticed in the long form only"

// A program that is clean with and without what orders it shows nothing about order. Those of today are listed, each with
// the reason; no other may come. MPSFORGE_VACUOUS=long looks at many more schedules, for
// some minutes.
func TestNoOrderingCallOfAProgramIsVacuous(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: each program is run once for each of its calls; go test -run '^TestNoOrderingCallOfAProgramIsVacuous$' " +
			"./validate/stages/reference")
	}
	engine, effort := soundEngine(t), quick
	inLong := os.Getenv("MPSFORGE_VACUOUS") == "long"
	if inLong {
		effort = long
	}
	reasons := vacuousReasons(t)
	if len(reasons) > mostVacuous {
		t.Errorf("testdata/vacuous.txt lists %d programs, at most %d may be there", len(reasons), mostVacuous)
	}
	for _, program := range programsOf(t) {
		if program.Expect != corpus.Clean {
			continue
		}
		file := program.Group + "/" + program.FileName()
		listed := reasons[file] != ""
		if listed && inLong && strings.HasPrefix(reasons[file], longOnly) {
			listed = false
		}
		delete(reasons, file)
		switch found := vacuous(t, engine, program, effort); {
		case found && !listed:
			t.Errorf("%s is vacuous: it is clean without any one of its ordering calls, too; make one of them matter", file)
		case !found && listed:
			t.Errorf("%s is not vacuous any more: take it off testdata/vacuous.txt and lower mostVacuous", file)
		}
	}
	for file := range reasons {
		t.Errorf("testdata/vacuous.txt names %s, which is not a clean program of the corpus", file)
	}
}

// The judge above distinguishes programs whose order matters from those whose order does not.
func TestVacuousProgramsAreTold(t *testing.T) {
	engine := soundEngine(t)
	const start = "queue q\nbuffer b 64\ncb c q\nwork c fill b 0 64 1\ncommit c\n"
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"the wait matters", start + "completed c\npeek b 0 64 = 1", false},
		{"one of two matters", start + "completed c\npeek b 0 64 = 1\ncompleted c", false},
		{"nothing reads what was waited for", start + "completed c", true},
		{"waited for twice", start + "completed c\ncompleted c\npeek b 0 64 = 1", true},
		{"nothing to remove", start, false},
		{"the join matters", "buffer b 64\nthread A\npoke b 0 64 1\nend\npoke b 0 64 2", false},
		{"the join does not matter", "buffer b 64\nthread A\npause\nend\npoke b 0 64 2", true},
	} {
		require.Equal(t, vacuous(t, engine, corpus.Program{Name: c.name, Text: c.text}, quick), c.want, c.name, "vacuous")
	}
	removals := withoutOrdering("thread A\nawait a # comment\nset t 1\nend\nwaits")
	if len(removals) != 2 || removals[0] != (removal{"await a # comment", "thread A\n\nset t 1\nend\nwaits"}) ||
		removals[1] != (removal{"end", "thread A\nawait a # comment\nset t 1\nthread after_the_join\nwaits"}) {
		t.Errorf("%q", removals)
	}
}

// reportsNothing is the fault that is the control of every program which is there to be found wrong and names no fault of its own.
var reportsNothing = fault{name: "engine: it reports nothing", file: "metal/findings.cc",
	old: "std::lock_guard<std::mutex> lock(mutex_);\n  if (kind ==",
	new: "if (kind <= UINT32_MAX) return;\n  std::lock_guard<std::mutex> lock(mutex_);\n  if (kind =="}

// The control of programs that are there to be found wrong: on an engine that reports nothing, none of them comes to what it must.
func TestProgramsMissTheirFindings(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: a faulty engine is compiled; go test -run '^TestProgramsMissTheirFindings$' ./validate/stages/reference")
	}
	sources := require.One(engineSources())(t)
	engine := stagetest.Program(t, cxx.Program, plantFault(t, sources, reportsNothing))
	missed := 0
	for _, program := range programsOf(t) {
		if program.Expect == corpus.Clean || len(program.Finds) > 0 {
			continue
		}
		how := way{"drawn", "1", "20", "0", "0", "3000"}
		if program.Freely {
			how = way{"free", "1", "3", "0", "200", "3000"}
		}
		stdout, err := runFault(t, engine, fault{way: how}, program)
		var result script.Result
		if err != nil || json.Unmarshal(stdout, &result) != nil || result.Runs == 0 {
			t.Errorf("%s: no result: %v: %.300s", program.Name, err, stdout)
		} else if program.Expect.Problem(&result) == "" {
			t.Errorf("%s comes to what it must, and the engine has reported nothing", program.Name)
		}
		missed++
	}
	if missed == 0 {
		t.Error("no program is there to be found wrong")
	}
}

// Each of the engine's programs has a control, which shows that it can fail: a planted fault that it names, an ordering call whose absence
// it notices, or the engine that reports nothing.
func TestEachMetalProgramHasAControl(t *testing.T) {
	reasons := vacuousReasons(t)
	for _, program := range programsOf(t) {
		if program.Group != "metal" && program.Group != "order" || len(program.Finds) > 0 || program.Expect != corpus.Clean {
			continue
		}
		if listed := reasons[program.Group+"/"+program.FileName()]; listed != "" || len(withoutOrdering(program.Text)) == 0 {
			t.Errorf("%s/%s: nothing shows that it can fail; plant a fault that it finds (faults_test.go)", program.Group, program.FileName())
		}
	}
}
