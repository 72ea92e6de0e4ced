//go:build cgo

package reference

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/cxx"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/native"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/crash"
	"mpsforge/validate/judge/programs"
	"mpsforge/validate/judge/stagetest"
	"mpsforge/validate/stage"
)

func referenceChecker(t *testing.T) *stage.Checker {
	return stage.NewChecker(stagetest.Options(t), &reports.Stage{Name: "reference"}, "reference")
}

func programsOf(t *testing.T) []corpus.Program {
	t.Helper()
	return require.One(corpus.Programs())(t)
}

// runScript runs a program that must be one.
func runScript(t *testing.T, text string, options script.Options) *script.Result {
	t.Helper()
	options.Stall = stagetest.Options(t).Patience
	return require.One(script.Run(t.Context(), text, options))(t)
}

func TestScheduleOfAFindingShowsItAgain(t *testing.T) {
	for _, program := range corpus.Of(programsOf(t), corpus.Order) {
		if !program.Expect.Some {
			continue
		}
		found := runScript(t, program.Text, script.Options{Mode: script.Search, Runs: 100_000, Deviations: 2})
		if len(found.Findings) == 0 {
			t.Fatalf("%s: nothing found", program.Name)
		}
		schedule := strings.TrimPrefix(found.Findings[0].Example, "schedule ")
		again := runScript(t, program.Text, script.Options{Mode: script.Replay, Schedule: schedule})
		if again.RunsWith[script.Race] != 1 || len(again.Failures) != 0 {
			t.Errorf("%s: schedule %s shows %+v, want the race again", program.Name, schedule, again)
		}
	}
}

func TestSeedReplaysEveryStep(t *testing.T) {
	text := programs.Shapes[4].Build(3, 6)
	first := runScript(t, text, script.Options{Mode: script.Drawn, Seed: 42, Runs: 1, Record: true})
	second := runScript(t, text, script.Options{Mode: script.Drawn, Seed: 42, Runs: 1, Record: true})
	if first.Steps != second.Steps || !slices.Equal(first.Records, second.Records) {
		t.Errorf("%d steps and %d records, then %d and %d", first.Steps, len(first.Records), second.Steps, len(second.Records))
	}
	other := runScript(t, text, script.Options{Mode: script.Drawn, Seed: 43, Runs: 1, Record: true})
	if slices.Equal(first.Records, other.Records) {
		t.Error("another seed makes the same steps")
	}
}

// What a failure's detail says must work: the same program, run the same way.
func TestFailureNamesTheCommandThatShowsItAgain(t *testing.T) {
	c := referenceChecker(t)
	text := "queue q\nbuffer b 64\ncb c q\nwork c fill b 0 64 1\ncommit c\npeek b 0 64\n"
	for runs, want := range map[runsOf]string{
		{free: 1}:                  "mpsforge metal run --delay 200µs --seed 1 --runs 1 ",
		{drawn: 3}:                 "mpsforge metal run --steps --seed 1 --runs 1 ",
		{search: 9, deviations: 2}: "mpsforge metal run --schedule \"\" ",
	} {
		problem, _, findings := runProgram(t.Context(), c, text, corpus.Clean, runs)
		if len(findings) != 1 || findings[0].Kind != "race" || !strings.Contains(findings[0].First, "cpu_read") || !strings.Contains(findings[0].Second,
			"fill") {
			t.Errorf("%+v: findings %+v", runs, findings)
		}
		_, command, _ := strings.Cut(problem, "to see it again: ")
		path, found := strings.CutPrefix(command, want)
		if !found {
			t.Errorf("%+v: %q, want %q", runs, problem, want)
			continue
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
			t.Errorf("%+v: kept %q, %v", runs, kept, err)
		}
	}
}

// Each rule of the pool has a scenario named after it.
func TestEveryRuleOfThePoolHasAScenario(t *testing.T) {
	named := map[string]bool{}
	for _, scenario := range corpus.Of(programsOf(t), corpus.Pool) {
		for rule := range strings.SplitSeq(scenario.Rules, ", ") {
			named[rule] = true
		}
	}
	for rule := 1; rule <= 27; rule++ {
		if !named[strconv.Itoa(rule)] {
			t.Errorf("no scenario of rule %d", rule)
		}
	}
}

// The corpus must hold enough of both kinds, or its verdict means little.
func TestCorpusHoldsBothClasses(t *testing.T) {
	classes := map[bool]int{}
	for _, program := range corpus.Of(programsOf(t), corpus.Order) {
		classes[program.Expect == corpus.Clean]++
	}
	if classes[true] < 20 || classes[false] < 20 {
		t.Errorf("%d race-free programs and %d racy ones", classes[true], classes[false])
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	text := "queue q\nthread A\ncb c q\ncommit c\nthread B\ncb d q\ncommit d\n"
	_, err := script.Run(ctx, text, script.Options{Mode: script.Search, Runs: 1 << 40, Deviations: script.Unbounded, Stall: time.Minute})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the context's", err)
	}
}

func TestProgramErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"repeat 3\nqueue q\n":       "line 1: repeat without done",
		"thread A\nthread A\n":      "line 2: a second thread A",
		"queue \"q\n":               "line 1: a quote is not closed",
		"frobnicate\n":              "main, line 1: no verb frobnicate",
		"queue q\ncb c r\n":         "main, line 2: no queue r",
		"queue q\nfill q q 0 1 2\n": "main, line 2: q: queue, not encoder",
		"buffer b\n":                "main, line 1: a word is missing at the end",
		"set t 1\n":                 "main, line 1: no tensor t",
		"tensor t 4\n":              "main, line 1: no pool",
		"buffer b 8\npeek b 0 99999999999999999\n":    "main, line 2: ",
		"pool\non_queue 0 a\nblock a\non_queue 0 a\n": "block a, line 0: blocks run each other without end",
	} {
		result, err := script.Run(t.Context(), text, script.Options{Runs: 1, Stall: stagetest.Options(t).Patience})
		switch {
		case err != nil:
			require.Contains(t, err.Error(), want, text)
		case len(result.Failures) != 1 || !strings.HasPrefix(result.Failures[0].Text, want):
			t.Errorf("%q: %+v, want %q", text, result.Failures, want)
		}
	}
}

// In the mode "abort" a violation ends the process as on a Mac, with a text that classify knows.
func TestViolationAbortsAsOnAMac(t *testing.T) {
	text := filepath.Join(t.TempDir(), "twice.txt")
	require.NoError(t, os.WriteFile(text, []byte("device abort=1\nqueue q\ncb c q\ncommit c\ncommit c\n"), 0o644))
	result, err := run.Command{Name: soundEngine(t), Args: []string{"free", "1", "1", "0", "0", "3000", text}}.Run(t.Context())
	if err == nil {
		t.Fatalf("the process lives: %s", result.Stdout)
	}
	log := filepath.Join(t.TempDir(), "crash.log")
	require.NoError(t, os.WriteFile(log, result.Stderr, 0o644))
	found := crash.Classify([]string{log})[0]
	if len(found.Matches) == 0 || !strings.HasPrefix(found.Matches[0].Signature, "3 ") {
		t.Errorf("%q is classified as %+v, want signature 3", result.Stderr, found)
	}
}

// The checker's own scenarios and its comparison with a brute-force oracle are C++: they call what no program can.
func TestOrderCheckerAgreesWithItsOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: millions of histories are compared; go test -run '^TestOrderCheckerAgreesWithItsOracle$' ./validate/stages/reference")
	}
	runPlainAndSanitized(t, "metal/order.h", "metal/shadow.h", "metal/order.cc", "metal/shadow.cc", "metal/signals.cc",
		"programs/scenarios.h", "programs/order_test.cc", "programs/order_random.h", "programs/order_random.cc")
}

// What the software Metal has for the Objective-C classes over it, which no script can call.
func TestMetalServesItsObjectiveCClasses(t *testing.T) {
	runPlainAndSanitized(t, "schedule/", "metal/", "programs/scenarios.h", "programs/metal_test.cc")
}

// runPlainAndSanitized builds native sources into a program, with AddressSanitizer as well, and demands that it ends with 0.
func runPlainAndSanitized(t *testing.T, names ...string) {
	t.Helper()
	sources := require.One(native.Files(names...))(t)
	for _, kind := range []cxx.Flavour{cxx.Program, cxx.AddressProgram} {
		result, err := run.Command{Name: stagetest.Program(t, kind, sources)}.Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v\n%s", kind.Name, err, result.Stdout)
			continue
		}
		t.Logf("%s: %s", kind.Name, result.Stdout)
	}
}

// How threads of translated Metal kernels wait for each other, and what is found when they do it wrongly.
func TestThreadsOfShadersTakeTurns(t *testing.T) {
	runPlainAndSanitized(t, "shaders/", "programs/scenarios.h", "programs/shaders_test.cc")
}

// How the source of a shader becomes C++, and what is refused.
func TestShaderSourceBecomesCxx(t *testing.T) {
	runPlainAndSanitized(t, "msl/rewrite.h", "msl/rewrite.cc", "programs/scenarios.h", "programs/msl_test.cc")
}
