package runtime

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/programs"
	"mpsforge/validate/judge/stagetest"
	"mpsforge/validate/stage"
)

// A difference names a program of the corpus and what is in it; else it would leave out, or change, nothing.
func TestDifferencesFitTheirPrograms(t *testing.T) {
	all := require.One(corpusOfPool())(t)
	found, run := 0, 0
	for _, program := range all {
		text, why, err := translated(program)
		if err != nil {
			t.Error(err)
		}
		if program.Expect != corpus.Clean {
			t.Errorf("%s expects %s, and only clean programs are compared", program.Name, program.Expect)
		}
		if why != "" {
			found++
		}
		if text != "" {
			run++
		}
	}
	if found != len(differences) {
		t.Errorf("%d of %d differences are of programs of the corpus", found, len(differences))
	}
	if run < 80 {
		t.Errorf("%d programs of %d are run", run, len(all))
	}
	for name := range notRandom {
		if !slices.ContainsFunc(programs.Shapes, func(shape programs.Shape) bool { return shape.Name == name }) {
			t.Errorf("there are no random programs %q", name)
		}
	}
}

// The tables of the specification name, for each rule, programs that are run and scenarios that exist.
func TestRulesNameWhatIsRun(t *testing.T) {
	all := require.One(corpusOfPool())(t)
	for _, page := range []struct {
		name  string
		rules int
	}{{"pool", 31}, {"guard", 11}} {
		text := require.One(os.ReadFile("../../../docs/dev/spec/" + page.name + ".md"))(t)
		_, table, _ := strings.Cut(string(text), "## Where it is seen on PyTorch's own sources\n")
		rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \| (.*) \| .* \|$`).FindAllStringSubmatch(table, -1)
		if len(rows) != page.rules {
			t.Errorf("%s: %d rows for %d rules", page.name, len(rows), page.rules)
		}
		for i, row := range rows {
			if row[1] != strconv.Itoa(i+1) || row[2]+row[3] == "" {
				t.Errorf("%s: row %d is %q", page.name, i+1, row[0])
			}
			for name := range strings.SplitSeq(row[2], "; ") {
				known := slices.ContainsFunc(all, func(program corpus.Program) bool {
					inRule := page.name != "pool" || slices.Contains(strings.Split(program.Rules, ", "), row[1])
					replace := differences[program.Name]
					return program.Name == name && inRule && (replace.why == "" || replace.replace != nil)
				})
				if name != "" && !known {
					t.Errorf("%s, rule %s: no program %q of the rule is run", page.name, row[1], name)
				}
			}
			for name := range strings.SplitSeq(row[3], "; ") {
				if name != "" && !slices.ContainsFunc(scenarios(), func(s scenario) bool { return s.Name == name }) {
					t.Errorf("%s, rule %s: no scenario %q", page.name, row[1], name)
				}
			}
		}
	}
}

// What is not as a program says must be found on PyTorch's sources.
func TestPlantedDifferencesAreFound(t *testing.T) {
	built, root := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	series := require.One(patches.Load(patches.Embedded(), host.DebianBaseline))(t)
	env := &stage.Env{Options: stage.Options{Series: series, Seed: 1, Artifacts: t.TempDir()}, Sink: events.Discard}
	r := stageRun{env: env, hosts: &hosts.Builder{Env: env, Root: root}, stage: &reports.Stage{Name: "runtime"}, shared: &shared{failed: map[string]bool{}}}
	for _, c := range []struct{ program, old, planted, problem string }{
		{"a tensor goes round a ring of threads", "read x = 14", "read x = 13", "is 14, not 13"},
		{"a worker's first work leases the lowest free slot", "pool ", "pool PYTORCH_MPS_STREAM_PER_THREAD=0 ", "is 0, not 1"},
		{"share: without a slot a thread uses the default stream, and one warning says so", "warnings = 1", "warnings = 0", "is 1, not 0"},
		{"error: else an exception, and nobody dies", "fails PYTORCH_MPS_STREAM_POOL_SIZE", "fails spawn", "which does not hold \"spawn\""},
	} {
		t.Run(c.program, func(t *testing.T) {
			program := require.One(corpus.Find(c.program))(t)
			if strings.Count(program.Text, c.old) != 1 {
				t.Fatalf("%q is not once in the program", c.old)
			}
			end, _, err := r.poolRun(t.Context(), built, c.program, []string{strings.Replace(program.Text, c.old, c.planted, 1)}, 0, false)
			require.NoError(t, err)
			if !strings.Contains(end.Problem, c.problem) {
				t.Errorf("%q is found, not %q", end.Problem, c.problem)
			}
		})
	}
}
