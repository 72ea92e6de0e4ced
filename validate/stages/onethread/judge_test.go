package onethread

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// recorded is the program "shape events" of v2.9.1 as it ran on a side.
func recorded(t *testing.T, side string) (r result) {
	t.Helper()
	data := require.One(os.ReadFile(filepath.Join("testdata", side+".json")))(t)
	require.NoError(t, json.Unmarshal(data, &r))
	return r
}

func TestRecordedSidesAreTheSameButForWhatIsAllowed(t *testing.T) {
	c := compared{name: "shape events", stock: []facts{factsOf(recorded(t, "stock"))}, patched: []facts{factsOf(recorded(t, "patched"))}}
	all := allowances()
	for _, m := range measures {
		wanted := equal
		if m.name == commits {
			wanted = allowed
		}
		if v, stock, patched := c.judge(m.name, all); v != wanted {
			t.Errorf("%s: %s, not %s; stock: %s; patched: %s", m.name, v, wanted, stock, patched)
		}
	}
	if len(c.stock[0][commits]) < 10 || c.stock[0][peak][0] == "0" || c.stock[0][compiled][0] != "graph: 3" {
		t.Errorf("the facts of stock are %v", c.stock[0])
	}
	var used []string
	for _, a := range all {
		if len(a.programs) > 0 {
			used = append(used, a.name)
		}
	}
	if wanted := []string{"a handler for an event"}; !slices.Equal(used, wanted) {
		t.Errorf("allowed by %q, not by %q", used, wanted)
	}
}

// Each change of the patched side's run must be found, by the measure that it is of and no other.
func TestEachDifferenceIsFoundByItsMeasure(t *testing.T) {
	line := func(before, after string) func(*result) {
		return func(r *result) {
			if !strings.Contains(r.Record, before) {
				panic("the record has no " + before)
			}
			r.Record = strings.Replace(r.Record, before, after, 1)
		}
	}
	for name, c := range map[string]struct {
		change func(*result)
		shown  measure
	}{
		"another exception":          {func(r *result) { r.Outcome, r.Text = "error", "RuntimeError: x" }, ends},
		"a finding":                  {func(r *result) { r.Findings = append(r.Findings, script.Finding{Message: "a race"}) }, ends},
		"another bit":                {func(r *result) { r.Values[0] = strings.Replace(r.Values[0], r.Values[0][len(r.Values[0])-1:], "x", 1) }, values},
		"a result more":              {func(r *result) { r.Values = append(r.Values, "1") }, values},
		"a commit more":              {line("commit 1, continue\n", "commit 1, continue\ncommit 1, continue\n"), commits},
		"a commit and its wait":      {line("blit encoder 1\n", "commit 1\nwait until completed 1\nblit encoder 1\n"), commits},
		"a second wait":              {line("wait until completed 1\n", "wait until completed 1\nwait until completed 1\n"), commits},
		"a wait for no commit":       {line("make event\n", "make event\nwait until completed 1\n"), commits},
		"a commit to continue":       {line("\ncommit 1\n", "\ncommit 1, continue\n"), commits},
		"two commits in one":         {line("commit 1, continue\nmemory 8388608\n", "memory 8388608\n"), commits},
		"another queue":              {line("\ncommit 1\n", "\ncommit 2\n"), commits},
		"a signal more":              {line("signal 2 to 1 on 1\n", "signal 2 to 1 on 1\nsignal 1 to 1 on 1\n"), commits},
		"a wait of the GPU":          {line("blit encoder 1\n", "wait of the GPU 2 for 1 on 1\nblit encoder 1\n"), commits},
		"another value of an event":  {line("signal 2 to 1 on 1\n", "signal 2 to 2 on 1\n"), commits},
		"one event for two":          {line("notify 2 at 1\nsignal 2 to 1 on 1\n", "notify 1 at 1\nsignal 1 to 1 on 1\n"), commits},
		"an encoder ended and begun": {line("fill 16384\nend encoding\n", "end encoding\nblit encoder 1\nfill 16384\nend encoding\n"), commits},
		"a handler without a signal": {line("blit encoder 1\n", "completed handler 1\nblit encoder 1\n"), commits},
		"another graph":              {line("graph constant bandPart", "graph constant"), commits},
		"a peak":                     {line("memory 8388608\n", "memory 33554432\nmemory -33554432\nmemory 8388608\n"), ""},
		"a higher peak":              {line("memory 28\n", "memory 56\nmemory -28\n"), peak},
		"memory at the end":          {func(r *result) { r.End.Driver += 8 << 20 }, final},
		"tensors that are kept":      {func(r *result) { r.After.Current = 256 }, final},
		"a graph twice":              {line("make graph\n", "make graph\nmake graph\n"), compiled},
		"a pipeline":                 {line("make graph\n", "make pipeline x\nmake graph\n"), compiled},
		"a library":                  {line("make graph\n", "make library\nmake graph\n"), compiled},
		"a second event":             {line("make event\n", "make event\nmake event\n"), objects},
		"a second queue":             {line("make queue\n", "make queue\nmake queue\n"), objects},
	} {
		t.Run(name, func(t *testing.T) {
			changed := recorded(t, "patched")
			c.change(&changed)
			sides := compared{name: "shape events", stock: []facts{factsOf(recorded(t, "stock"))}, patched: []facts{factsOf(recorded(t, "patched")),
				factsOf(changed)}}
			for _, m := range measures {
				v, stock, patched := sides.judge(m.name, allowances())
				wanted := m.name == c.shown || name == "a peak" && m.name == peak
				if (v == differs) != wanted {
					t.Errorf("%s: %s; stock: %s; patched: %s", m.name, v, stock, patched)
				}
			}
		})
	}
}

// Where stock itself is not the same twice nothing is said; one side's death is a difference of its end.
func TestUnsteadyAndDead(t *testing.T) {
	plain, other := factsOf(recorded(t, "stock")), recorded(t, "stock")
	other.Values = []string{"other"}
	c := compared{name: "x", stock: []facts{plain, factsOf(other)}, patched: []facts{plain}}
	if v, _, _ := c.judge(values, nil); v != unsteady || c.doubtful() {
		t.Errorf("values that differ on stock: %s", v)
	}
	if v, _, _ := c.judge(commits, nil); v != equal {
		t.Errorf("its commits: %s", v)
	}
	c = compared{name: "x", stock: []facts{plain}, patched: []facts{factsOf(result{Outcome: "crash", Text: "died by signal SIGSEGV at 0x7f1"})}}
	if v, _, patched := c.judge(ends, nil); v != differs || !strings.HasSuffix(patched, "at 0x") || !c.doubtful() {
		t.Errorf("a crash: %s, %s", v, patched)
	}
	c.stock = c.patched
	for _, m := range measures {
		if v, _, _ := c.judge(m.name, nil); v != equal {
			t.Errorf("dead on both, %s: %s", m.name, v)
		}
	}
}

// A difference is a failed check with both values and the command; in a long form so is an allowance that nothing needed.
func TestReport(t *testing.T) {
	stock, patched := recorded(t, "stock"), recorded(t, "patched")
	patched.After.Current = 512
	r := &runner{env: &stage.Env{Options: stage.Options{Seed: 5}, Identity: &reports.Identity{Baseline: "v2.9.1", Checkout: "DIR"}},
		report: &reports.Stage{Name: "one-thread"}, allowed: allowances()}
	programs := []*compared{{name: "shape events", stock: []facts{factsOf(stock)}, patched: []facts{factsOf(patched)}}}
	for _, m := range measures {
		r.judgeAll(m, programs)
	}
	r.tables(programs)
	wanted := map[string]string{
		"shape events: final memory": `tensors 0, .*tensors 512, .*again: ` +
			`mpsforge verify --stages one-thread --programs '\^shape events\$' --seed 5 --baseline v2.9.1 --checkout DIR`,
		"final memory":                        `different 1$`,
		"allowed: more graphs than the bound": `delete it`,
	}
	for _, check := range r.report.Checks {
		if pattern := wanted[check.Name]; pattern != "" && check.Verdict == reports.Failed && regexp.MustCompile(pattern).MatchString(check.Detail) {
			delete(wanted, check.Name)
		}
	}
	if len(wanted) > 0 || r.report.Verdict != reports.Failed {
		t.Errorf("not reported: %v; all: %+v", wanted, r.report.Checks)
	}
}

func TestDraw(t *testing.T) {
	var names []string
	for _, kind := range kinds {
		for i := range 300 {
			names = append(names, fmt.Sprintf("%s %d", kind.word, i))
		}
	}
	names = append(names, controlWord+"none")
	all := regexp.MustCompile("")
	long, err := draw(names, names, 1, false, all, false)
	short, _ := draw(names, names, 1, true, all, false)
	again, _ := draw(names, names, 1, false, all, false)
	other, _ := draw(names, names, 2, false, all, false)
	if err != nil || len(long) != longPrograms || len(short) != quickPrograms || !slices.Equal(long, again) || slices.Equal(long, other) ||
		slices.Contains(long, controlWord+"none") {
		t.Errorf("%v; %d and %d programs, again %v, other %v", err, len(long), len(short), slices.Equal(long, again), slices.Equal(long, other))
	}
	without := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(name, "test ") })
	if drawn, _ := draw(without, without, 1, false, all, false); len(drawn) != longPrograms {
		t.Errorf("without tests: %d programs", len(drawn))
	}
	if _, err := draw(names, without, 1, false, all, false); err == nil {
		t.Error("two sides with other programs are taken")
	}
	if drawn, err := draw(names, names, 1, false, regexp.MustCompile("^(test 1|control none)$"), true); err != nil || !slices.Equal(drawn, []string{"test 1"}) {
		t.Errorf("by name: %q, %v", drawn, err)
	}
	if _, err := draw(names, names, 1, false, regexp.MustCompile("nothing"), true); err == nil {
		t.Error("a pattern that matches nothing is taken")
	}
}
