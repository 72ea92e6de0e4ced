package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/gittest"
	"mpsforge/internal/require"
	"mpsforge/internal/schemas/schematest"
	"mpsforge/patches"
	"mpsforge/validate"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mpsforge": func() { os.Exit(Main()) },
		"code":     func() { os.Exit(code(os.Args[1:])) },
		"field":    func() { os.Exit(field(os.Args[1])) },
		"events":   func() { os.Exit(onlyEvents()) },
		"kills":    func() { os.Exit(kills()) },
	})
}

// code runs a program and prints its exit code on standard error: scripts know only zero and the rest.
func code(args []string) int {
	command := exec.Command(args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "[exit %d]\n", command.ProcessState.ExitCode())
	return 0
}

// field prints the value at a dotted path of the result of a command that is on standard input; numbers index lists. The result must be
// as its schema says.
func field(path string) int {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = schematest.Validate("envelope", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, key := range strings.Split(path, ".") {
		switch inside := value.(type) {
		case map[string]any:
			value = inside[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index >= len(inside) {
				fmt.Fprintf(os.Stderr, "no %s in a list of %d\n", key, len(inside))
				return 1
			}
			value = inside[index]
		default:
			value = nil
		}
	}
	fmt.Println(value)
	return 0
}

// onlyEvents makes sure that standard input is a stream of events as their schema says, to the last line, and gives the exit code that it
// ends with.
func onlyEvents() int {
	type line struct {
		Kind  string     `json:"kind"`
		Event events.End `json:"event"`
	}
	var all []line
	for decoder := bufio.NewScanner(os.Stdin); decoder.Scan(); {
		var next line
		if err := errors.Join(schematest.Validate("event", decoder.Bytes()), json.Unmarshal(decoder.Bytes(), &next)); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s\n", err, decoder.Bytes())
			return 1
		}
		all = append(all, next)
	}
	if len(all) < 2 || all[0].Kind != "stream" || all[len(all)-1].Kind != "end" {
		fmt.Fprintln(os.Stderr, "not from a first event to a last one")
		return 1
	}
	fmt.Println("end", all[len(all)-1].Event.ExitCode)
	return 0
}

// gitConfig is git's settings, instead of the user's.
const gitConfig = "[user]\nname = Test\nemail = test@example.invalid\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n"

// TestScripts runs the behaviour of the commands as written in testdata/script.
func TestScripts(t *testing.T) {
	cache := require.One(cacheDir())(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			// Nothing of the machine's or the user's may show through.
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(env.WorkDir, "gitconfig"))
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("MPSFORGE_CACHE", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("LC_ALL", "C")
			env.Setenv(builds.AnySpace, "1") // stand-ins are built, which need none of PyTorch's 15 GB
			env.Setenv("KILLS", cmp.Or(os.Getenv("MPSFORGE_KILLS"), strconv.Itoa(shortKills)))
			env.Setenv("KILLS_SEED", cmp.Or(os.Getenv("MPSFORGE_KILLS_SEED"), "1"))
			env.Setenv("KILLS_FAULT", os.Getenv("MPSFORGE_KILLS_FAULT"))
			env.Setenv("KILLS_CACHE", cache)
			env.Setenv("KILLS_CHECKOUT", os.Getenv("MPSFORGE_KILLS_CHECKOUT"))
			repository, err := filepath.Abs("../..")
			if err != nil {
				return err
			}
			env.Setenv("REPOSITORY", repository)
			return os.WriteFile(filepath.Join(env.WorkDir, "gitconfig"), []byte(gitConfig), 0o644)
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "kills":
				return os.Getenv("MPSFORGE_KILLS") != "", nil
			case "checkout":
				return os.Getenv("MPSFORGE_KILLS_CHECKOUT") != "", nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"project": project(t), "verified": verified, "same": same, "wheel": wheel,
		},
	})
}

// standIn is a small stand-in for PyTorch, which scripts get copies of.
type standIn struct {
	dir string
	env map[string]string
}

// project gives the command of scripts that puts a small stand-in for PyTorch into ./upstream, tagged v2.9.1, a series of three patches for
// it into ./patches, which MPSFORGE_PATCHES then names, and a clone at the tag into ./pytorch. BASE is the tag's commit and BASE_TREE its tree.
// With debian there is an older baseline v2.6.0 too, whose commit OLDER names, with a series of one patch, and its source package in the cache.
func project(t *testing.T) func(*testscript.TestScript, bool, []string) {
	plain, debian := makeStandIn(t, false), makeStandIn(t, true)
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) > 1 || len(args) == 1 && args[0] != "debian" {
			ts.Fatalf("usage: project [debian]")
		}
		one := plain
		if len(args) == 1 {
			one = debian
		}
		ts.Check(ts.Exec("cp", "-a", one.dir+"/.", "."))
		ts.Check(ts.Exec("git", "-C", "pytorch", "remote", "set-url", "origin", ts.MkAbs("upstream")))
		ts.Setenv("MPSFORGE_PATCHES", ts.MkAbs("patches"))
		for name, value := range one.env {
			ts.Setenv(name, value)
		}
	}
}

func makeStandIn(t *testing.T, debian bool) standIn {
	t.Helper()
	made := standIn{t.TempDir(), map[string]string{}}
	check := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	in := func(name string) string { return filepath.Join(made.dir, name) }
	config := filepath.Join(t.TempDir(), "gitconfig")
	check(os.WriteFile(config, []byte(gitConfig), 0o644))
	up := gittest.Repo{T: t, Dir: in("upstream"), Env: []string{"GIT_CONFIG_GLOBAL=" + config, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05+0100", "GIT_COMMITTER_DATE=2026-01-02T03:04:05+0100"}}
	commit := func(subject string) {
		up.Commit(subject + "\n\nWhy it is needed.\n\nUpstream-Status: Pending\nScenario: none")
	}
	check(os.MkdirAll(up.Dir, 0o755))
	up.Git("init", "-q")
	numbered := func(n int, changed map[int]string) string {
		var b strings.Builder
		for i := 1; i <= n; i++ {
			if text, found := changed[i]; found {
				b.WriteString(text)
			} else {
				fmt.Fprintf(&b, "line %d\n", i)
			}
		}
		return b.String()
	}
	format := []string{"format-patch", "-q", "-k", "--no-stat", "--no-signature", "--zero-commit", "--full-index", "--no-renames"}
	if debian {
		up.Write("aten/stream.mm", "an older stream\n")
		commit("PyTorch")
		up.Git("tag", "v2.6.0")
		up.Write("aten/stream.mm", "an older stream, changed\n")
		commit("[MPS] Change streams")
		check(os.MkdirAll(in("patches/v2.6.0"), 0o755))
		up.Git(append(format, "--output", in("patches/v2.6.0/streams.patch"), "v2.6.0..HEAD")...)
		up.Git("reset", "-q", "--hard", "v2.6.0")
	}
	up.Write("aten/stream.mm", numbered(60, nil))
	up.Write("aten/event.mm", numbered(20, nil))
	up.Write("aten/old.mm", numbered(10, nil))
	up.Write("untouched.txt", "stays\n")
	commit("PyTorch")
	up.Git("tag", "v2.9.1")
	up.Write("aten/slots.h", "#pragma once\n")
	commit("[MPS] Add slots")
	up.Write("aten/stream.mm", numbered(60, map[int]string{10: "line ten\n", 50: "line fifty\nand_1(more);\n"}))
	up.Write("aten/event.mm", numbered(20, map[int]string{5: ""}))
	commit("[MPS] Change streams")
	up.Git("mv", "aten/old.mm", "aten/new.mm")
	up.Git("rm", "-q", "aten/slots.h")
	up.Write("aten/stream.mm", numbered(60, map[int]string{10: "line ten\n", 30: "line thirty\n", 50: "line fifty\nand_1(more);\n"}))
	commit("[MPS] Tidy up")

	dir := in("patches/v2.9.1")
	check(os.MkdirAll(dir, 0o755))
	out := in("mails")
	up.Git(append(format, "-o", out, "v2.9.1..HEAD")...)
	mails, err := filepath.Glob(filepath.Join(out, "*.patch"))
	check(err)
	slices.Sort(mails)
	names := []string{"slots", "streams", "tidy"}
	for i, mail := range mails {
		check(os.Rename(mail, filepath.Join(dir, names[i]+".patch")))
	}
	check(os.WriteFile(filepath.Join(dir, "series"), []byte("# part: fixes\nslots.patch\n# part: streams\nstreams.patch\ntidy.patch\n"), 0o644))
	record := func(name string, source *patches.Source, paths ...string) (base string) {
		base = up.Git("rev-parse", name+"^{commit}")
		read := func(path string) (string, []byte, error) {
			content, err := up.Run(nil, "cat-file", "blob", base+":"+path)
			if err != nil {
				return "", nil, os.ErrNotExist
			}
			return "100644", content, nil
		}
		baseline, digests, err := patches.RecordBaseline(patches.Baseline{Name: name, Tag: name, Commit: base,
			Tree: up.Git("rev-parse", base+"^{tree}"), Source: source},
			paths, nil, read)
		check(err)
		write := func(blobs patches.Blobs) {
			files, err := patches.FactFiles(baseline, &digests, blobs)
			check(err)
			_, err = patches.Rewrite(in(filepath.Join("patches", name)), files, nil)
			check(err)
		}
		write(patches.Blobs{Schema: 1, Tag: name})
		series, err := patches.Load(os.DirFS(in("patches")), name)
		check(err)
		blobs, err := patches.RecordBlobs(series, func(path string) ([]byte, error) { _, content, err := read(path); return content, err })
		check(err)
		write(blobs)
		return base
	}
	base := record("v2.9.1", nil, "aten/stream.mm", "aten/event.mm", "aten/old.mm", "aten/slots.h", "aten/new.mm")
	if debian {
		check(os.WriteFile(in("patches/v2.6.0/series"), []byte("streams.patch\n"), 0o644))
		archive := in("archive.tar.xz")
		up.Git("-c", "tar.tar.xz.command=xz -c", "archive", "--prefix=pytorch/", "-o", archive, "v2.6.0^{tree}")
		content, err := os.ReadFile(archive)
		check(err)
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		made.env["OLDER"] = record("v2.6.0", &patches.Source{Suite: "trixie", Package: "pytorch", File: "pytorch.orig.tar.xz", SHA256: sum,
			Size: int64(len(content))},
			"aten/stream.mm")
		cached := in(filepath.Join("cache/sources", sum))
		check(os.MkdirAll(cached, 0o755))
		check(os.Rename(archive, filepath.Join(cached, "pytorch.orig.tar.xz")))
	}
	up.Git("-C", "..", "clone", "-q", "--no-local", "upstream", "pytorch")
	up.Git("-C", "../pytorch", "checkout", "-q", "-b", "work", "v2.9.1")
	up.Git("checkout", "-q", "-b", "wanted", "main")
	up.Git("checkout", "-q", "--detach", "v2.9.1")
	made.env["BASE"] = base
	made.env["WANTED"] = up.Git("rev-parse", "wanted^{tree}")
	made.env["BASE_TREE"] = up.Git("rev-parse", base+"^{tree}")
	return made
}

// verified records that every stage passed on the series in ./patches for v2.9.1, which its stand-in for PyTorch is too small for.
func verified(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: verified")
	}
	series, err := patches.Load(os.DirFS(ts.MkAbs("patches")), "v2.9.1")
	ts.Check(err)
	run := patches.Run{SeriesDigest: series.Digest(), Form: "quick"}
	for _, name := range validate.StageNames() {
		run.Stages = append(run.Stages, patches.StageRun{Name: name, Verdict: "passed", Checks: map[string]int{"passed": 1}})
	}
	runs := patches.Runs{Schema: 1, Tag: series.Baseline.Tag}
	runs.Add(map[string]patches.Tree{"": {Exact: []string{}}}, run)
	text, err := patches.FileText(patches.RunsFile, runs)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(filepath.Join("patches/v2.9.1", patches.RunsFile)), text, 0o644))
}

// same compares a git revision's tree in a repository with an expected tree id: same REPO REVISION TREE.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: same REPO REVISION TREE")
	}
	command := exec.Command("git", "-C", ts.MkAbs(args[0]), "rev-parse", args[1]+"^{tree}")
	output, err := command.CombinedOutput()
	if err != nil {
		ts.Fatalf("%v\n%s", err, output)
	}
	if got := strings.TrimSpace(string(output)); (got == args[2]) == neg {
		ts.Fatalf("tree of %s is %s, compared with %s", args[1], got, args[2])
	}
}
