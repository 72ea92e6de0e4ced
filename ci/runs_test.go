package ci_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/validate"
)

// standIn writes a program that writes its arguments into the file calls beside it, a line a call, and ends with the exit code that
// codes has for the first of these that the line begins with.
func standIn(t *testing.T, dir string, codes map[string]string) string {
	t.Helper()
	script := "#!/bin/sh\necho \"$*\" >>" + filepath.Join(dir, "calls") + "\ncase \"$*\" in\n"
	for call, code := range codes {
		script += "\"" + call + "\"*) exit " + code + " ;;\n"
	}
	path := filepath.Join(dir, "mpsforge")
	require.NoError(t, os.WriteFile(path, []byte(script+"esac\n"), 0o755))
	return path
}

// testTree runs test-tree.sh on a cache with or without a tree, and gives the exit code, the output and the calls of mpsforge.
func testTree(t *testing.T, withTree bool, codes map[string]string, variables ...string) (code int, output, calls string) {
	t.Helper()
	dir := t.TempDir()
	tree := filepath.Join(dir, "cache/trees/v2.9.1")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "cache"), 0o755))
	if withTree {
		require.NoError(t, os.MkdirAll(tree, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(tree, "file"), nil, 0o644))
	}
	command := exec.Command("sh", "test-tree.sh", standIn(t, dir, codes), filepath.Join(dir, "cache"), "v2.9.1", filepath.Join(dir, "out"))
	command.Env = append(os.Environ(), variables...)
	said, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if withTree {
		if _, err := os.Stat(filepath.Join(tree, "file")); err != nil {
			t.Errorf("the cache's tree was touched: %v", err)
		}
	}
	made, _ := os.ReadFile(filepath.Join(dir, "calls")) // there is none where nothing was called
	return command.ProcessState.ExitCode(), string(said), strings.ReplaceAll(string(made), dir+"/", "")
}

// make test-v2.9.1 works on a copy of the cache's tree, runs all stages of Linux, operators by three seeds, records that, and makes
// both overlays.
func TestTreeIsTested(t *testing.T) {
	code, output, calls := testTree(t, true, nil)
	const verify = " --quick --seed SEED --keep-going --checkout out/tree --patches patches --report out/"
	first, later := strings.Replace(verify, "SEED", "11", 1), "verify --stages checkout,operators"+verify
	want := "unapply --checkout out/tree --quiet\n" +
		"lint --baseline v2.9.1 --patches patches\n" +
		"apply --checkout out/tree --baseline v2.9.1 --patches patches\n" +
		"status --checkout out/tree --patches patches\n" +
		"export --checkout out/tree --patches patches --out patches/v2.9.1 --check\n" +
		"verify --require series,checkout,reference,conformance,mac,runtime,python,bench,operators,one-thread,overlay" + first + "all.json\n" +
		strings.Replace(later, "SEED", "12", 1) + "operators-12.json\n" +
		strings.Replace(later, "SEED", "13", 1) + "operators-13.json\n" +
		"baseline runs --checkout out/tree --patches patches --excuse device,upstream out/all.json out/operators-12.json out/operators-13.json\n" +
		"overlay build --checkout out/tree --patches patches --out out/linux --platform linux\n" +
		"overlay build --checkout out/tree --patches patches --out out/macos --platform macos\n"
	if code != 0 || calls != want {
		t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, output, calls, want)
	}
	_, _, calls = testTree(t, true, nil, "FORM=long", "SEEDS=5")
	if strings.Contains(calls, "--quick") || strings.Count(calls, "verify ") != 1 || !strings.Contains(calls, "overlay --seed 5 ") {
		t.Errorf("the long form with one seed:\n%s", calls)
	}
}

// What fails is recorded, and is the exit code in the end. A series that does not fit ends it before.
func TestFailuresOfTheTreeAreRecorded(t *testing.T) {
	for call, c := range map[string]struct {
		says     string
		code     int
		recorded bool
	}{
		"verify --require":                       {"4", 4, true},
		"verify --stages":                        {"5", 5, true},
		"baseline runs":                          {"3", 3, true},
		"overlay build":                          {"1", 1, true},
		"apply":                                  {"3", 3, false},
		"export":                                 {"1", 1, false},
		"verify --require series,checkout":       {"2", 2, false},
		"lint --baseline v2.9.1 --patches patch": {"1", 1, false},
	} {
		code, output, calls := testTree(t, true, map[string]string{call: c.says})
		if code != c.code || strings.Contains(calls, "baseline runs") != c.recorded {
			t.Errorf("%s ends with %s: exit code %d, %s\n%s", call, c.says, code, output, calls)
		}
	}
}

// Without what it needs nothing is begun, and it is said how to get that.
func TestTreeThatCannotBeTested(t *testing.T) {
	for name, c := range map[string]struct {
		withTree bool
		variable string
		code     int
		want     string
	}{
		"no tree":             {false, "", 5, "fetch --baseline v2.9.1 --from FOLDER --checkout "},
		"a form that is none": {true, "FORM=short", 2, `FORM is "short", and must be quick or long`},
	} {
		code, output, calls := testTree(t, c.withTree, nil, c.variable)
		if code != c.code || !strings.Contains(output, c.want) || calls != "" {
			t.Errorf("%s: exit code %d, %s\n%s", name, code, output, calls)
		}
	}
}

// A release of a series that was not verified as it is, is refused before anything is built, and says which stages lack. One whose
// stages have passed goes on, here to a target that there is not; and so does a rehearsal.
func TestReleaseNeedsTheRuns(t *testing.T) {
	repository := require.One(filepath.Abs(".."))(t)
	clone := filepath.Join(t.TempDir(), "clone")
	sh(t, repository, "git", "clone", "-q", "--shared", repository, clone)
	series := require.One(patches.Load(os.DirFS(filepath.Join(clone, "patches")), patches.DefaultBaseline))(t)
	release := func(version, digest string) string {
		run := patches.Run{SeriesDigest: digest, Form: "quick"}
		for _, name := range validate.StageNames() {
			run.Stages = append(run.Stages, patches.StageRun{Name: name, Verdict: "passed", Checks: map[string]int{"passed": 1}})
		}
		runs := patches.Runs{Schema: 1, Tag: series.Baseline.Tag}
		runs.Add(map[string]patches.Tree{"": {Exact: []string{}}}, run)
		text := require.One(patches.FileText(patches.RunsFile, runs))(t)
		require.NoError(t, os.WriteFile(filepath.Join(clone, "patches", patches.DefaultBaseline, patches.RunsFile), text, 0o644))
		command := exec.Command("sh", filepath.Join(repository, "ci/release.sh"), version, "out", "nonsense")
		command.Dir = clone
		output, err := command.CombinedOutput()
		if err == nil {
			t.Errorf("%s: it was made", version)
		}
		return string(output)
	}
	const goesOn = `target "nonsense" is neither`
	if said := release("v1.2.3", "of an older series"); !strings.Contains(said,
		"v2.9.1: the series has changed since these stages were run: series, checkout") || !strings.Contains(said, "release: v1.2.3 is refused") ||
		strings.Contains(said, goesOn) {
		t.Errorf("the series has changed: %s", said)
	}
	require.Contains(t, release("v1.2.3", series.Digest()), goesOn, "every stage has passed")
	require.Contains(t, release("v0.0.0", "of an older series"), goesOn, "a rehearsal")
}
