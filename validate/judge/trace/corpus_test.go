package trace

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
	"mpsforge/native/script"
	"mpsforge/validate/judge/corpus"
)

// traced runs a program once and returns the trace of it.
func traced(t testing.TB, text string, seed uint64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	options := script.Options{Seed: seed, Runs: 1, MaxDelay: 50 * time.Microsecond, Stall: 10 * time.Second, Trace: path}
	require.One(script.Run(t.Context(), text, options))(t)
	return string(require.One(os.ReadFile(path))(t))
}

// judged runs a program once and returns what the trace of it says, and the trace.
func judged(t *testing.T, text string, seed uint64) (Run, string) {
	t.Helper()
	written := traced(t, text, seed)
	runs, err := Judge(strings.NewReader(written))
	if err != nil {
		t.Fatalf("%v\n%s", err, written)
	}
	if len(runs) != 1 {
		t.Fatalf("the trace has %d runs, and the program was run once", len(runs))
	}
	return runs[0], written
}

func TestCorpusIsJudgedAsByTheEngine(t *testing.T) {
	programs := require.One(corpus.Programs())(t)
	clean, races := 0, 0
	for _, program := range programs {
		t.Run(program.Group+"/"+program.Name, func(t *testing.T) {
			for seed := range uint64(3) {
				run, text := judged(t, program.Text, seed+1)
				switch verdict := run.Verdict(); {
				case verdict == Agree && len(run.Races) > 0:
					races++
				case verdict == Agree:
					clean++
				case verdict == Differ:
					t.Errorf("seed %d: the engine found %d races, and the trace has %v; it is\n%s", seed+1, run.Engine.Races, run.Races, text)
				}
				if run.Problem != "" && run.Engine.Undone == 0 { // two queues that wait for each other are a deadlock
					t.Errorf("seed %d: %s", seed+1, run.Problem)
				}
			}
		})
	}
	t.Logf("both found races in %d runs, and none in %d", races, clean)
	if races == 0 || clean == 0 {
		t.Error("and one of these says nothing")
	}
}

// pairs are the programs of testdata/pairs.txt, by name.
func pairs(t *testing.T) (names []string, ordered, unordered map[string]string) {
	t.Helper()
	text := require.One(os.ReadFile("testdata/pairs.txt"))(t)
	ordered, unordered = map[string]string{}, map[string]string{}
	name := ""
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "== "):
			name = strings.TrimSpace(line[len("== "):])
			names = append(names, name)
		case strings.HasPrefix(line, "+ "):
			ordered[name] += line[2:]
		case strings.HasPrefix(line, "- "):
			unordered[name] += line[2:]
		default:
			ordered[name] += line
			unordered[name] += line
		}
	}
	return names, ordered, unordered
}

func TestUnorderedAccessesAreFoundAndOrderedOnesAreNot(t *testing.T) {
	names, ordered, unordered := pairs(t)
	if len(names) < 40 {
		t.Fatalf("there are %d pairs, and issue 47 asks for 40", len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				if run, text := judged(t, ordered[name], seed+1); run.Verdict() != Agree || len(run.Races) > 0 {
					t.Errorf("ordered, seed %d: %s, engine %+v, %v %s\n%s", seed+1, run.Verdict(), *run.Engine, run.Races, run.Problem, text)
				}
				if run, text := judged(t, unordered[name], seed+1); run.Verdict() != Agree || len(run.Races) == 0 {
					t.Errorf("unordered, seed %d: %s, engine %+v, %v %s\n%s", seed+1, run.Verdict(), *run.Engine, run.Races, run.Problem, text)
				}
			}
		})
	}
}

func TestPageRecorderAndJudgeHaveTheSameLines(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	page := require.One(os.ReadFile(filepath.Join(root, "docs", "dev", "trace.md")))(t)
	recorder := require.One(os.ReadFile(filepath.Join(root, "native", "metal", "trace.cc")))(t)
	var described []string
	for row := range strings.Lines(string(page)) {
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		for i, span := range strings.Split(strings.Split(row, "|")[1], "`") {
			if i%2 == 1 {
				described = append(described, strings.Fields(span)[0])
			}
		}
	}
	slices.Sort(described)
	judged := append(slices.Collect(maps.Keys(verbs)), "device")
	slices.Sort(judged)
	if !slices.Equal(described, judged) {
		t.Errorf("docs/dev/trace.md describes %q, and what is judged is %q", described, judged)
	}
	for _, verb := range judged {
		if !strings.Contains(string(recorder), `("`+verb) {
			t.Errorf("native/metal/trace.cc does not write the line %q", verb)
		}
	}
}
