// Package repro writes a reproducer that needs no mpsforge, and the text of a bug report filled in from its runs. It is not
// part of a verification and gives no verdict.
package repro

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"

	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/internal/suggest"
	"mpsforge/internal/words"
	"mpsforge/reports"
	"mpsforge/validate/judge/crash"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/pytests"
)

//go:embed templates
var templates embed.FS

// ErrOther is returned, wrapped, where a file of the reproducer's name is there with another text: somebody may have changed it.
var ErrOther = errors.New("it is there with another text")

// ErrNone is returned, wrapped, for a scenario that has none.
var ErrNone = errors.New("no reproducer")

// appleScenario needs no PyTorch: it is for a report to Apple.
const appleScenario = "matrix-multiplication"

// operations are the classes of validate/judge/pytests/python/operations.py that the tests run.
var operations = map[string]string{
	"basic": "Tensors", "large": "LargeTensors", "linear": "Linear", "f-linear": "FunctionalLinear", "mlp": "MLP", "sequential": "Sequential",
	"conv1d":     "Conv1d",
	"layer-norm": "LayerNorm", "softmax": "Softmax", "transformer": "Transformer",
}

// Options choose a reproducer.
type Options struct {
	Scenario    string
	Dir         string
	Threads     int
	Iterations  int
	Graph       bool
	Interpreter string // to run it with; empty: it is not run
	Runs        int
	Limit       time.Duration // of one run; what takes longer hangs
}

// Repro is a reproducer that was written.
type Repro struct {
	File      string   `json:"file"`
	Report    string   `json:"report"`
	Runs      int      `json:"runs"`
	Failed    int      `json:"failed"`
	Signature string   `json:"signature,omitempty"`
	Problem   string   `json:"problem,omitempty"`
	Versions  []string `json:"versions"`
}

// Scenarios lists what there are reproducers for.
func Scenarios() []string {
	names := []string{appleScenario}
	for _, t := range pytests.Tests() {
		if operations[t.Name] != "" {
			names = append(names, t.Name)
		}
	}
	return names
}

// text is what the templates show.
type text struct {
	Options
	About, File, Operation, Headline, What, Words, Needs, Command, Rate, Cause, Workaround string
	Definitions, Versions                                                                  []string
}

// Write writes a self-contained reproducer and the text of a bug report, filled in from runs where there is
// something to run it with.
func Write(ctx context.Context, options Options, sink events.Sink) (*Repro, error) {
	sink = events.OrDiscard(sink)
	if !slices.Contains(Scenarios(), options.Scenario) {
		return nil, fmt.Errorf("%w for %q%s", ErrNone, options.Scenario, suggest.Names(options.Scenario, Scenarios()))
	}
	if err := os.MkdirAll(options.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", reports.ErrUnwritable, err)
	}
	if options.Interpreter == "" || options.Scenario == appleScenario {
		options.Runs = 0
	}
	text := text{Options: options, Needs: "it needs torch alone"}
	source, err := text.source()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(options.Dir, text.File)
	found := &Repro{File: path, Report: strings.TrimSuffix(path, filepath.Ext(path)) + ".md", Runs: options.Runs, Versions: []string{}}
	for _, name := range []string{path, found.Report} { // before the runs, not after
		if err := reports.TryFile(name); err != nil {
			return nil, err
		}
	}
	if there, err := os.ReadFile(path); err == nil && len(there) > 0 && !bytes.Equal(there, source) {
		return nil, fmt.Errorf("write %s: %w; remove it, or name another folder with --out", path, ErrOther)
	}
	if err := os.WriteFile(path, source, 0o644); err != nil {
		return nil, err
	}
	if err := found.measure(ctx, options, &text, sink); err != nil {
		return nil, err
	}
	text.explain(found)
	report, err := render("report.md.tmpl", text)
	if err != nil {
		return nil, err
	}
	return found, os.WriteFile(found.Report, report, 0o644)
}

// source is the reproducer's own.
func (t *text) source() ([]byte, error) {
	if t.Scenario == appleScenario {
		t.About, t.File, t.Needs = "MPSNDArrayMatrixMultiplication encoded", "matrix_multiplication.mm", "it needs Metal alone, no PyTorch"
		t.Command = fmt.Sprintf(
			"clang++ -std=c++17 -fobjc-arc %s -o matrix_multiplication -framework Foundation -framework Metal -framework "+
				"MetalPerformanceShaders\n./matrix_multiplication %d %d", t.File, t.Threads, t.Iterations)
		return templates.ReadFile("templates/matrix_multiplication.mm")
	}
	test, _ := pytests.Named(t.Scenario)
	t.About, t.Operation, t.File = test.About, operations[t.Scenario], strings.ReplaceAll(t.Scenario, "-", "_")+"_threads.py"
	t.Command = "python3 " + t.File
	operations, err := pytests.Sources.ReadFile("python/operations.py")
	if err != nil {
		return nil, err
	}
	harness, err := pytests.Sources.ReadFile("python/harness.py")
	if err != nil {
		return nil, err
	}
	class := definition(string(operations), "class "+t.Operation)
	for _, helper := range []string{"numbers", "settle"} {
		if strings.Contains(class, helper+"(") {
			t.Definitions = append(t.Definitions, definition(string(harness), "def "+helper))
		}
	}
	// settle uses numbers, too.
	if len(t.Definitions) == 1 && strings.HasPrefix(t.Definitions[0], "def settle") {
		t.Definitions = append([]string{definition(string(harness), "def numbers")}, t.Definitions...)
	}
	t.Definitions = append(t.Definitions, class)
	return render("repro.py.tmpl", t)
}

// definition cuts a function or class out of a Python module: its first line and what is indented below it.
func definition(source, head string) string {
	var lines []string
	for line := range strings.Lines(source) {
		switch {
		case lines == nil && (strings.HasPrefix(line, head+"(") || strings.HasPrefix(line, head+":")):
			lines = append(lines, line)
		case lines == nil:
		case line != "\n" && !strings.HasPrefix(line, " "):
			return strings.TrimSpace(strings.Join(lines, "")) + "\n"
		default:
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "")) + "\n"
}

func render(name string, text any) ([]byte, error) {
	parsed, err := template.ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, text)
	return out.Bytes(), err
}

// measure runs the reproducer so often as asked for, each time in a new process.
func (r *Repro) measure(ctx context.Context, options Options, text *text, sink events.Sink) error {
	if options.Runs == 0 {
		return nil
	}
	finish := events.Step(sink, "repro")
	defer finish(events.Failed, "")
	for i := range options.Runs {
		limited, cancel := context.WithTimeout(ctx, options.Limit)
		// The setting makes the software Metal end the process as Metal does, where it is one.
		command := run.Command{Name: options.Interpreter, Args: []string{r.File}, Env: run.Environment([]string{"MPSFORGE_METAL_ON_VIOLATION=abort"}, nil)}
		found, err := command.Run(limited)
		hung := limited.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if first, _, _ := strings.Cut(string(found.Stdout), "\n"); len(r.Versions) == 0 && strings.HasPrefix(first, "torch ") {
			r.Versions = append(r.Versions, first)
		}
		sink.Emit(events.StepProgress{Step: "repro", Done: int64(i + 1), Total: int64(options.Runs), Unit: "runs"})
		if err == nil {
			continue
		}
		if len(r.Versions) == 0 {
			return fmt.Errorf("the reproducer did not begin: %w", err)
		}
		r.Failed++
		if r.Problem != "" {
			continue
		}
		end := process.Result{Output: string(found.Stderr)}
		if hung {
			end.Problem = fmt.Sprintf("it hangs: not done after %s", options.Limit)
		} else if run.ExitCode(err) == 1 && strings.Contains(string(found.Stdout), "results: ") {
			end.Problem = words.LastLines(string(found.Stdout), 1)
		} else {
			end.Crashed(err)
		}
		r.Problem, r.Signature = end.Problem, end.Signature
		text.Words = words.LastLines(end.Output, 8)
	}
	system := runtime.GOOS + "/" + runtime.GOARCH
	if runtime.GOOS == "darwin" {
		if version, err := (run.Command{Name: "sw_vers", Args: []string{"-productVersion"}}).Run(ctx); err == nil {
			system = "macOS " + strings.TrimSpace(string(version.Stdout)) + ", " + system
		}
	} else if options.Runs > 0 {
		system += ", mpsforge's software Metal: not Apple's. Run it on a Mac before you report it"
	}
	r.Versions = append(r.Versions, system)
	return nil
}

// knownCause is what is known before, or whatever, the runs show.
func knownCause(scenario string) string {
	test, _ := pytests.Named(scenario) // Scenarios are tests
	var ends []string
	for _, signature := range crash.Signatures() {
		if slices.ContainsFunc(signature.Patches, func(name string) bool { return slices.Contains(test.Patches(), name) }) {
			ends = append(ends, signature.Name())
		}
	}
	return fmt.Sprintf("Threads share one command buffer and its encoder, which only one thread at a time may use. With mpsforge's patch %s the "+
		"program passes. Without it one of these is what such a program ends in: %s. mpsforge metal explain NUMBER explains each.",
		strings.Join(test.Patches(), ", "), strings.Join(ends, ", "))
}

// explain puts what was seen into words.
func (t *text) explain(r *Repro) {
	t.Versions = r.Versions
	t.Headline, t.What = cmp.Or(r.Problem, "the process dies, or numbers are wrong"),
		"A process that uses the device from several threads should live, with right values."
	if r.Problem != "" {
		t.What += " It ends like this: " + r.Problem + "."
	}
	t.Rate = "Not measured."
	if r.Runs > 0 {
		t.Rate = fmt.Sprintf("Failed runs: %s; each run is a new process, nothing is repeated or warmed up.", pytests.Rate(r.Failed, r.Runs))
		if r.Failed == 0 {
			t.Headline, t.What = "it did not fail here", "It did not fail in any run. There is nothing to report with this torch, or more runs are needed."
		}
	}
	t.Workaround = "Use processes instead of threads (validate/judge/pytests/python/process_pool.py of mpsforge is a small pool of them), or one " +
		"lock around every use of the device, which loses what threads gain."
	signature := r.Signature
	if t.Scenario == appleScenario {
		signature = "10"
		t.Workaround = "One lock around the encoding of this kernel, for all threads of the process. PyTorch with mpsforge's patch kernel-locks does that."
	} else {
		t.Cause = knownCause(t.Scenario)
	}
	if signature != "" {
		number, _, _ := strings.Cut(signature, " ")
		if known, err := crash.Find(number); err == nil {
			t.Cause = fmt.Sprintf("Signature %s: %s %s", known.Name(), known.Meaning, known.Cause)
			if len(known.Sources) > 0 {
				t.Cause += " Seen before: " + strings.Join(known.Sources, ", ") + "."
			}
		}
	}
}
