package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/run"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/crash"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/process"
)

// scenarioResult is what the scenario program prints at its end.
type scenarioResult struct {
	Seconds        float64          `json:"seconds"`
	Checked        int64            `json:"checked"`
	Wrong          int64            `json:"wrong"`
	FirstWrong     string           `json:"first_wrong"`
	Errors         []string         `json:"errors"`
	WarmErrors     []string         `json:"warm_errors"` // wrong values of the run before, by one thread, too
	CommandBuffers int64            `json:"command_buffers"`
	Commands       int64            `json:"commands"`
	FindingCount   int64            `json:"finding_count"`
	Findings       []script.Finding `json:"findings"`
	Library        string           `json:"library"`
	Stamp          string           `json:"stamp"`
	Records        []script.Record  `json:"records"` // of programs of the reference pool
}

// noKernel is what MPSFallback.mm says of an operator without a kernel for MPS.
var noKernel = regexp.MustCompile(`The operator 'aten::([^']+)' is not currently implemented for the MPS device`)

// notRun says why a run proves nothing without this kernel, where the checkout lacks sources; empty otherwise, so
// that a kernel missing from a whole checkout is a failure.
func (h hostRun) notRun(kernel string) string {
	var absent []string
	for _, excluded := range h.built.Excluded {
		if excluded.Reason == host.NotThere {
			absent = append(absent, filepath.Base(excluded.Path))
		}
	}
	if len(absent) == 0 {
		return ""
	}
	return fmt.Sprintf("aten::%s has no kernel here; sources that are not in the checkout: %s", kernel, strings.Join(absent, ", "))
}

// errNotCore is of a scenario that would fail in any build of some sources, whatever the patches on them: no ablation may count that.
var errNotCore = errors.New("the scenario needs a kernel that builds of the core lack; name its source file among the core in " +
	"patches/VERSION/host.json")

// noStub is what libtorch says where no source that is compiled registers the kernel.
const noStub = "DispatchStub: missing kernel for mps"

// lacksCore says whether the error is of a kernel whose source the build was not asked to compile. An operator that these sources do
// not register for MPS at all is not one: the series may add it.
func (h hostRun) lacksCore(text string) bool {
	if !slices.ContainsFunc(h.built.Excluded, func(e host.Excluded) bool { return e.Reason == host.NotNeeded }) {
		return false
	}
	return strings.Contains(text, noStub) || h.dropped(text) != ""
}

// dropped is the operator that the error says has no kernel, if it was taken out of the build's registration; else it is empty.
func (h hostRun) dropped(text string) string {
	match := noKernel.FindStringSubmatch(text)
	if match == nil || !slices.Contains(h.built.Dropped, match[1]) {
		return ""
	}
	return match[1]
}

// hostRun is one process to start.
type hostRun struct {
	built      *host.Build
	tools      *host.Root
	scenario   string
	threads    int
	iterations int
	seed       uint64
	warm       bool
	more       []string      // of the environment
	limit      time.Duration // what is not done by then hangs
	programs   []string      // of the reference pool, files, to be run instead of a scenario
	record     bool          // the times and values of their steps
	series     bool          // built with the whole series
	under      []string      // a program that starts it, with flags of its own
}

// command is the run as a user can start it again.
func (h hostRun) command() run.Command {
	args := []string{h.scenario, "--threads", fmt.Sprint(h.threads), "--iterations", fmt.Sprint(h.iterations), "--seed", fmt.Sprint(h.seed)}
	if h.warm {
		args = append(args, "--warm", "1")
	}
	if len(h.programs) > 0 {
		args = append([]string{"--program"}, h.programs...)
		if h.record {
			args[0] = "--record"
		}
	}
	words := slices.Concat(h.under, []string{h.built.Driver}, args)
	return run.Command{Name: words[0], Args: words[1:]}
}

// environment is what the run's process gets beside the caller's own.
func (h hostRun) environment() []string {
	return slices.Concat(hosts.Environment(h.tools, h.seed, h.series), h.more)
}

// run starts the process and judges its end.
func (h hostRun) run(ctx context.Context) (process.Result, scenarioResult, error) {
	limited, cancel := context.WithTimeout(ctx, h.limit)
	defer cancel()
	command := h.command()
	environment := h.environment()
	command.Env = run.Environment(environment, process.Drop)
	var r scenarioResult
	started := time.Now()
	found, err := command.Run(limited)
	end := process.Result{Threads: h.threads, Again: process.Again(environment, command), Seconds: time.Since(started).Seconds(),
		Output: string(found.Stderr), Races: strings.Count(string(found.Stderr), "WARNING: ThreadSanitizer:")}
	if ctx.Err() != nil {
		return end, r, ctx.Err()
	}
	code := run.ExitCode(err)
	// ThreadSanitizer gives the same code to a crash, of which there is no result.
	sanitized := code == 66 && end.Races > 0 && len(found.Stdout) > 0
	switch {
	case limited.Err() != nil:
		end.Kind, end.Problem = reports.OutcomeHung, fmt.Sprintf("hung: not done after %s", h.limit)
		return end, r, nil
	case h.notTheSources(code, err) != "":
		return end, r, fmt.Errorf("a process ended in a way that says nothing about the sources: %s: %w", h.notTheSources(code, err), err)
	case err != nil && !sanitized:
		end.Crashed(err)
		return end, r, nil
	}
	if err := json.Unmarshal(found.Stdout, &r); err != nil {
		return end, r, fmt.Errorf("%s: its result: %w: %.200q", command, err, found.Stdout)
	}
	if err := h.proveIdentity(r); err != nil {
		return end, r, err
	}
	end.Values, end.Found = r.Checked, r.Findings
	if h.series { // stock passes some scenarios at the second time only
		r.Errors = append(r.Errors, r.WarmErrors...)
	}
	switch {
	case len(r.Errors) > 0:
		end.Kind, end.Problem = reports.OutcomeFailed, fmt.Sprintf("errors: %d, the first: %s", len(r.Errors), r.Errors[0])
		if kernel := h.dropped(r.Errors[0]); kernel != "" {
			end.Skipped = h.notRun(kernel)
		}
		if end.Skipped == "" && h.lacksCore(r.Errors[0]) {
			return end, r, fmt.Errorf("%w: %s: %s", errNotCore, command, r.Errors[0])
		}
	case r.Wrong > 0:
		end.Kind, end.Problem = reports.OutcomeWrongValues, fmt.Sprintf("wrong values: %d of %d, the first: %s", r.Wrong, r.Checked, r.FirstWrong)
	case r.FindingCount > 0:
		f := r.Findings[0]
		end.Kind, end.Problem = process.OutcomeOf(f), fmt.Sprintf("findings of the software Metal: %d, the first: %s (%s; %s)", r.FindingCount,
			f.Message, f.First, f.Second)
		end.Signature = crash.NumberName(f.Signature)
	case end.Races > 0:
		end.OnlyRaces = true
		end.Kind, end.Problem = reports.OutcomeRace, fmt.Sprintf("data races by ThreadSanitizer: %d, the first in %s", end.Races, firstRace(end.Output))
	case r.Checked == 0:
		end.Kind, end.Problem = reports.OutcomeFailed, "it checked no value"
	}
	return end, r, nil
}

// notTheSources names a cause of an end that lies neither in the sources nor in what runs them, and what helps; empty for others.
func (h hostRun) notTheSources(code int, err error) string {
	if run.Signalled(err) == syscall.SIGKILL {
		return "it was killed from outside, as a machine does that is out of memory; run it again with less beside it"
	}
	if code == 126 || code == 127 || code == 2 && len(h.programs) == 0 {
		return "the program could not be loaded, or does not know the scenario; delete its build with mpsforge cache clean --days 0 hosts, and run it again"
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
