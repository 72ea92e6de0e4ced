package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
)

// slowHowTos is the variable that has the slow blocks run, too.
const slowHowTos = "MPSFORGE_HOWTO_SLOW"

// step is a command of a how-to, with what it is to print and its exit code.
type step struct {
	line    int
	command string
	prints  []string // in this order
	code    int
	slow    bool
}

var exitCode = regexp.MustCompile(`^\(exit code (\d+)\)$`)

// parseSteps reads the blocks "console" and "console slow" of a page: lines that begin with "$ " are commands, others what they
// print, and "(exit code N)" is said where it is not 0. What is printed before, between and after those lines is left open.
func parseSteps(text string) ([]step, error) {
	var steps []step
	inside, slow := false, false
	for i, line := range strings.Split(text, "\n") {
		switch match := exitCode.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "```"):
			kind := strings.TrimPrefix(line, "```")
			if kind == "sh" || kind == "bash" {
				return nil, fmt.Errorf("line %d: commands go into blocks of the kind console, where a test runs them", i+1)
			}
			inside, slow = kind == "console" || kind == "console slow", kind == "console slow"
		case !inside:
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, step{line: i + 1, command: line[2:], slow: slow})
		case len(steps) == 0 || steps[len(steps)-1].slow != slow:
			return nil, fmt.Errorf("line %d: a block begins with a command", i+1)
		case match != nil:
			steps[len(steps)-1].code, _ = strconv.Atoi(match[1])
		case strings.TrimSpace(line) != "":
			steps[len(steps)-1].prints = append(steps[len(steps)-1].prints, strings.TrimSpace(line))
		}
	}
	if len(steps) == 0 {
		return nil, errors.New("no commands")
	}
	return steps, nil
}

// environmentMissing is the exit code of mpsforge for what this machine lacks, such as a root of Debian's packages.
const environmentMissing = 5

var errEnvironment = errors.New("this machine lacks what the command needs")

// proseOf takes the diffs and commands out of a page.
func proseOf(text string) string {
	return regexp.MustCompile("(?ms)^```(?:diff|console|console slow)\n.*?^```$").ReplaceAllString(text, "")
}

// check runs the step's command in the folder and says what is wrong with what came of it.
func (s step) check(ctx context.Context, dir string, environment []string) error {
	ctx, cancel := context.WithTimeout(ctx, map[bool]time.Duration{false: 5 * time.Minute, true: 2 * time.Hour}[s.slow])
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", s.command)
	command.Dir, command.Env = dir, environment
	said, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if code := command.ProcessState.ExitCode(); code == environmentMissing && code != s.code {
		return fmt.Errorf("%w:\n%s", errEnvironment, said)
	} else if code != s.code {
		return fmt.Errorf("exit code %d, not %d; it printed:\n%s", code, s.code, said)
	}
	rest := string(said)
	for _, want := range s.prints {
		_, after, found := strings.Cut(rest, want)
		if !found {
			return fmt.Errorf("%q is not, or not in that order, in what it printed:\n%s", want, said)
		}
		rest = after
	}
	return nil
}

// clone makes a fresh clone of what is committed here.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mpsforge")
	if said, err := exec.Command("git", "clone", "--quiet", "..", dir).CombinedOutput(); err != nil {
		t.Skipf("SKIP %s: no clone of this repository: %v\n%s", t.Name(), err, said)
	}
	return dir
}

// The commands of each how-to and of the transcripts do what the page says, one page after another, each in a fresh clone.
func TestHowTosWork(t *testing.T) {
	if os.Getenv("MPSFORGE_LONG_TESTS") == "" {
		t.Skip("SKIP TestHowTosWork: it builds and runs the commands of the how-tos, for five minutes; asked for by MPSFORGE_LONG_TESTS=1, as make unit does")
	}
	if said, err := exec.Command("git", "-C", "..", "status", "--porcelain").Output(); err != nil {
		t.Skipf("SKIP TestHowTosWork: git does not know this folder: %v", err)
	} else if len(said) > 0 {
		t.Logf("what is not committed is not in the clones:\n%s", said)
	}
	pages := []string{"transcripts.md"}
	for _, pattern := range []string{"dev/howto/*.md", "howto/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 6 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		pages = append(pages, found...)
	}
	// Go's cache keeps what one clone has compiled for the next one only if the folder's name does not count.
	environment := append(os.Environ(), "GOFLAGS=-trimpath", "NO_COLOR=1")
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			text := require.One(os.ReadFile(page))(t)
			steps, err := parseSteps(string(text))
			if err != nil {
				t.Fatalf("docs/%s: %v", page, err)
			}
			dir, ran := clone(t), 0
			for _, s := range steps {
				if s.slow && os.Getenv(slowHowTos) == "" {
					t.Logf("SKIP docs/%s:%d: slow; %s=1 runs it: %s", page, s.line, slowHowTos, s.command)
					continue
				}
				started := time.Now()
				if err := s.check(t.Context(), dir, environment); errors.Is(err, errEnvironment) {
					t.Skipf("SKIP docs/%s:%d: %s: %v", page, s.line, s.command, err)
				} else if err != nil {
					t.Fatalf("docs/%s:%d: %s: %v", page, s.line, s.command, err)
				}
				t.Logf("%5.1f s  %s", time.Since(started).Seconds(), s.command)
				ran++
			}
			if ran < 2 {
				t.Errorf("docs/%s: only %d commands that are not slow", page, ran)
			}
		})
	}
}

// The test of the how-tos finds what is wrong.
func TestBrokenHowTosAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"```console\n$ echo one; echo two\none\ntwo\n```\n":    "",
		"```console\n$ echo one; exit 3\n(exit code 3)\n```\n": "",
		"```text\n$ false\n```\n```console\n$ true\n```\n":     "",
		"```console\n$ false\n```\n":                           "exit code 1, not 0",
		"```console\n$ true\n(exit code 4)\n```\n":             "exit code 0, not 4",
		"```console\n$ echo one; echo two\ntwo\none\n```\n":    "not in that order",
		"```console\n$ echo one\nthree\n```\n":                 "is not, or not",
		"```console\n$ exit 5\n```\n":                          "this machine lacks",
		"```console\n$ no-such-program-here\n```\n":            "exit code 127, not 0",
		"```sh\nls\n```\n":                                     "of the kind console",
		"```console\nls\n```\n":                                "begins with a command",
		"```console\n$ true\n```\n```console slow\nls\n```\n":  "begins with a command",
		"nothing": "no commands",
	} {
		steps, err := parseSteps(text)
		for _, s := range steps {
			if err == nil {
				err = s.check(t.Context(), t.TempDir(), os.Environ())
			}
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
