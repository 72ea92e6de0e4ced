// Package process says in the report's words how a process under test ended: with right values, a crash, a hang, a finding of
// a checker. It starts no process, and knows neither scenarios nor Python tests.
package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/internal/words"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/crash"
)

// Result is how one process ended, in the report's words. One without a problem lived, with right values, and no checker found
// anything.
type Result struct {
	Threads   int
	Path      string           // of several ways to compute the same; empty where there is one
	Problem   string           // one line
	Kind      reports.Outcome  // of the problem
	Signature string           // of the crash, when there is one that is known
	Skipped   string           // why the process proves nothing
	Races     int              // of ThreadSanitizer
	OnlyRaces bool             // they are the problem, and all else is well
	Values    int64            // compared
	Found     []script.Finding // by the software Metal
	Output    string           // the end of its standard error
	Seconds   float64
	Again     string // the command that starts it once more
}

// traceVariable has host builds write traces; see native/objc/engine.h.
const traceVariable = "MPSFORGE_METAL_TRACE"

// settings begin the variables of the software Metal and of PyTorch.
var settings = []string{"PYTORCH_", "MPS_", "MPSFORGE_"}

func isSetting(name string) bool {
	return slices.ContainsFunc(settings, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Drop reports whether a variable of the caller's environment is kept from the programs of a stage, which say themselves how they run. The
// caller may have them write traces.
func Drop(name string) bool {
	return (isSetting(name) && name != traceVariable) || name == "LD_PRELOAD"
}

// Again is the command line that starts a process once more, with what its environment sets of the software Metal and of PyTorch:
// without that it may run as none did. Of two settings of a name the later counts.
func Again(environment []string, command run.Command) string {
	var names []string
	values := map[string]string{}
	for _, setting := range environment {
		name, _, _ := strings.Cut(setting, "=")
		if !isSetting(name) {
			continue
		}
		if values[name] == "" {
			names = append(names, name)
		}
		values[name] = setting
	}
	var all strings.Builder
	for _, name := range names {
		all.WriteString(values[name] + " ")
	}
	return all.String() + command.String()
}

// Finished gives the end of a process as a part of a step. Bad news may be expected, of stock sources and the like.
func (r Result) Finished(expected bool) events.PartFinished {
	end := events.PartFinished{Outcome: events.OK, Signature: r.Signature}
	if r.Problem != "" {
		named := map[reports.Outcome]events.StepOutcome{reports.OutcomeWrongValues: events.WrongValues, reports.OutcomeCrashed: events.Crashed,
			reports.OutcomeHung: events.Hung}
		end.Outcome, end.Expected = cmp.Or(named[r.Kind], events.Failed), expected
		end.Detail = words.FirstLine(r.Problem)
	}
	return end
}

// ThreadsColumn is the column of a part with so many threads.
func ThreadsColumn(threads int) string {
	if threads == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", threads)
}

// Crashed names the crash by its signature, or by the signal.
func (r *Result) Crashed(err error) {
	r.Kind, r.Problem = reports.OutcomeFailed, "ended by itself: "+words.FirstLine(err.Error())
	var failure *run.Error
	if errors.As(err, &failure) {
		r.Problem = fmt.Sprintf("exit code %d", failure.ExitCode)
		if signal := run.Signalled(failure.Err); signal != 0 {
			r.Kind, r.Problem = reports.OutcomeCrashed, "died by signal "+signal.String()
		}
	}
	for _, sanitizer := range []string{"AddressSanitizer", "ThreadSanitizer"} {
		if line := lineWith(r.Output, "ERROR: "+sanitizer); line != "" {
			r.Kind, r.Problem = reports.OutcomeCrashed, "memory error by "+sanitizer+": "+line
		}
	}
	if found, err := crash.Read("standard error", []byte(r.Output)); err == nil && len(found.Matches) > 0 {
		r.Signature = found.Matches[0].Signature
		r.Problem += ": " + found.Matches[0].Text
	} else if line := lineWith(r.Output, "  what():  "); line != "" { // an exception that nothing catches: frames with paths may follow
		r.Problem += ": " + line
	} else if line := lineWith(r.Output, "mpsforge"); line != "" {
		r.Problem += ": " + line
	} else if line := cmp.Or(words.LastLines(beforeStacks(r.Output), 1), words.LastLines(r.Output, 1)); line != "" {
		r.Problem += ": " + crash.Shorten(line)
	}
}

// beforeStacks is what a process said before Python's faulthandler printed its stacks.
func beforeStacks(output string) string {
	before, _, found := strings.Cut(output, "Fatal Python error:")
	if !found {
		return ""
	}
	return before
}

func lineWith(text, words string) string {
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, words) {
			return crash.Shorten(strings.TrimSpace(line))
		}
	}
	return ""
}

// Keep writes the output of a failed run beside the report and gives the path.
func (r Result) Keep(dir, name string) (string, error) {
	if dir == "" || r.Output == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".txt")
	return path, os.WriteFile(path, []byte(r.Output), 0o644)
}
