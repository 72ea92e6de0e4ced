package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/internal/words"
)

// Built is a finished build of PyTorch.
type Built struct {
	Targets []string `json:"targets"` // without any it is all, and the wheel
	// Compiled is how many commands ninja ran; 0 when nothing had changed.
	Compiled  int      `json:"compiled"`
	Libraries []string `json:"libraries"` // the stamped ones, in the build folder
	Wheel     string   `json:"wheel,omitempty"`
	// Python is the interpreter that the wheel is installed for, Torch the file that it imports as torch.
	Python string       `json:"python,omitempty"`
	Torch  string       `json:"torch,omitempty"`
	MPS    bool         `json:"mps"` // whether that torch has the MPS backend
	Stamp  builds.Stamp `json:"stamp"`
	Log    string       `json:"log"`
	// Skipped are the steps that had nothing to do.
	Skipped []string `json:"skipped"`
}

// PyTorch runs a plan. What an earlier run has done is not done again, however that run ended.
func PyTorch(ctx context.Context, plan Plan, identity builds.Stamp, tool string, sink events.Sink) (*Built, error) {
	sink = events.OrDiscard(sink)
	if err := Gaps(plan.Preflight()); err != nil {
		return nil, err
	}
	own := ownFolder(plan.Recipe.Checkout)
	if err := os.MkdirAll(own, 0o755); err != nil {
		return nil, fmt.Errorf("make the build's folder: %w", err)
	}
	lock, err := lockBuild(filepath.Join(own, "lock"))
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	r := runner{plan: plan, own: own, lock: lock}
	r.built = &Built{Targets: plan.Targets, Log: filepath.Join(own, "build.log")}
	if r.built.Stamp, err = plan.pyTorchStamp(identity, tool); err != nil {
		return nil, err
	}
	if err := writeStamp(plan.Recipe.Checkout, r.built.Stamp); err != nil {
		return nil, r.failed("stamp", nil, err)
	}
	finish := events.Step(sink, "build")
	defer finish(events.Failed, "")
	r.sink = events.Under(sink, "build")
	var steps []string
	for _, step := range plan.Steps {
		steps = append(steps, step.Name)
	}
	r.sink.Emit(events.Pipeline{Steps: steps})
	log, err := os.Create(r.built.Log)
	if err != nil {
		return nil, r.failed("log", nil, err)
	}
	r.log = log
	err = errors.Join(r.run(ctx), log.Close())
	// Compilers that a killed ninja has left behind hold the lock as long as they write.
	if !errors.Is(err, ErrKilled) {
		err = errors.Join(err, syscall.Flock(int(lock.Fd()), syscall.LOCK_UN))
	}
	if err == nil {
		finish(events.OK, "")
	}
	return r.built, err
}

// ErrBuilding is returned, wrapped, when another build runs in the checkout.
var ErrBuilding = errors.New("another build runs in this checkout")

// lockBuild takes the checkout's build for this process and for what it starts, which inherits the open file: if mpsforge is
// killed, the lock is held until the last compiler has ended. The kernel gives it back.
func lockBuild(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the build: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, readErr := io.ReadAll(file)
		if err = errors.Join(fmt.Errorf("lock %s: %w", path, err), readErr, file.Close()); errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: process %s, or one that it started, holds the lock %s; wait until it ends, or stop it with Ctrl-C there",
				ErrBuilding, strings.TrimSpace(string(holder)), path)
		}
		return nil, err
	}
	err = file.Truncate(0)
	if _, writeErr := file.WriteAt(fmt.Appendln(nil, os.Getpid()), 0); err == nil {
		err = writeErr
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the build: %w", err), file.Close())
	}
	return file, nil
}

type runner struct {
	plan  Plan
	own   string // folder
	log   *os.File
	lock  *os.File
	sink  events.Sink
	built *Built
}

func (r *runner) run(ctx context.Context) error {
	for _, step := range r.plan.Steps {
		key, err := r.key(step)
		if err != nil {
			return err
		}
		record := r.record(step.Name)
		have, err := builds.ReadText(record)
		if err != nil {
			return err
		}
		if key != "" && key == have && r.stillThere(step) {
			r.built.Skipped = append(r.built.Skipped, step.Name)
			events.Step(r.sink, step.Name)(events.Skipped, "done already")
			if err := r.after(step); err != nil {
				return err
			}
			continue
		}
		// A step that is cut off is not done, even if an earlier run of it was.
		if err := os.RemoveAll(record); err != nil {
			return err
		}
		if err := r.runStep(ctx, step); err != nil {
			return err
		}
		if key != "" {
			if err := os.WriteFile(record, []byte(key), 0o644); err != nil {
				return r.failed(step.Name, nil, err)
			}
		}
		if err := r.after(step); err != nil {
			return err
		}
	}
	return nil
}

// record is the file with the key of what a step has done.
func (r *runner) record(step string) string { return filepath.Join(r.own, step+".done") }

// key names all that a step's result depends on. A step that knows by itself whether it has something to do has none.
func (r *runner) key(step PlanStep) (string, error) {
	flags := append(r.plan.environment(), step.Args...)
	stamp, err := r.built.Stamp.Text()
	if err != nil {
		return "", err
	}
	switch step.Name {
	case StepTools:
		return builds.Digest(step.Args...), nil
	case StepVenv:
		return builds.Digest(append(step.Args, r.plan.Machine.Tools["python3"].Text)...), nil
	case StepRequirements:
		return builds.Digest(append(step.Args, r.plan.Recipe.Requirements...)...), nil
	case StepConfigure:
		return builds.Digest(append(r.configurable(flags), r.built.Stamp.Toolchain...)...), nil
	case StepWheel, StepInstall, StepDependencies, StepCheck:
		// The stamp changes with the sources, the commit and what differs from it, so it covers the wheel's Python files, too.
		return builds.Digest(append(step.Args, stamp)...), nil
	}
	return "", nil
}

// configurable leaves out what cmake does not come to see: the number of jobs, and who runs the build.
func (r *runner) configurable(environment []string) []string {
	var all []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(r.plan.Carried, name) && name != "MAX_JOBS" && name != "NINJA_STATUS" {
			all = append(all, entry)
		}
	}
	return all
}

// stillThere reports whether what a finished step made has not been removed since.
func (r *runner) stillThere(step PlanStep) bool {
	made := map[string][]string{
		StepVenv: {r.plan.Python},
		StepConfigure: {filepath.Join(r.plan.Recipe.Checkout, buildFolder, "build.ninja"), filepath.Join(r.plan.Recipe.Checkout, buildFolder,
			"CMakeCache.txt")},
	}
	for _, file := range made[step.Name] {
		if !builds.Exists(file) {
			return false
		}
	}
	if step.Name == StepWheel {
		_, err := r.wheel()
		return err == nil
	}
	return true
}

func (r *runner) runStep(ctx context.Context, step PlanStep) error {
	finish := events.Step(r.sink, step.Name)
	defer finish(events.Failed, "")
	var e *estimator
	if step.Name == StepCompile {
		var err error
		if e, err = r.lookAhead(ctx, step); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(step.Dir, 0o755); err != nil {
		return r.failed(step.Name, nil, err)
	}
	if step.Name == StepWheel {
		restore, err := r.prepareWheel()
		if err != nil {
			return err
		}
		defer restore()
	}
	args, err := r.expand(step.Args)
	if err != nil {
		return err
	}
	command := run.Command{Name: args[0], Args: args[1:], Dir: step.Dir, Env: r.plan.environment(), Files: []*os.File{r.lock}}
	// exec looks for the program on mpsforge's own path; the plan's is meant.
	if command.Name, err = r.look(args[0]); err != nil {
		return err
	}
	fmt.Fprintf(r.log, "== %s, %s: %s\n", time.Now().UTC().Format(time.RFC3339), step.Name, command)
	w := newWatcher(r.log, r.sink, step.Name, e)
	command.Stdout, command.Stderr = w, w
	_, err = command.Run(ctx)
	if r.built.Compiled += w.ran; w.ran > 0 {
		for _, later := range []string{StepWheel, StepInstall, StepDependencies, StepCheck} {
			err = errors.Join(err, os.RemoveAll(r.record(later)))
		}
	}
	if err == nil && w.logError != nil {
		err = w.logError
	}
	if err != nil {
		return r.failed(step.Name, w.output(), err)
	}
	detail := ""
	if e != nil {
		detail = fmt.Sprintf("%d commands", w.ran)
	}
	if step.Name == StepCheck {
		if err := os.WriteFile(r.imported(), []byte(words.LastLines(string(w.output()), 1)), 0o644); err != nil {
			return err
		}
	}
	finish(events.OK, detail)
	return nil
}

func (r *runner) failed(step string, output []byte, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("build, step %s: %w; run it again to continue from here", step, err)
	}
	return diagnose(step, r.plan.Recipe.Checkout, output, err, r.built.Log)
}

// look finds a program on the plan's path.
func (r *runner) look(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, folder := range r.plan.searchPath() {
		if path := filepath.Join(folder, name); builds.Exists(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: no %s in %s", builds.ErrEnvironment, name, strings.Join(r.plan.searchPath(), ":"))
}

// lookAhead asks ninja what it would run, for the time left, and for --mps-only.
func (r *runner) lookAhead(ctx context.Context, step PlanStep) (*estimator, error) {
	ninja, err := r.look(step.Args[0])
	if err != nil {
		return nil, err
	}
	known, err := durations(filepath.Join(r.plan.Recipe.Checkout, buildFolder, ".ninja_log"))
	if err != nil {
		return nil, err
	}
	found, err := run.Command{Name: ninja, Args: append([]string{"-n"}, step.Args[1:]...), Dir: step.Dir, Env: r.plan.environment()}.Run(ctx)
	if err != nil {
		return nil, r.failed(step.Name, append(found.Stdout, found.Stderr...), err)
	}
	var pending []string
	for line := range strings.Lines(string(found.Stdout)) {
		if n, ok := parseNinja(strings.TrimSpace(line)); ok {
			pending = append(pending, n.what)
		}
	}
	if r.plan.MPSOnly {
		if err := onlyMPS(pending); err != nil {
			return nil, err
		}
	}
	return newEstimator(known, pending), nil
}

// ErrMore is returned, wrapped, when --mps-only would have to build more than the MPS backend.
var ErrMore = errors.New("more than the MPS backend has changed")

// mpsCommand matches the commands that a change of the MPS backend alone leads to: its objects and shaders (in the words of
// cmake/Metal.cmake and aten/src/ATen/CMakeLists.txt), the stamp, and the two stamped libraries.
var mpsCommand = regexp.MustCompile(`/mps/|\.metal\b|\.air\b|metallib|mpsforge/stamp\.cpp|lib(c10|torch_cpu)\.(so|dylib)`)

func onlyMPS(pending []string) error {
	var others []string
	for _, what := range pending {
		if !mpsCommand.MatchString(what) {
			others = append(others, what)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d commands differ, the first is: %s\nbuild without --mps-only, or with --target %s", ErrMore, len(others),
		len(pending), others[0], mpsTarget)
}

// after takes up what a step has left, run now or earlier.
func (r *runner) after(step PlanStep) error {
	var err error
	switch step.Name {
	case StepCompile:
		for _, target := range stampedTargets {
			for _, suffix := range []string{".so", ".dylib"} {
				if file := filepath.Join(r.plan.Recipe.Checkout, buildFolder, "lib", "lib"+target+suffix); builds.Exists(file) {
					r.built.Libraries = append(r.built.Libraries, file)
				}
			}
		}
	case StepWheel:
		if r.built.Wheel, err = r.wheel(); err != nil {
			return err
		}
		var text []byte
		if text, err = json.MarshalIndent(r.built.Stamp, "", "  "); err == nil {
			err = builds.WriteChanged(stampFile(r.built.Wheel), append(text, '\n'))
		}
	case StepInstall:
		r.built.Python = r.plan.Python
	case StepCheck:
		err = r.checkImport()
	}
	return err
}

// wheel is the one in the own folder.
func (r *runner) wheel() (string, error) {
	found, err := filepath.Glob(filepath.Join(r.own, "dist", "torch-*.whl"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("wheels in %s: %d, and there should be one", filepath.Join(r.own, "dist"), len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// expand puts the wheel's name for its pattern.
func (r *runner) expand(args []string) ([]string, error) {
	var all []string
	for _, arg := range args {
		if strings.HasSuffix(arg, "torch-*.whl") {
			wheel, err := r.wheel()
			if err != nil {
				return nil, err
			}
			arg = wheel
		}
		all = append(all, arg)
	}
	return all, nil
}

// prepareWheel removes older wheels, and keeps LICENSE: while setup.py makes a wheel, it puts the third parties' licences
// into the checkout's own file, and takes them out at the end, which a kill would leave out.
func (r *runner) prepareWheel() (restore func(), err error) {
	if err := os.RemoveAll(filepath.Join(r.own, "dist")); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(r.own, "dist"), 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(r.plan.Recipe.Checkout, "LICENSE")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	return func() {
		err := builds.WriteChanged(file, data)
		if err == nil {
			err = os.Chtimes(file, time.Time{}, info.ModTime())
		}
		if err != nil {
			r.sink.Emit(events.Message{Level: events.Warning, Text: fmt.Sprintf("%s may contain licences that setup.py put there: %v", file, err)})
		}
	}, nil
}

// imported is the file with what the clean process printed.
func (r *runner) imported() string { return filepath.Join(r.own, "imported.json") }

// checkImport reads what a clean process said of the torch that it imported, and whether that is this build's.
func (r *runner) checkImport() error {
	line, err := builds.ReadText(r.imported())
	if err != nil {
		return err
	}
	var said []any
	if err := json.Unmarshal([]byte(line), &said); err != nil || len(said) != 3 {
		return fmt.Errorf("import torch in a clean process: it printed %q", line)
	}
	r.built.Torch = fmt.Sprint(said[1])
	r.built.MPS = said[2] == true
	if !strings.HasPrefix(r.built.Torch, r.plan.Venv+string(filepath.Separator)) {
		return fmt.Errorf("the installed Python imports another torch: %s is not in %s", r.built.Torch, r.plan.Venv)
	}
	for _, suffix := range []string{".so", ".dylib"} {
		library := filepath.Join(filepath.Dir(r.built.Torch), "lib", "lib"+mpsTarget+suffix)
		if !builds.Exists(library) {
			continue
		}
		stamp, err := ReadStamp(library)
		if err != nil {
			return err
		}
		have, err := stamp.Text()
		if err != nil {
			return err
		}
		want, err := r.built.Stamp.Text()
		if err == nil && have != want {
			err = fmt.Errorf("%s is from another build: its stamp says tree %s, this build's %s", library, stamp.Tree, r.built.Stamp.Tree)
		}
		return err
	}
	return fmt.Errorf("the installed torch has no lib%s in %s", mpsTarget, filepath.Join(filepath.Dir(r.built.Torch), "lib"))
}
