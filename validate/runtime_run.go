package validate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"mpsforge/fork/build"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/reports"
)

// hostFinding is a finding of the software Metal, as the scenario program prints it.
type hostFinding struct {
	Kind      int    `json:"kind"`
	Signature int    `json:"signature"`
	Message   string `json:"message"`
	First     string `json:"first"`
	Second    string `json:"second"`
	History   string `json:"history"`
}

// scenarioResult is what the scenario program prints at its end.
type scenarioResult struct {
	Seconds        float64       `json:"seconds"`
	Checked        int64         `json:"checked"`
	Wrong          int64         `json:"wrong"`
	FirstWrong     string        `json:"first_wrong"`
	Errors         []string      `json:"errors"`
	CommandBuffers int64         `json:"command_buffers"`
	Commands       int64         `json:"commands"`
	FindingCount   int64         `json:"finding_count"`
	Findings       []hostFinding `json:"findings"`
	Library        string        `json:"library"`
	Stamp          string        `json:"stamp"`
}

// ending is how one process of a scenario ended, in the report's words. The zero value of problem means that it lived,
// with right values, and that no checker found anything.
type ending struct {
	problem   string          // one line
	kind      reports.Outcome // of the problem
	signature string          // of the crash, when there is one that is known
	missing   string          // an operator that it needs and whose kernel the build does not have
	races     int             // of ThreadSanitizer
	onlyRaces bool            // they are the problem, and all else is well
	result    scenarioResult
	output    string // the end of its standard error
	seconds   float64
}

// finished tells the end of a process as a part of a step. Bad news may be expected, of stock sources and the like.
func (e ending) finished(expected bool) events.PartFinished {
	end := events.PartFinished{Outcome: events.OK, Signature: e.signature}
	if e.problem != "" {
		named := map[reports.Outcome]events.Outcome{reports.WrongValues: events.WrongValues, reports.Crashed: events.Crashed, reports.Hung: events.Hung}
		end.Outcome, end.Expected = cmp.Or(named[e.kind], events.Failed), expected
		end.Detail, _, _ = strings.Cut(e.problem, "\n")
	}
	return end
}

// threadsColumn is the column of a part with so many threads.
func threadsColumn(threads int) string {
	if threads == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", threads)
}

// noKernel is what MPSFallback.mm says of an operator without a kernel for MPS.
var noKernel = regexp.MustCompile(`The operator 'aten::([^']+)' is not currently implemented for the MPS device`)

// notRun tells why a run with a missing kernel proves nothing, where the checkout lacks sources; empty otherwise, so
// that a kernel missing from a whole checkout is a failure.
func (h hostRun) notRun(e ending) string {
	var absent []string
	for _, excluded := range h.built.Excluded {
		if excluded.Reason == build.NotThere {
			absent = append(absent, filepath.Base(excluded.Path))
		}
	}
	if e.missing == "" || len(absent) == 0 {
		return ""
	}
	return fmt.Sprintf("aten::%s has no kernel here; sources that are not in the checkout: %s", e.missing, strings.Join(absent, ", "))
}

// hostRun is one process to start.
type hostRun struct {
	built      *build.HostBuild
	tools      *build.Root
	scenario   string
	threads    int
	iterations int
	seed       uint64
	warm       bool
	more       []string      // of the environment
	limit      time.Duration // what is not done by then hangs
}

// command is the run as a user can start it again.
func (h hostRun) command() run.Command {
	args := []string{h.scenario, "--threads", fmt.Sprint(h.threads), "--iterations", fmt.Sprint(h.iterations), "--seed", fmt.Sprint(h.seed)}
	if h.warm {
		args = append(args, "--warm", "1")
	}
	return run.Command{Name: h.built.Driver, Args: args}
}

// environment of the run: the software Metal aborts as Metal does, delays widen every window, and a blocked call that
// nothing can end any more is a deadlock after some seconds.
func (h hostRun) environment() []string {
	return slices.Concat([]string{
		fmt.Sprintf("MPSFORGE_METAL_SEED=%d", h.seed), "MPSFORGE_METAL_MAX_DELAY_US=100", "MPSFORGE_METAL_ON_VIOLATION=abort", "MPSFORGE_METAL_WATCHDOG_MS=20000",
		"PYTORCH_ENABLE_MPS_FALLBACK=0",
	}, h.sanitizers(), h.more)
}

// sanitizers are the settings of the sanitizers and of libtorch's own libraries.
func (h hostRun) sanitizers() []string {
	symbolizer := " external_symbolizer_path=" + h.tools.Tool("llvm-symbolizer")
	return []string{
		// Debian's libtorch brings UCX, which catches the signals of crashes otherwise.
		"UCX_ERROR_SIGNALS=SIGBUS", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
		"TSAN_OPTIONS=exitcode=66 report_thread_leaks=0 report_signal_unsafe=0 history_size=4" + symbolizer,
		"ASAN_OPTIONS=exitcode=67 detect_leaks=0" + symbolizer,
	}
}

// run starts the process and judges its end.
func (h hostRun) run(ctx context.Context) (ending, error) {
	limited, cancel := context.WithTimeout(ctx, h.limit)
	defer cancel()
	command := h.command()
	command.Env = run.Environment(h.environment(), func(name string) bool {
		return strings.HasPrefix(name, "PYTORCH_") || strings.HasPrefix(name, "MPS_") || strings.HasPrefix(name, "MPSFORGE_") || name == "LD_PRELOAD"
	})
	started := time.Now()
	found, err := command.Run(limited)
	end := ending{seconds: time.Since(started).Seconds(), output: string(found.Stderr), races: strings.Count(string(found.Stderr), "WARNING: ThreadSanitizer:")}
	if ctx.Err() != nil {
		return end, ctx.Err()
	}
	code := run.ExitCode(err)
	// ThreadSanitizer gives the same code to a crash, of which there is no result.
	sanitized := code == 66 && end.races > 0 && len(found.Stdout) > 0
	switch {
	case limited.Err() != nil:
		end.kind, end.problem = reports.Hung, fmt.Sprintf("hung: not done after %s", h.limit)
		return end, nil
	case err != nil && !sanitized:
		end.crashed(err)
		return end, nil
	}
	if err := json.Unmarshal(found.Stdout, &end.result); err != nil {
		return end, fmt.Errorf("%s: its result: %w: %.200q", command, err, found.Stdout)
	}
	if err := h.proveIdentity(end.result); err != nil {
		return end, err
	}
	r := end.result
	switch {
	case len(r.Errors) > 0:
		end.kind, end.problem = reports.Errors, fmt.Sprintf("errors: %d, the first: %s", len(r.Errors), r.Errors[0])
		if match := noKernel.FindStringSubmatch(r.Errors[0]); match != nil && slices.Contains(h.built.Dropped, match[1]) {
			end.missing = match[1]
		}
	case r.Wrong > 0:
		end.kind, end.problem = reports.WrongValues, fmt.Sprintf("wrong values: %d of %d, the first: %s", r.Wrong, r.Checked, r.FirstWrong)
	case r.FindingCount > 0:
		f := r.Findings[0]
		end.kind, end.problem = f.outcome(), fmt.Sprintf("findings of the software Metal: %d, the first: %s (%s; %s)", r.FindingCount, f.Message, f.First, f.Second)
		end.signature = signatureText(f.Signature)
	case end.races > 0:
		end.onlyRaces = true
		end.kind, end.problem = reports.Race, fmt.Sprintf("data races by ThreadSanitizer: %d, the first in %s", end.races, firstRace(end.output))
	case r.Checked == 0:
		end.kind, end.problem = reports.Errors, "it checked no value"
	}
	return end, nil
}

// crashed names the crash by its signature, or by the signal.
func (e *ending) crashed(err error) {
	e.kind, e.problem = reports.Errors, "ended by itself: "+firstLine(err)
	var failure *run.Error
	if errors.As(err, &failure) {
		e.problem = fmt.Sprintf("exit code %d", failure.ExitCode)
		if signal := signalOf(failure.Err); signal != "" {
			e.kind, e.problem = reports.Crashed, "died by "+signal
		}
	}
	for _, sanitizer := range []string{"AddressSanitizer", "ThreadSanitizer"} {
		if line := lineWith(e.output, "ERROR: "+sanitizer); line != "" {
			e.kind, e.problem = reports.Crashed, "memory error by "+sanitizer+": "+line
		}
	}
	if found, err := classify("standard error", []byte(e.output)); err == nil && len(found.Matches) > 0 {
		e.signature = found.Matches[0].Signature
		e.problem += ": " + found.Matches[0].Text
	} else if line := lineWith(e.output, "mpsforge"); line != "" {
		e.problem += ": " + line
	} else if line := run.LastLines(e.output, 1); line != "" {
		e.problem += ": " + shorten(line)
	}
}

func signalOf(err error) string {
	var exit interface{ Sys() any }
	if !errors.As(err, &exit) {
		return ""
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return ""
}

func lineWith(text, words string) string {
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, words) {
			return shorten(strings.TrimSpace(line))
		}
	}
	return ""
}

// firstRace gives the first two places of the first report that are PyTorch's.
func firstRace(output string) string {
	var places []string
	for _, line := range strings.Split(output, "\n") {
		_, place, found := strings.Cut(line, "aten/src/ATen/")
		if !found || !strings.Contains(line, "#") {
			continue
		}
		place, _, _ = strings.Cut(place, " ")
		if len(places) == 0 || places[0] != place {
			places = append(places, place)
		}
		if len(places) == 2 {
			break
		}
	}
	if len(places) == 0 {
		return "code outside PyTorch's sources"
	}
	return strings.Join(places, " and ")
}

func signatureText(number int) string {
	if signature := signatureNumber(number); signature != nil {
		return signature.Name()
	}
	return ""
}

// proveIdentity compares what the loaded library said of itself with what was built.
func (h hostRun) proveIdentity(r scenarioResult) error {
	want, err := h.built.Stamp.Text()
	if err != nil {
		return err
	}
	if r.Stamp != want {
		return fmt.Errorf("the loaded library %s is another build: expected stamp %s, found %s", r.Library, want, r.Stamp)
	}
	if loaded, err := filepath.EvalSymlinks(r.Library); err != nil {
		return fmt.Errorf("the loaded library: %w", err)
	} else if want, err := filepath.EvalSymlinks(h.built.Library); err != nil || loaded != want {
		return fmt.Errorf("the process loaded %s, not %s", loaded, h.built.Library)
	}
	return nil
}

// keep writes the output of a failed run beside the report and gives the path.
func (e ending) keep(dir, name string) (string, error) {
	if dir == "" || e.output == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".txt")
	return path, os.WriteFile(path, []byte(e.output), 0o644)
}
