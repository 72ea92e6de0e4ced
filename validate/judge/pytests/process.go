package pytests

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"mpsforge/internal/run"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/crash"
	"mpsforge/validate/judge/process"
)

// Limits end a process that gets nowhere.
type Limits struct {
	start  time.Duration // until it has reported which torch it loaded
	stall  time.Duration // without any operation done or value compared
	total  time.Duration
	memory int64 // bytes, as the process itself reports its peak
}

// defaultLimits: an operation takes milliseconds; these detect what hangs, on a busy machine too.
var defaultLimits = Limits{start: 3 * time.Minute, stall: 90 * time.Second, total: 8 * time.Minute, memory: 8 << 30}

// Run is one process of one test.
type Run struct {
	Subject    *Subject
	Test       string
	Threads    int
	Iterations int
	Graph      bool
	Warmup     bool
	More       []string // of the environment
	limits     Limits
}

// Counts is what a test counted (validate/judge/pytests/python/harness.py, class Counts).
type Counts struct {
	Expected   int64              `json:"expected"`
	Operations int64              `json:"operations"`
	Answers    int64              `json:"answers"`
	Values     int64              `json:"values"`
	Wrong      int64              `json:"wrong"`
	FirstWrong string             `json:"first_wrong"`
	Errors     []string           `json:"errors"`
	Failures   []string           `json:"failures"`
	Findings   []script.Finding   `json:"findings"`
	Facts      map[string]float64 `json:"facts"`
	Seconds    float64            `json:"seconds"`
}

// problem is why the counts are no pass, or empty. What did not happen is not a pass.
func (r Counts) problem() (kind reports.Outcome, problem, signature string) {
	switch {
	case len(r.Errors) > 0:
		return reports.OutcomeFailed, fmt.Sprintf("errors: %d, the first: %s", len(r.Errors), r.Errors[0]), ""
	case r.Wrong > 0:
		return reports.OutcomeWrongValues, fmt.Sprintf("wrong values: %d of %d, the first: %s", r.Wrong, r.Values, r.FirstWrong), ""
	case len(r.Failures) > 0:
		return reports.OutcomeFailed, r.Failures[0], ""
	case r.Operations != r.Expected:
		return reports.OutcomeFailed, fmt.Sprintf("operations done: %d of %d", r.Operations, r.Expected), ""
	case r.Answers < r.Operations:
		return reports.OutcomeFailed, fmt.Sprintf("results compared: %d of %d", r.Answers, r.Operations), ""
	case r.Values == 0:
		return reports.OutcomeFailed, "no value was compared", ""
	case len(r.Findings) > 0:
		f := r.Findings[0]
		return process.OutcomeOf(f), fmt.Sprintf("findings of the software Metal: %d, the first: %s (%s; %s)", len(r.Findings), f.Message, f.First,
			f.Second), crash.NumberName(f.Signature)
	}
	return "", "", ""
}

// command is the run as a user can start it again.
func (r Run) command() run.Command {
	args := []string{filepath.Join(r.Subject.scripts, "child.py"), r.Test, "--device", r.Subject.Device, "--threads", fmt.Sprint(r.Threads),
		"--iterations", fmt.Sprint(r.Iterations)}
	if r.Graph {
		args = append(args, "--graph")
	}
	if r.Warmup {
		args = append(args, "--warmup")
	}
	return run.Command{Name: r.Subject.interpreter, Args: args}
}

// again is the command line with what differs in its environment.
func (r Run) again() string {
	return process.Again(slices.Concat(r.Subject.environment, r.More), r.command())
}

// run starts the process, watches it, and judges its end. An error is one of this program's, or a torch that is not the
// one to be tested.
func (r Run) run(ctx context.Context) (process.Result, Counts, error) {
	started := time.Now()
	command := r.command()
	command.Args = append(command.Args, "--events", "3")
	found, watched, err := r.Subject.start(ctx, command, r.More, r.limits)
	end := process.Result{Threads: r.Threads, Again: r.again(), Seconds: time.Since(started).Seconds(), Output: string(found.Stderr) + watched.stacks,
		Values: watched.result.Values, Found: watched.result.Findings}
	if ctx.Err() != nil {
		return end, watched.result, ctx.Err()
	}
	if watched.torch.Library != "" {
		if mismatch := r.Subject.wanted.mismatch(watched.torch); mismatch != nil {
			return end, watched.result, mismatch
		}
	}
	switch {
	case watched.garbage != "":
		end.Kind, end.Problem = reports.OutcomeFailed, "it wrote something that is not an event: "+watched.garbage
	case watched.finished && watched.torch.Library == "":
		end.Kind, end.Problem = reports.OutcomeFailed, "it did not report which torch it loaded"
	case watched.stopped != "":
		end.Kind, end.Problem = reports.OutcomeHung, watched.stopped
		if !strings.HasPrefix(watched.stopped, hungWord) { // too much memory
			end.Kind = reports.OutcomeFailed
		}
		if found, err := crash.Read("stacks", []byte(watched.stacks)); err == nil && len(found.Matches) > 0 {
			end.Signature = found.Matches[0].Signature
		}
	case !watched.finished && watched.skipped == "" && err == nil:
		end.Kind, end.Problem = reports.OutcomeFailed, "exit code 0, but without a result"
	case !watched.finished && watched.skipped == "":
		end.Crashed(err)
		addAppleReport(ctx, &end, started, watched.pid)
	case err != nil && len(watched.result.Failures) == 0:
		end.Crashed(err)
		end.Problem = "after its result: " + end.Problem
		addAppleReport(ctx, &end, started, watched.pid)
	case watched.skipped != "":
		end.Skipped = watched.skipped
	default:
		end.Kind, end.Problem, end.Signature = watched.result.problem()
	}
	return end, watched.result, nil
}

// watch is what is known of a process by its events.
type watch struct {
	mutex    sync.Mutex
	pid      int
	torch    Identity
	result   Counts
	finished bool   // there is a result
	skipped  string // why not
	garbage  string // a line that is not an event
	ticks    int64
	progress int64 // rises with every event that shows any
	memory   int64
	stopped  string // why this program ended it
	stacks   string // native ones, at that time
}

// start runs a program that sends events on file descriptor 3 and gives what is known of it at its end.
func (s *Subject) start(ctx context.Context, command run.Command, environment []string, limits Limits) (run.Result, *watch, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return run.Result{}, &watch{}, err
	}
	defer reader.Close()
	defer writer.Close()
	limited, end := context.WithCancel(ctx)
	defer end()
	w := &watch{}
	watching, read := make(chan struct{}), make(chan struct{})
	command.Files = []*os.File{writer}
	command.Env = s.Program(nil, environment).Env
	command.Started = func(pid int) {
		writer.Close()
		w.pid = pid
		go func() {
			defer close(watching)
			if stopped := w.guard(limited, limits); stopped != "" {
				stacks := w.dump(limited)
				w.mutex.Lock()
				w.stopped, w.stacks = stopped, stacks
				w.mutex.Unlock()
				end()
			}
		}()
	}
	go func() {
		defer close(read)
		w.read(reader)
	}()
	found, err := command.Run(limited)
	end()
	if w.pid != 0 {
		<-watching
		// Processes that the test has left behind.
		_ = syscall.Kill(-w.pid, syscall.SIGKILL)
	}
	writer.Close()
	_ = reader.SetReadDeadline(time.Now().Add(2 * time.Second))
	<-read
	return found, w, err
}

// read takes events until there are no more.
func (w *watch) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		w.take(lines.Bytes())
	}
	if err := lines.Err(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		w.mutex.Lock()
		w.garbage = err.Error()
		w.mutex.Unlock()
	}
}

func (w *watch) take(line []byte) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var head struct {
		Event  string           `json:"event"`
		Ticks  int64            `json:"ticks"`
		Memory int64            `json:"memory"`
		Reason string           `json:"reason"`
		Errors []string         `json:"errors"`
		Found  []script.Finding `json:"findings"`
	}
	err := json.Unmarshal(line, &head)
	if head.Event != "beat" || head.Ticks != w.ticks {
		w.ticks, w.progress = head.Ticks, w.progress+1
	}
	w.memory = max(w.memory, head.Memory)
	switch head.Event {
	case "beat":
	case "identity":
		if w.torch.Library != "" {
			err = errors.New("a second identity")
			break
		}
		err = json.Unmarshal(line, &w.torch)
	case "skip", "result":
		if w.finished || w.skipped != "" {
			err = errors.New("a second end")
			break
		}
		if head.Event == "skip" {
			w.skipped = head.Reason
			break
		}
		err, w.finished = json.Unmarshal(line, &w.result), true
	case "late": // of threads that went on after the result
		if len(w.result.Errors) < mostErrors {
			w.result.Errors = append(w.result.Errors, head.Errors...)
		}
		if len(w.result.Findings) < mostErrors {
			w.result.Findings = append(w.result.Findings, head.Found...)
		}
	default:
		err = errors.New("unknown event")
	}
	if err != nil && w.garbage == "" {
		w.garbage = fmt.Sprintf("%.200q: %v", line, err)
	}
}

// mostErrors is about how many late errors and findings are kept.
const mostErrors = 1000

// hungWord begins what guard says of a process that gets nowhere.
const hungWord = "hung"

// guard waits until the process has ended or is to be ended, and says why. Time in which this program did not run itself,
// because it was stopped or the machine slept, does not count.
func (w *watch) guard(ctx context.Context, limits Limits) string {
	const pause = 100 * time.Millisecond
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	var total, still time.Duration
	var seen int64
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return ""
		case <-ticker.C:
		}
		passed := min(time.Since(last), 10*pause)
		last = time.Now()
		w.mutex.Lock()
		progress, memory, known := w.progress, w.memory, w.torch.Library != ""
		w.mutex.Unlock()
		total, still = total+passed, still+passed
		if progress != seen {
			seen, still = progress, 0
		}
		switch {
		case memory > limits.memory:
			return fmt.Sprintf("too much memory: %d MiB, the limit is %d MiB", memory>>20, limits.memory>>20)
		case !known && still > limits.start:
			return fmt.Sprintf(hungWord+": it did not report which torch it loaded in %s", limits.start)
		case known && still > limits.stall:
			return fmt.Sprintf(hungWord+": no progress for %s", limits.stall)
		case total > limits.total:
			return fmt.Sprintf(hungWord+": not done after %s", limits.total)
		}
	}
}

// dump makes the process write all Python stacks to its standard error, and gives the native ones where this machine
// has a tool for it.
func (w *watch) dump(ctx context.Context) string {
	_ = syscall.Kill(w.pid, syscall.SIGUSR1) // one that is gone by now has nothing to show
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	command := run.Command{Name: "gdb", Args: []string{"-p", fmt.Sprint(w.pid), "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex",
		"thread apply all bt 24"}}
	if runtime.GOOS == "darwin" {
		command = run.Command{Name: "sample", Args: []string{fmt.Sprint(w.pid), "1", "-mayDie"}}
	}
	select { // for the Python stacks
	case <-limited.Done():
	case <-time.After(500 * time.Millisecond):
	}
	found, err := command.Run(limited)
	if errors.Is(err, exec.ErrNotFound) {
		return "\nno native stacks: there is no " + command.Name + "\n"
	}
	if err != nil {
		return fmt.Sprintf("\nno native stacks: %v\n", err)
	}
	return "\nnative stacks:\n" + string(found.Stdout)
}

// addAppleReport looks for what macOS wrote about a process that died by a signal, and names the crash by it.
func addAppleReport(ctx context.Context, e *process.Result, since time.Time, pid int) {
	home, err := os.UserHomeDir()
	if runtime.GOOS != "darwin" || err != nil || !strings.Contains(e.Problem, "signal") {
		return
	}
	// It takes the system some seconds.
	for range 20 {
		if path := newCrashReport(filepath.Join(home, "Library/Logs/DiagnosticReports"), since, pid); path != "" {
			addCrashReport(e, path)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func addCrashReport(e *process.Result, path string) {
	e.Problem += "; crash report: " + path
	if found := crash.Classify([]string{path})[0]; len(found.Matches) > 0 && e.Signature == "" {
		e.Signature = found.Matches[0].Signature
		e.Problem += ": " + found.Matches[0].Text
	}
}

// newCrashReport finds the report of a process in a folder, written since a time.
func newCrashReport(dir string, since time.Time, pid int) string {
	paths, err := filepath.Glob(filepath.Join(dir, "*.ips"))
	if err != nil {
		return ""
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.ModTime().Before(since.Add(-time.Second)) {
			continue
		}
		text, err := crash.ReadLimited(path)
		if err != nil {
			continue
		}
		_, body, _ := strings.Cut(string(text), "\n")
		var report struct {
			PID int `json:"pid"`
		}
		if json.Unmarshal([]byte(body), &report) == nil && report.PID == pid {
			return path
		}
	}
	return ""
}
