package pytests

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// The table and the Python files know the same tests.
func TestPythonTestsExist(t *testing.T) {
	files := require.One(Sources.ReadDir("python"))(t)
	var inFiles, inTable []string
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), "test_") || file.Name() == "test_process_pool.py" {
			continue // that one tests process_pool.py, without torch
		}
		text := require.One(Sources.ReadFile("python/" + file.Name()))(t)
		for _, match := range regexp.MustCompile(`(?m)^    def test_(\w+)`).FindAllSubmatch(text, -1) {
			inFiles = append(inFiles, strings.ReplaceAll(string(match[1]), "_", "-"))
		}
	}
	for _, test := range Tests() {
		inTable = append(inTable, test.Name)
	}
	slices.Sort(inFiles)
	slices.Sort(inTable)
	if !slices.Equal(inFiles, inTable) {
		t.Errorf("in the files: %v\nin the table: %v", inFiles, inTable)
	}
}

// The field reports' recommended form for what threads cannot do works, without torch.
func TestProcessPool(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	command := exec.CommandContext(t.Context(), python, "-B", "-m", "unittest", "test_process_pool")
	command.Dir = "python"
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestSelectTests(t *testing.T) {
	for pattern, want := range map[string]int{"": len(Tests()), "^linear$": 1, "linear": 3, "nothing-of-that": -1, "(": -1} {
		found, err := SelectTests(Tests(), pattern)
		if want < 0 {
			require.Is(t, err, ErrTestPattern, pattern)
		} else if err != nil || len(found) != want {
			t.Errorf("%q: %d tests, %v", pattern, len(found), err)
		}
	}
}

// Wilson's interval, against values of a published table (Brown, Cai, DasGupta 2001, and computed manually).
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{{0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {0, 0, 0, 1}, {30, 30, 0.8865, 1}} {
		if low, high := wilson(c.k, c.n); math.Abs(low-c.low) > 0.001 || math.Abs(high-c.high) > 0.001 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

// On a Mac a crash has a report: the one of this process, written since its start, gives the signature.
func TestNewCrashReport(t *testing.T) {
	dir, since := t.TempDir(), time.Now()
	body := `{"pid": 77, "exception": {"type": "EXC_CRASH", "signal": "SIGABRT"}, "asi": {"libsystem_c.dylib": ["failed assertion ` +
		"`commit an already committed command buffer'" + `"]}}`
	for name, pid := range map[string]int{"python-1.ips": 76, "python-2.ips": 77, "python-3.txt": 77} {
		text := fmt.Sprintf("{\"bug_type\": \"309\"}\n%s\n", strings.Replace(body, "77", fmt.Sprint(pid), 1))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	path := newCrashReport(dir, since, 77)
	if filepath.Base(path) != "python-2.ips" {
		t.Fatalf("%q", path)
	}
	var end process.Result
	end.Problem = "died by signal aborted"
	addCrashReport(&end, path)
	if !strings.HasPrefix(end.Signature, "3 ") || !strings.Contains(end.Problem, "crash report: "+path) {
		t.Errorf("%q, signature %q", end.Problem, end.Signature)
	}
	require.Equal(t, newCrashReport(dir, time.Now().Add(time.Hour), 77), "", "an old one")
}

// stageRun is a stage with a series of these patches.
func stageRun(patches ...string) *Runner {
	return &Runner{Env: &stage.Env{Identity: &reports.Identity{Patches: patches}}, Stage: &reports.Stage{}}
}

func outcomeOf(test Test, subject *Subject, threads int, problem, signature string) Job {
	o := Job{Test: test, Subject: subject, Run: Run{Subject: subject, Test: test.Name, Threads: threads, Iterations: 10}}
	o.End.Threads, o.End.Problem, o.End.Signature = threads, problem, signature
	o.Counted = Counts{Operations: int64(threads * 10), Values: 100, Seconds: 2}
	return o
}

// A verdict for each way that processes of one test can end.
func TestPythonVerdicts(t *testing.T) {
	mps, cpu := &Subject{Name: "patched", Device: "mps"}, &Subject{Name: "cpu", Device: "cpu"}
	test := Test{Name: "linear", patches: []string{"stream-discipline"}, Section: limitSection}
	skipping := outcomeOf(test, mps, 2, "", "")
	skipping.End.Skipped = "no such interface"
	lacks := func(version string) Job { // the test needs what 2.6.0 lacks, and skips itself on a torch of this version
		job := outcomeOf(test, &Subject{Name: "patched", Device: "mps", wanted: wantedTorch{version: version, library: "libhostmps.so"}}, 2, "", "")
		job.Test.lacking, job.End.Skipped = []string{"2.6.0"}, "this torch cannot do DLPack"
		return job
	}
	onCPU := skipping
	onCPU.Subject = cpu
	for name, c := range map[string]struct {
		patches  []string
		outcomes []Job
		want     reports.Verdict
		words    string
	}{
		"all live": {test.patches, []Job{outcomeOf(test, mps, 2, "", ""), outcomeOf(test, mps, 4, "", "")}, reports.Passed,
			"failed: 0 of 2"},
		"one of two dies": {test.patches, []Job{outcomeOf(test, mps, 2, "", ""), outcomeOf(test, mps, 4, "died", "3 double-commit")},
			reports.Failed, "1 of 2 (95 %: 9 to 91 %), at 2, 4 threads, right values: 200; the first: 4 threads: died (signature 3 double-commit)"},
		"the patch is missing": {nil, []Job{outcomeOf(test, mps, 2, "died", "")}, reports.Skipped,
			"waits for stream-discipline; today: failed: 1 of 1"},
		"passes all the same":                {nil, []Job{outcomeOf(test, mps, 2, "", "")}, reports.Skipped, "waits for stream-discipline"},
		"skipped with the patch":             {test.patches, []Job{skipping}, reports.Failed, "it skipped itself: no such interface"},
		"skipped where the version lacks it": {test.patches, []Job{lacks("2.6.0")}, reports.Skipped, "this torch cannot do DLPack"},
		"skipped on a version that has it":   {test.patches, []Job{lacks("2.9.1")}, reports.Failed, "it skipped itself: this torch cannot do DLPack"},
		"skipped on the CPU":                 {nil, []Job{onCPU}, reports.Skipped, "no such interface"},
	} {
		t.Run(name, func(t *testing.T) {
			r := stageRun(c.patches...)
			require.NoError(t, r.Judge(c.outcomes[0].Test, c.outcomes))
			if check := r.Stage.Checks[0]; check.Verdict != c.want || !strings.Contains(check.Detail, c.words) {
				t.Errorf("%s: %s", check.Verdict, check.Detail)
			}
		})
	}
}

// Stock that must fail shows something only if it fails by an end that the test names, or as threads do that encode at once.
func TestWhatStockShows(t *testing.T) {
	must := Test{Name: "copies", stock: process.StockFails, ends: []string{"^wrong values"}}
	for name, c := range map[string]struct {
		test Test
		end  process.Result
		want reports.Verdict
		says string
	}{
		"encoded at once": {must, process.Result{Problem: "died by signal aborted: x", Signature: "6 encode-after-commit"}, reports.Passed, "the first: 4"},
		"a named end":     {must, process.Result{Problem: "wrong values: 1 of 2"}, reports.Passed, "the first: 4 threads"},
		"another end":     {must, process.Result{Problem: "errors: 4, the first: ImportError"}, reports.Skipped, "in no way that the test names"},
		"it lives":        {must, process.Result{}, reports.Skipped, "stock passed, so a pass"},
		"it may fail":     {Test{Name: "copies", stock: process.StockMay}, process.Result{Problem: "errors: 4"}, reports.Passed, "the first: 4 threads"},
		"it must live":    {Test{Name: "copies", stock: process.StockLives}, process.Result{Problem: "errors: 4"}, reports.Failed, "stock must pass here"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Runner{Env: &stage.Env{}, Stage: &reports.Stage{}}
			r.JudgeStock(c.test, []Job{{Test: c.test, Subject: &Subject{Name: "stock"}, Run: Run{Threads: 4}, End: c.end}})
			if got := r.Stage.Checks[0]; got.Verdict != c.want || !strings.Contains(got.Detail, c.says) {
				t.Errorf("%s: %s", got.Verdict, got.Detail)
			}
		})
	}
	for _, test := range Tests() {
		for _, end := range test.ends {
			if _, err := regexp.Compile(end); err != nil || test.stock != process.StockFails {
				t.Errorf("%s: %s: %s, %v", test.Name, test.stock, end, err)
			}
		}
	}
}
