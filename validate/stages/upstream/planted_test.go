package upstream

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/kept"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

// planted is a stage's run over testdata/planted instead of PyTorch's file, on the CPU.
type planted struct {
	*runner
	file   suiteFile
	folder string // where its tests leave marks
}

// plant makes one. Two subjects that differ by their name alone are used as stock and patched.
func plant(t *testing.T, facts patches.UpstreamFacts, tests string) planted {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Python with torch")
	}
	home := require.One(os.UserHomeDir())(t)
	env := &stage.Env{Sink: events.Discard, Machine: &reports.Machine{}, Options: stage.Options{Cache: t.TempDir(), Artifacts: t.TempDir(),
		Python: stage.PythonOptions{Device: "cpu"},
		Series: &patches.Series{Baseline: patches.Baseline{Name: "v0.0.0"}}}}
	empty := env.Cache
	if cache := filepath.Join(home, ".cache", "mpsforge"); runtime.GOOS == "linux" && host.HaveRoot(cache) {
		env.Cache = cache // the root is there
	}
	report := &reports.Stage{Name: "upstream"}
	subject, _, err := pytests.Proven(t.Context(), env, report)
	if reason, skipped := stage.SkipReason(err); skipped {
		t.Skipf("SKIP Python with torch: %s", reason)
	}
	require.NoError(t, err)
	env.Cache = empty
	env.Kept = &kept.Run{Cache: env.Cache, Stage: report.Name}
	scripts := require.One(pytests.Unpack(env.Cache, sources, pytests.Sources))(t)
	path := require.One(filepath.Abs("testdata/planted/test_planted.py"))(t)
	folder := t.TempDir()
	side := func(name string) *pytests.Subject {
		return subject.With(name, "PLANTED_SIDE="+name, "PLANTED_FOLDER="+folder)
	}
	r := &runner{env: env, report: report, scripts: scripts, patched: side("patched"), stock: side("stock"), limits: limits{seconds: 12, memory: 700 << 20},
		facts: facts, listed: list(facts), operators: map[string]bool{"aten::exp.out": true}, pattern: regexp.MustCompile(tests)}
	env.Upstream.Tests = tests
	return planted{r, suiteFile{name: "test_planted", path: path, quick: 400}, folder}
}

// run runs and judges, and gives the checks that failed, by name.
func (p planted) run(t *testing.T) map[string]string {
	t.Helper()
	require.NoError(t, p.runFile(t.Context(), p.file))
	require.NoError(t, p.conclude())
	failed := map[string]string{}
	for _, check := range p.report.Checks {
		if check.Verdict == reports.Failed {
			failed[check.Name] = check.Detail
		}
	}
	return failed
}

func TestEveryEndIsToldByItsName(t *testing.T) {
	p := plant(t, patches.UpstreamFacts{},
		"(?:passes|expected|expected_values|wraps|has|package|kernel|sub_test|skips.*|unexpectedly|aborts|quietly|exit|hangs|child|memory|mac|see|test)$")
	p.stock = nil
	p.run(t)
	if last := p.report.Facts[len(p.report.Facts)-2]; !strings.HasSuffix(last.Value, "macOS 15.2; run: 23") { // the file asks for what is newer than 15.1
		t.Errorf("the tests were told of another macOS: %v", last)
	}
	ends := map[string]end{}
	for _, test := range p.all {
		ends[strings.TrimPrefix(test.name, "Planted.test_")] = test.patched[0]
	}
	for name, want := range map[string]end{
		"passes":                                 {kind: passed},
		"differs_from_expected_values":           {failed, "differs from expected values"},
		"raises_what_the_framework_wraps":        {raised, "not implemented on the host build's MPS: aten::exp.out"},
		"needs_what_no_mac_has":                  {raised, "not implemented for MPS, on a Mac neither: aten::lcm.out"},
		"imports_a_missing_package":              {raised, "missing Python package: what_nobody_has"},
		"needs_a_missing_kernel":                 {raised, "missing kernel: erf"},
		"fails_in_a_sub_test":                    {failed, "AssertionError: False is not true"},
		"skips_by_its_own_condition":             {kind: skipped},
		"skips_without_a_reason":                 {kind: skipped},
		"skips_by_the_framework_s_condition":     {foreignSkip, "skipped by a condition outside the test's file: not for this device"},
		"skips_for_a_missing_package":            {foreignSkip, "missing Python package: scipy"},
		"fails_as_expected":                      {kind: expectedFailure},
		"fails_as_expected_for_a_missing_kernel": {foreignFailure, "missing kernel: erf"},
		"succeeds_unexpectedly":                  {unexpectedSuccess, "unexpected success"},
		"aborts":                                 {crashed, "crash: 3 double-commit"},
		"ends_the_process_quietly":               {crashed, "crash: exit code N without a result"},
		"calls_exit":                             {raised, "SystemExit: N"},
		"hangs":                                  {hung, "hang"},
		"hangs_in_a_child":                       {hung, "hang"},
		"takes_too_much_memory":                  {tooMuchMemory, "too much memory"},
		"finds_a_mac":                            {kind: passed},
		"changes_what_others_would_see":          {kind: passed},
		"sees_no_other_test":                     {kind: passed},
	} {
		if got, ran := ends[name]; got != want || !ran {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		delete(ends, name)
	}
	require.Equal(t, ends, nil, "without an expectation")
	for _, test := range p.all {
		if test.name == "Planted.test_hangs" && !strings.Contains(test.last.Output, "in test_hangs") {
			t.Errorf("no stack of the hang in %q", test.last.Output)
		}
	}
}

// Each end that the stage judges, in one run: by the comparison with stock, and by the list of known failures.
func TestWhatFailsTheStage(t *testing.T) {
	id := func(name string) string { return "test_planted:Planted.test_" + name }
	known := patches.UpstreamFacts{
		Failures: map[string][]string{
			"missing kernel: erf":          {id("needs_a_missing_kernel"), id("skips_by_its_own_condition")},
			"differs from expected values": {id("differs_from_expected_values")},
		},
		UnexpectedSuccesses: map[string][]string{"the CPU computes it exactly": {id("succeeds_unexpectedly")}},
	}
	p := plant(t, known, "(_one_side|_passes|_values|_kernel|_wraps|_unexpectedly|_own_condition)$")
	failed := p.run(t)
	rows := map[string]string{} // of tables of named tests, by the name
	for _, table := range p.report.Tables {
		for _, row := range table.Rows {
			rows[row[0]] = table.Title
		}
	}
	for _, c := range []struct {
		about, test, detail, table string
	}{
		{"another end than on stock", "ends_otherwise_on_one_side",
			"stock: passed, twice; patched: failed (AssertionError: 'patched' == 'patched'), twice; again: mpsforge verify --stages upstream --tests", ""},
		{"a failure that is not listed", "raises_what_the_framework_wraps",
			"error (not implemented on the host build's MPS: aten::exp.out), twice, which v0.0.0/upstream.json does not list", ""},
		{"an expected failure for a reason that no Mac has", "fails_as_expected_for_a_missing_kernel",
			"expected failure, host build (missing kernel: erf), twice, which", ""},
		{"a listed failure that ends as expected", "skips_by_its_own_condition",
			"skipped, twice, and v0.0.0/upstream.json lists it as a failure (missing kernel: erf): delete it there", ""},
		{"a pass", "passes", "", ""},
		{"a listed failure", "needs_a_missing_kernel", "", ""},
		{"an unexpected success with a reason", "succeeds_unexpectedly", "", ""},
		{"a crash of the patched sources alone, though it passes then", "dies_the_first_time_on_one_side",
			"stock: passed, twice; patched: crash", ""},
		{"a flake is named", "fails_the_first_time_on_one_side", "", "Flaky"},
		{"a pass where stock fails is named", "passes_on_one_side", "", "Pass on the patched sources alone"},
	} {
		t.Run(c.about, func(t *testing.T) {
			if detail := failed[id(c.test)]; !strings.HasPrefix(detail, c.detail) || (detail == "") != (c.detail == "") {
				t.Errorf("%q, want %q", detail, c.detail)
			}
			require.Equal(t, rows[id(c.test)], c.table, "named in table")
		})
		delete(failed, id(c.test))
	}
	if len(failed) != 2 || !strings.Contains(failed["same end as on stock"], "better: 1, another end: 2, flaky: 1") ||
		!strings.Contains(failed["known failures"], "new failures: 2, listed ones that end as PyTorch expects: 1") {
		t.Errorf("failed, too: %v", failed)
	}
}

// Of a version without upstream.json only the comparison with stock counts, and the report says so.
func TestWithoutAListStockDecides(t *testing.T) {
	p := plant(t, patches.UpstreamFacts{}, "(_otherwise_on_one_side|_kernel|_wraps)$")
	failed := p.run(t)
	if len(failed) != 2 || failed["same end as on stock"] == "" || failed["test_planted:Planted.test_ends_otherwise_on_one_side"] == "" {
		t.Errorf("failed: %v", failed)
	}
	i := slices.IndexFunc(p.report.Checks, func(c reports.Check) bool { return c.Name == "known failures" })
	if i < 0 || p.report.Checks[i].Verdict != reports.Skipped || !strings.Contains(p.report.Checks[i].Detail, "there is no v0.0.0/upstream.json yet") {
		t.Errorf("%d of %+v", i, p.report.Checks)
	}
}

// standin has the run's file be another planted one, pointed by a planted stand-in.
func (p *planted) standin(t *testing.T, file, module string) {
	t.Helper()
	source := require.One(os.ReadFile("testdata/planted/" + module + ".py"))(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.scripts, module+".py"), source, 0o644))
	p.file.name, p.file.path, p.file.standins = file, filepath.Join(filepath.Dir(p.file.path), file+".py"), []string{module}
}

// ends are the first ends on the patched sources, by the test's name without its class.
func (p *planted) ends() map[string]end {
	ends := map[string]end{}
	for _, test := range p.all {
		_, name, _ := strings.Cut(test.name, ".test_")
		ends[name] = test.patched[0]
	}
	return ends
}

// A test of another device counts as passed only if it used the device that it was pointed at, and as skipped only if PyTorch
// marks it for MPS. What cannot be pointed is left out by name, with the reason.
func TestOfAnotherDeviceOnlyWhatUsesThisOneCounts(t *testing.T) {
	id := "test_pointed:Pointed.test_"
	p := plant(t, patches.UpstreamFacts{LeftOut: map[string][]string{"needs two": {id + "cannot_be_pointed", id + "was_deleted"}}}, "")
	p.stock = nil
	p.standin(t, "test_pointed", "elsewhere_is_here")
	p.file.about = regexp.MustCompile(`^Pointed\.`)
	failed := p.run(t)
	require.Equal(t, p.ends(), map[string]end{
		"uses_the_device":                {kind: passed},
		"names_no_device":                {offDevice, "did not use mps"},
		"fails_as_expected_on_no_device": {offDevice, "did not use mps"},
		"skips_by_its_own_condition":     {foreignSkip, "skipped by a condition outside the test's file: fewer than N devices"},
		"skips_as_marked_for_mps":        {kind: skipped},
	})
	if detail := failed["names that no test has"]; !strings.HasSuffix(detail, id+"was_deleted") {
		t.Errorf("a name that is left out and that no test has: %q", detail)
	}
	for _, table := range p.report.Tables {
		if table.Title == "Left out by name" && reflect.DeepEqual(table.Rows, [][]string{{"needs two", id + "cannot_be_pointed"}}) {
			return
		}
	}
	t.Errorf("what is left out is not told: %v", p.report.Tables)
}

// The real stand-ins, with a device that every torch has.
func TestStandInsReachTestsAndTheirThreads(t *testing.T) {
	p := plant(t, patches.UpstreamFacts{}, "")
	p.stock = nil
	p.standin(t, "test_standins", "meta_is_cuda")
	p.run(t)
	for name, got := range p.ends() {
		want := end{kind: passed}
		if name == "a_missing_stream_is_named" {
			want = end{raised, "AttributeError: module 'torch.mps' has no attribute 'Stream'"}
		}
		require.Equal(t, got, want, name)
	}
	require.Equal(t, len(p.all), 14, "tests ran")
}

// A file whose tests unittest cannot gather is an error: it has no tests to end well.
func TestAFileThatCannotBeReadFails(t *testing.T) {
	p := plant(t, patches.UpstreamFacts{}, "")
	p.file.path = filepath.Join(p.folder, "test_broken.py")
	require.NoError(t, os.WriteFile(p.file.path, []byte("def load_tests(*_):\n    raise ValueError('no tests here')\n"), 0o644))
	require.Says(t, p.runFile(t.Context(), p.file), "no tests here")
}

// A long run that was stopped goes on: what has ended is not run again, and what was under way is.
func TestALongRunGoesOnWhereItWasStopped(t *testing.T) {
	p := plant(t, patches.UpstreamFacts{}, "")
	p.stock, p.limits.seconds = nil, 60
	p.file.about = regexp.MustCompile("counts_its_runs|waits_for_the_end_of_the_run")
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for range 600 {
			_, ran := os.Stat(filepath.Join(p.folder, "runs"))
			if _, waits := os.Stat(filepath.Join(p.folder, "waiting")); ran == nil && waits == nil {
				time.Sleep(2 * time.Second)
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		stop()
	}()
	if err := p.runFile(ctx, p.file); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	p.all = nil
	p.run(t)
	if runs, err := os.ReadFile(filepath.Join(p.folder, "runs")); err != nil || string(runs) != "x" {
		t.Errorf("runs of a test that had ended: %q, %v", runs, err)
	}
	for _, test := range p.all {
		if test.patched[0].kind != passed {
			t.Errorf("%s: %v", test.name, test.patched)
		}
	}
}
