//go:build cgo

package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/mac"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/schemas/schematest"
	"mpsforge/native"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/stage"
)

// The tests' program is the child, too, as mpsforge is.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && slices.Equal(os.Args[1:3], ChildCommand) {
		if err := Child(context.Background(), script.Backend(os.Args[3]), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program makes one of a text.
func program(t *testing.T, expect, text string) corpus.Program {
	t.Helper()
	want := require.One(corpus.ParseExpectation(expect))(t)
	return corpus.Program{Group: corpus.Metal, Name: t.Name(), Expect: want, Text: text}
}

// observed runs the program over the software Metal in a child process.
func observed(t *testing.T, p corpus.Program) Program {
	t.Helper()
	found, identity, err := observe(t.Context(), script.Software, p)
	require.NoError(t, err)
	if found.Outcome == Ended && identity != "software Metal" {
		t.Errorf("%q answered", identity)
	}
	return found
}

// Without a device the stage tries its driver over the software Metal, and has no verdict.
func TestStageWithoutADevice(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: every program of the device is run; go test -run '^TestStageWithoutADevice$' ./validate/stages/device")
	}
	if _, err := script.Identity(script.Apple); err == nil {
		t.Skip("SKIP stage device without a device: this system has one")
	}
	cache := t.TempDir() // nothing is downloaded into it: the link is skipped
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	env := &stage.Env{Options: stage.Options{Stages: []string{"device"}, Cache: cache, Artifacts: filepath.Join(cache, "artifacts"), Seed: 7},
		Sink: events.Discard, Identity: &reports.Identity{}, Machine: &reports.Machine{}}
	report := reports.Stage{Name: "device"}
	reason, skipped := stage.SkipReason(runStage(t.Context(), env, &report))
	if !skipped || report.Verdict != "" || !strings.Contains(reason, "nothing was run on a device") || env.Machine.MetalRan {
		t.Fatalf("%q, verdict %q", reason, report.Verdict)
	}
	verdicts := map[string]reports.Verdict{}
	for _, check := range report.Checks {
		verdicts[check.Name] = check.Verdict
	}
	for name, want := range map[string]reports.Verdict{
		"metal: committed twice":                      reports.Passed,
		"metal: a fill on a compute encoder":          reports.NotRun, // any outcome will do
		"metal: a hang, and its end":                  reports.NotRun,
		"the Apple backend compiles and links":        reports.Skipped,
		"programs on a real Metal":                    reports.NotRun,
		"order: one queue orders its command buffers": reports.Passed,
	} {
		require.Equal(t, verdicts[name], want, name)
	}
	file := filepath.Join(env.Artifacts, "facts-software.json")
	text := require.One(os.ReadFile(file))(t)
	if err := schematest.Validate("device-facts", text); err != nil {
		t.Error(err)
	}
	facts, err := ReadFacts(file)
	if err != nil || facts.Backend != "software Metal" || len(facts.Programs) != len(report.Checks)-2 {
		t.Errorf("%d programs of %q: %v", len(facts.Programs), facts.Backend, err)
	}
	t.Logf("counts %v", report.Counts)
}

// How a program may end, in a child process.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		expect, text       string
		outcome            Outcome
		signature, details string
	}{
		"ended":       {"clean", "queue q\ncb c q\ncommit c\ncompleted c", Ended, "", ""},
		"left behind": {"lifetime: b", "buffer b 64\nleak b", LeftBehind, "", ""},
		"assertion": {"violation with signature 3", "queue q\ncb c q\ncommit c\ncommit c", Assertion, "3 double-commit",
			"commit an already committed command buffer"},
		"its text is not known": {"violation", "queue q\nbuffer b 64\ncb c q\nblit x c\nend_encoding x\nend_encoding x", Crashed, "",
			"end_encoding of an encoder that has ended"},
		"a deadlock is found": {"deadlock: c", "device watchdog=200\nqueue q\ncb c q\ncompleted c", NoProgress, "", ""},
		"every thread waits":  {"deadlock: c", "thread A\nawait never", NoProgress, "", ""},
		"race": {"race on buffer b",
			"queue q\nqueue r\nbuffer b 64\ncb c q\ncb d r\nwork c fill b 0 64 1\nwork d fill b 0 64 2\ncommit c\ncommit d", Ended, "", ""},
		"not run": {"clean", "queue q\ninject q error 1", NotRun, "", "inject"},
	} {
		t.Run(name, func(t *testing.T) {
			found := observed(t, program(t, c.expect, c.text))
			if found.Outcome != c.outcome || found.Signature != c.signature || !strings.Contains(found.Detail, c.details) {
				t.Errorf("%s, failures %q", found, found.Failures)
			}
		})
	}
}

// The program of the planted differences: a value, a count, and three blocks in an order that Metal documents.
const handlers = `queue q
buffer b 64
shared_event e
cb c q
on_scheduled c begins
on_completed c first
work c fill b 0 64 7
signal c e 3
commit c
cb d q
on_completed d second
commit d
await done 3
peek b 0 64
attain e 3 1000
event.value e
block begins
post done
block first
post done
block second
post done`

// Each difference that is planted into facts is found and named; what the order of threads may change is none.
func TestDifferencesAreFound(t *testing.T) {
	racy := "queue q\nqueue r\nbuffer b 64\ncb c q\ncb d r\nwork c fill b 0 64 1\nwork d fill b 0 64 2\ncommit c\ncommit d\ncompleted c\ncompleted " +
		"d\npeek b 0 64"
	polled := "queue q\ncb c q\ncommit c\nstatus c\ncompleted c\nstatus c"
	for name, c := range map[string]struct {
		expect, text string
		plant        func(p *Program)
		want         string // empty: no difference
	}{
		"nothing": {"clean", handlers, func(*Program) {}, ""},
		"a value": {"clean", handlers, func(p *Program) { p.Values[0].Values[0] = 8 },
			"main, line 14, peek: [8]; the software Metal: [7]"},
		"a line that is not reached": {"clean", handlers, func(p *Program) { p.Values = p.Values[:2] },
			"main, line 16, event.value: not reached; the software Metal: [3]"},
		"handlers the other way round": {"clean", handlers, func(p *Program) { slices.Reverse(p.Order) },
			"blocks began in the order second, first, begins; the software Metal: begins, first, second"},
		"a failure": {"clean", handlers, func(p *Program) { p.Failures = []string{"main, line 16: is 4, not 3"} },
			"main, line 16: is 4, not 3"},
		"an assertion that is not there": {"violation with signature 3", "queue q\ncb c q\ncommit c\ncommit c",
			func(p *Program) { *p = Program{Name: p.Name, Digest: p.Digest, Outcome: Ended} }, "ended; the software Metal: assertion"},
		"another assertion": {"violation with signature 3", "queue q\ncb c q\ncommit c\ncommit c",
			func(p *Program) { p.Signature = "4 commit-open" }, "the software Metal: signature 3"},
		"an assertion too many": {"clean", handlers, func(p *Program) {
			*p = Program{Name: p.Name, Digest: p.Digest, Outcome: Assertion, Detail: "words"}
		}, "assertion: words; the software Metal: ended"},
		"a value of a race":   {"race on buffer b", racy, func(p *Program) { p.Values[0].Values[0] = -1 }, ""},
		"a crash in a race":   {"race on buffer b", racy, func(p *Program) { p.Outcome = Crashed }, "crashed; the software Metal: ended"},
		"a status on its way": {"clean", polled, func(p *Program) { p.Values[0].Values[0] = 3 }, ""},
		"a status at the end": {"clean", polled, func(p *Program) { p.Values[1].Values[0] = 5 },
			"main, line 6, status: [5]; the software Metal: [4]"},
		"what the documentation leaves": {"violation", "queue q\nbuffer b 64\ncb c q\nblit x c\nend_encoding x\nend_encoding x",
			func(p *Program) { p.Outcome = Ended }, ""},
		"a program that the facts lack": {"clean", handlers, func(p *Program) { p.Name = "another" }, "it is not in the facts"},
		"a program with another text":   {"clean", handlers, func(p *Program) { p.Digest = "0"; p.Values = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := program(t, c.expect, c.text)
			found := observed(t, p)
			c.plant(&found)
			file := filepath.Join(t.TempDir(), "facts.json")
			require.NoError(t, (Facts{Schema: Schema, Programs: []Program{found}}).Write(file))
			facts := require.One(ReadFacts(file))(t)
			compared := require.One(Compare(t.Context(), facts, []corpus.Program{p}, 1))(t)
			if got := strings.Join(compared[0].Differences, "\n"); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("differences %q, want %q", got, c.want)
			}
		})
	}
}

// What is not a file of facts is refused with the reason.
func TestReadFactsRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":        {"facts", "invalid character"},
		"other JSON":     {`{"verdict": "passed"}`, "unknown field"},
		"a newer schema": {`{"schema": 2, "programs": [{"name": "a"}]}`, "its schema is 2, and this mpsforge reads 1"},
		"no programs":    {`{"schema": 1}`, "it has no programs"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "facts.json")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o644))
			if _, err := ReadFacts(file); !errors.Is(err, ErrFacts) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// The link finds what is wrong with the Apple backend.
func TestFaultsOfTheBackendAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP Apple backend: compiles for another system")
	}
	cache := hosttest.Cache(t)
	const table = "metal/framework_darwin.m"
	text := require.One(fs.ReadFile(native.Apple, table))(t)
	for name, c := range map[string]struct{ old, new, want string }{
		"nothing":                      {"", "", ""},
		"a function that is not there": {"    .event_set = event_set,\n", "    .event_set = event_set_elsewhere,\n", "event_set_elsewhere"},
		"a selector that is not there": {".metal enqueue]", ".metal enqueueNow]", "enqueueNow"},
		"a name that nobody defines": {"return &table;",
			"extern const mpsforge_metal_api* elsewhere(void); return elsewhere() ? elsewhere() : &table;", "elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			backend := fstest.MapFS{}
			files := require.One(fs.Glob(native.Apple, "metal/*"))(t)
			for _, file := range files {
				data := require.One(fs.ReadFile(native.Apple, file))(t)
				backend[file] = &fstest.MapFile{Data: data}
			}
			if c.old != "" && strings.Count(string(text), c.old) != 1 {
				t.Fatalf("%q is not in %s once", c.old, table)
			}
			if c.old != "" {
				backend[table] = &fstest.MapFile{Data: []byte(strings.Replace(string(text), c.old, c.new, 1))}
			}
			detail, err := mac.LinkBackend(t.Context(), cache, backend, events.Discard)
			if errors.Is(err, builds.ErrEnvironment) {
				t.Skipf("SKIP Apple backend: %v", err)
			}
			if c.want == "" && (err != nil || !strings.HasPrefix(detail, "4 sources")) || c.want != "" &&
				(err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %v", detail, err)
			}
		})
	}
}

// The example of docs/device-facts.md is a file of facts, and what its programs do.
func TestDocumentedExample(t *testing.T) {
	page := require.One(os.ReadFile("../../../docs/device-facts.md"))(t)
	_, example, _ := strings.Cut(string(page), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	schematest.SameFields(t, "device-facts", map[string]reflect.Type{"": reflect.TypeFor[Facts]()})
	if err := schematest.Validate("device-facts", []byte(example)); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "facts.json")
	require.NoError(t, os.WriteFile(file, []byte(example), 0o644))
	facts := require.One(ReadFacts(file))(t)
	for _, want := range facts.Programs {
		p := require.One(corpus.Find(want.Name))(t)
		require.Equal(t, observed(t, p), want, want.Name)
	}
}
