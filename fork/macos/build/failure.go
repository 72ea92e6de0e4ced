package build

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/internal/words"
)

// What a failed build comes down to; each is wrapped by a BuildError.
var (
	// ErrDiskFull: a write found no space.
	ErrDiskFull = errors.New("the disk is full")
	// ErrCompilerKilled: somebody, mostly a kernel out of memory, killed a compiler.
	ErrCompilerKilled = errors.New("a compiler was killed, most likely because memory ran out")
	// ErrKilled: the step's own program was killed.
	ErrKilled = errors.New("it was killed by a signal from outside")
	// ErrConfigure: cmake refused.
	ErrConfigure = errors.New("cmake reports an error")
)

// BuildError says how a step of a build failed.
type BuildError struct {
	Step string
	Err  error  // ErrSources and those above, or run.Error's
	At   string // file:line of the first error, where there is one
	Text string // the first error itself
	Last string // the last lines of the output
	Log  string
	Fix  string
}

func (e *BuildError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "build, step %s: %v", e.Step, e.Err)
	if e.At != "" {
		fmt.Fprintf(&b, "\n  %s: %s", e.At, e.Text)
	} else if e.Text != "" {
		fmt.Fprintf(&b, "\n  %s", e.Text)
	}
	if e.Last != "" {
		fmt.Fprintf(&b, "\nlast lines:\n  %s", strings.ReplaceAll(e.Last, "\n", "\n  "))
	}
	fmt.Fprintf(&b, "\nall of it: %s\n%s", e.Log, e.Fix)
	return b.String()
}

func (e *BuildError) Unwrap() error { return e.Err }

// The words of the tools. The order in which they are looked for matters: a full disk and a killed compiler bring errors of
// other kinds with them.
var (
	noSpace = regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`)
	// gcc's driver, clang's, a shell's and ninja's words (since 1.13 it gives the exit code: 137 is 128 and SIGKILL).
	killed = regexp.MustCompile(
		`(?m)(Killed signal terminated program|error: unable to execute command: Killed|clang frontend command failed due to ` +
			`signal|^Killed\b|Killed: 9|^FAILED: \[code=137\])`)
	compilerError = regexp.MustCompile(`(?m)^(.+?):(\d+)(?::\d+)?: (?:fatal )?error: (.+)$`)
	// Linkers name no line: GNU ld, lld, gold and Apple's.
	linkError = regexp.MustCompile(
		`(?m)^.*(?:undefined reference to|undefined symbol: |Undefined symbols for architecture|ld: error: |ld: library not found|ld: cannot find ` +
			`|cannot find -l).*$`)
	// cmake's first line names the place, the indented ones that follow say what.
	cmakeError = regexp.MustCompile(`(?m)^CMake Error(?: at (\S+?):(\d+) \(.*\))?:[ \t]*(.*(?:\n(?:[ \t].*)?)*)`)
	// ninja names what failed, and the whole command; then come the command's own words.
	failedCommand = regexp.MustCompile(`(?m)^FAILED: (?:\[code=\d+\] )?(.*)\n.*\n(.*)$`)
	// What setup.py says before it ends by itself.
	setupError = regexp.MustCompile(`(?m)^(?:Could not find any of .*|RuntimeError: .*|ModuleNotFoundError: .*|ERROR: .*)$`)
)

// diagnose says what a failed step comes down to, from its output and its error;
// dir is the checkout: cmake names places from there, compilers from its build folder.
func diagnose(step, dir string, output []byte, err error, log string) *BuildError {
	failure := &BuildError{Step: step, Err: err, Log: log, Fix: "run it again to continue from here"}
	for line := range strings.Lines(words.LastLines(string(output), 12)) {
		failure.Last += words.Shorten(strings.TrimSuffix(line, "\n"), 300, cut) + "\n"
	}
	failure.Last = strings.TrimSuffix(failure.Last, "\n")
	// The command's own words are in the output, and its command line is in the log.
	if command := (*run.Error)(nil); errors.As(err, &command) {
		failure.Err = command.Err
	}
	place := func(pattern *regexp.Regexp, dir string) bool {
		match := pattern.FindSubmatch(output)
		if match == nil {
			return false
		}
		if len(match) == 1 {
			failure.Text = strings.TrimSpace(string(match[0]))
			return true
		}
		failure.Text = strings.Join(strings.Fields(string(match[3])), " ")
		if len(match[1]) > 0 {
			path := string(match[1])
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			failure.At = fmt.Sprintf("%s:%s", path, match[2])
		}
		return true
	}
	switch {
	case noSpace.Match(output) || errors.Is(err, syscall.ENOSPC):
		failure.Err, failure.Text = ErrDiskFull, lineOf(noSpace, output)
		failure.Fix = "free some space, then run it again: what is built is kept"
	case killed.Match(output):
		failure.Err, failure.Text = ErrCompilerKilled, lineOf(killed, output)
		failure.Fix = "run it again with fewer compilers at once: --jobs N"
	case run.Signalled(err) != 0:
		failure.Err = fmt.Errorf("%w (%v)", ErrKilled, run.Signalled(err))
	case place(compilerError, filepath.Join(dir, buildFolder)), place(linkError, ""):
		failure.Err = builds.ErrSources
		failure.Fix = "fix the source, then run it again: what is built is kept"
	case place(cmakeError, dir):
		failure.Err = ErrConfigure
	case place(setupError, ""):
	default:
		if match := failedCommand.FindSubmatch(output); match != nil {
			failure.Text = fmt.Sprintf("%s: %s", bytes.TrimSpace(match[1]), match[2])
		}
	}
	return failure
}

// lineOf is the line that a pattern is found in.
func lineOf(pattern *regexp.Regexp, output []byte) string {
	at := pattern.FindIndex(output)
	if at == nil {
		return ""
	}
	start := bytes.LastIndexByte(output[:at[0]], '\n') + 1
	line, _, _ := bytes.Cut(output[start:], []byte("\n"))
	return strings.TrimSpace(string(line))
}
