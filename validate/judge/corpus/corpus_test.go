package corpus

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"mpsforge/internal/require"
)

const head = "# name: two queues\n# rules: 1, 2\n# finds: none\n# expect: race on buffer b\n"

func TestCorpusIsRead(t *testing.T) {
	programs := require.One(Programs())(t)
	inGroup := map[string]int{}
	for _, program := range programs {
		inGroup[program.Group]++
	}
	for _, group := range []string{Order, Metal, Pool, Schedules} {
		if inGroup[group] == 0 || len(Of(programs, group)) != inGroup[group] {
			t.Errorf("%s: %d programs, Of gives %d", group, inGroup[group], len(Of(programs, group)))
		}
	}
}

// What comes before a program does not change it: not a byte, and the lines are numbered from its own first one.
func TestProgramIsWhatFollowsTheFrontMatter(t *testing.T) {
	program, _, err := parse("order/two-queues.txt", head+"# runs: freely\n\nqueue q # not a key\n\n")
	require.NoError(t, err)
	if program.Text != "\nqueue q # not a key\n" || !program.Freely || program.Rules != "1, 2" || program.Group != Order || len(program.Finds) != 0 {
		t.Errorf("%+v", program)
	}
	several := strings.Replace(head, "finds: none", "finds: a commit: none\n# finds: no stamp", 1)
	if program, _, err = parse("order/two-queues.txt", several+"queue q\n"); err != nil || strings.Join(program.Finds, "|") != "a commit: none|no stamp" {
		t.Errorf("%q, %v", program.Finds, err)
	}
}

func TestFrontMatterIsStrict(t *testing.T) {
	for _, c := range []struct{ old, new, problem string }{
		{"# rules: 1, 2", "# rule: 1, 2", `:2: unknown key "rule"; keys are name, rules, finds, expect and runs`},
		{"# rules: 1, 2\n", "", ":4: the front matter ends without rules"},
		{"# name: two queues\n", "", ":4: the front matter ends without name"},
		{"# finds: none\n", "", ":4: the front matter ends without finds"},
		{"# expect: race on buffer b\n", "", ":4: the front matter ends without expect"},
		{"# rules", "rules", ":2: the front matter ends without rules"},
		{"# rules: 1, 2", "#rules: 1, 2", `:2: "#rules: 1, 2" is not a line of a front matter`},
		{"# rules: 1, 2", "# rules:", `:2: "# rules:" is not a line of a front matter`},
		{"# rules: 1, 2", "# rules: 1 ", `:2: "# rules: 1 " is not a line of a front matter`},
		{"# rules: 1, 2", "# rules: 1\n# rules: 2", ":3: a second rules"},
		{"# finds: none", "# finds: none\n# finds: a fault", ":4: a second finds"},
		{"# finds: none", "# finds: a fault\n# finds: none", ":4: a second finds"},
		{"# finds: none", "# finds: a fault\n# finds: a fault", ":4: a second # finds: a fault"},
		{"# name: two queues", "# name: three queues", `:1: the name "three queues" belongs in the file three-queues.txt`},
		{"# expect: race on buffer b", "# expect: race on b", `:4: "race on b" is not an expectation: clean, race on`},
		{"# expect: race on buffer b", "# expect: clean\n# runs: twice", `:5: runs is "twice"; only freely`},
		{"queue q\n", "", ":5: there is no program"},
		{"queue q\n", "queue q", ":5: there is no program, or it does not end with a line feed"},
	} {
		data := head + "queue q\n"
		if strings.Count(data, c.old) != 1 {
			t.Fatalf("%q is not once in the program", c.old)
		}
		_, _, err := parse("order/two-queues.txt", strings.Replace(data, c.old, c.new, 1))
		if want := "corpus/order/two-queues.txt" + c.problem; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q for %q: %v, want %s", c.new, c.old, err, want)
		}
	}
}

func TestNameIsRefusedTwice(t *testing.T) {
	file := &fstest.MapFile{Data: []byte(head + "queue q\n")}
	require.One(load(fstest.MapFS{"order/two-queues.txt": file}))(t)
	_, err := load(fstest.MapFS{"order/two-queues.txt": file, "pool/two-queues.txt": file})
	if want := `corpus/pool/two-queues.txt:1: order/two-queues.txt has the name "two queues", too`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestExpectationsAreWords(t *testing.T) {
	for _, words := range []string{
		"clean", "race on buffer b", "race on buffer b in some schedules", "violation", "violation with signature 7: a: b",
		"violation: a completed handler", "deadlock: 64", "lifetime: b", "model in some schedules", "model with signature 10 in some schedules: A and B",
	} {
		want, err := ParseExpectation(words)
		if err != nil || want.String() != words {
			t.Errorf("%q is read as %q, %v", words, want, err)
		}
		if data, err := json.Marshal(want); err != nil || string(data) != `"`+words+`"` {
			t.Errorf("%s, %v", data, err)
		}
	}
	for _, words := range []string{
		"", "Clean", "clean: b", "race", "race on buffer", "race on buffer b, c", "race on buffer b: text", "deadlock in some schedules", "model",
		"violation with signature 0", "violation with signature x", "violation:", "violation with signature 99999999999999999999",
	} {
		if want, err := ParseExpectation(words); err == nil {
			t.Errorf("%q is read as %q", words, want)
		}
	}
}

func TestFindTakesTheNameOrTheFile(t *testing.T) {
	for _, name := range []string{"error: else an exception, and nobody dies", "error-else-an-exception-and-nobody-dies"} {
		if program, err := Find(name); err != nil || program.Group != Pool {
			t.Errorf("%s: %+v, %v", name, program, err)
		}
	}
	_, err := Find("two queues writes")
	if err == nil || !strings.Contains(err.Error(), `did you mean "two queues write"?`) || !strings.Contains(err.Error(), "--list") {
		t.Error(err)
	}
}
