package validate

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"mpsforge/fork"
	"mpsforge/fork/build"
	"mpsforge/internal/suggest"
	"mpsforge/reports"
)

//go:embed python/*.py
var pythonSources embed.FS

// PythonOptions are of the stages python and bench.
type PythonOptions struct {
	Interpreter string // a Python with the torch to be tested; empty: the host build's on Linux
	Stock       string // a Python with an unpatched torch, for comparison; empty: the host build's on Linux
	Device      string // mps or cpu; empty: mps
	Only        string // a regular expression over names of tests; empty: all
	Threads     []int  // thread counts instead of each test's own
	Repeat      int    // processes for each test, thread count and path; 0: one in the short form, else three
	// Warmup lets one thread use the device before the others. It hides what a cold start shows.
	Warmup bool
}

// pythonSubject is a Python with a torch that tests run on.
type pythonSubject struct {
	name        string // patched, stock or cpu
	interpreter string
	device      string
	environment []string
	scripts     string // folder with the tests
	wanted      wantedTorch
	patches     []string // that the torch has
	limits      pythonLimits
}

func (p *pipeline) pythonDevice() string {
	if p.Python.Device == "" {
		return "mps"
	}
	return p.Python.Device
}

// unpackPython writes the embedded tests into the cache, into a folder named after their contents.
func unpackPython(cache string) (string, error) {
	hash := sha256.New()
	entries, err := pythonSources.ReadDir("python")
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		data, err := pythonSources.ReadFile("python/" + entry.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", entry.Name(), len(data), data)
	}
	parent := filepath.Join(cache, "unpacked", "validate", "python")
	dir, err := filepath.Abs(filepath.Join(parent, hex.EncodeToString(hash.Sum(nil))[:16]))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	temporary, err := os.MkdirTemp(parent, "unpacking-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	sources, err := fs.Sub(pythonSources, "python")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(temporary, sources); err != nil {
		return "", err
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(temporary, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another process may have been faster
		return "", err
	}
	return dir, nil
}

// pythonSubjects gives the torch to be tested and, where there is one, the unpatched one.
func (p *pipeline) pythonSubjects(ctx context.Context, stage *reports.Stage) (patched, stock *pythonSubject, err error) {
	scripts, err := unpackPython(p.Cache)
	if err != nil {
		return nil, nil, err
	}
	subject := func(name, interpreter string, patches []string) *pythonSubject {
		return &pythonSubject{name: name, interpreter: interpreter, device: p.pythonDevice(), scripts: scripts, patches: patches, limits: defaultPythonLimits,
			environment: []string{"PYTHONPYCACHEPREFIX=" + filepath.Join(p.Cache, "pycache"), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "UCX_ERROR_SIGNALS=SIGBUS", "PYTORCH_ENABLE_MPS_FALLBACK=0"}}
	}
	if p.Python.Stock != "" {
		stock = subject("stock", p.Python.Stock, nil)
		stock.wanted = wantedTorch{version: strings.TrimPrefix(p.Series.Baseline.Name, "v"), stock: true}
	}
	switch {
	case p.pythonDevice() == "cpu":
		interpreter, err := p.harnessPython(ctx)
		if err != nil {
			return nil, nil, err
		}
		patched = subject("cpu", interpreter, nil)
		patched.wanted.any = true
		return patched, nil, nil
	case p.Python.Interpreter != "":
		patched = subject("patched", p.Python.Interpreter, p.report.Identity.Patches)
		patched.wanted = wantedTorch{version: strings.TrimPrefix(p.Series.Baseline.Name, "v"), series: p.Series.Digest()}
		return patched, stock, nil
	case runtime.GOOS == "darwin":
		return nil, nil, skipf("needs a Python with the built torch: name it with --python; --device cpu tries the harness alone")
	}
	return p.hostPythons(ctx, stage, subject)
}

// harnessPython is a Python whose torch need not have device mps.
func (p *pipeline) harnessPython(ctx context.Context) (string, error) {
	if p.Python.Interpreter != "" {
		return p.Python.Interpreter, nil
	}
	if runtime.GOOS == "linux" && (p.Host.Root != "" || build.HaveRoot(p.Cache)) {
		root, err := build.OpenRoot(ctx, p.Host.Root, p.Cache, p.sink)
		if err != nil {
			return "", err
		}
		return root.Tool("python3"), nil
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		return "", skipf("needs a Python with torch; there is no python3: name one with --python")
	}
	return path, nil
}

// hostPythons builds the checkout's sources, patched and stock, and gives the Pythons over them.
func (p *pipeline) hostPythons(ctx context.Context, stage *reports.Stage, subject func(name, interpreter string, patches []string) *pythonSubject) (patched, stock *pythonSubject, err error) {
	if p.Checkout == nil {
		return nil, nil, skipf("%s", p.NoCheckout)
	}
	r, err := p.newRuntime(ctx, stage)
	if errors.Is(err, build.ErrEnvironment) || errors.Is(err, fork.ErrEnvironment) {
		return nil, nil, skipf("%v", err)
	}
	if err != nil {
		return nil, nil, err
	}
	over := func(name string, source *fork.Snapshot) (*pythonSubject, error) {
		built, err := r.build(ctx, source, build.Plain)
		if err != nil {
			return nil, err
		}
		if built.Python == "" {
			return nil, skipf("the host build has no Python: %s", built.NoPython)
		}
		s := subject(name, built.Python, source.Patches)
		s.environment = append(s.environment, hostRun{built: built, tools: r.root, seed: p.Seed % 1_000_000_007}.environment()...)
		if s.wanted.stamp, err = built.Stamp.Text(); err != nil {
			return nil, err
		}
		s.wanted.library, s.wanted.version = built.Library, r.torch.Version
		return s, nil
	}
	source, err := p.Checkout.Patched(ctx, p.Series, p.Cache)
	if err != nil {
		return nil, nil, err
	}
	if patched, err = over("patched", source); err != nil {
		return nil, nil, err
	}
	if p.Python.Stock != "" {
		return nil, nil, fmt.Errorf("--stock names a Python of another build than the patched one: give --python, too")
	}
	if source, err = p.Checkout.Stock(ctx, p.Cache); err != nil {
		return nil, nil, err
	}
	stock, err = over("stock", source)
	return patched, stock, err
}

// ErrTestPattern is returned, wrapped, for a pattern that is none or that no test matches.
var ErrTestPattern = errors.New("no such Python test")

// selectTests gives the tests whose names match the pattern.
func selectTests(all []pythonTest, pattern string) ([]pythonTest, error) {
	if pattern == "" {
		return all, nil
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrTestPattern, pattern, err)
	}
	found := slices.DeleteFunc(slices.Clone(all), func(t pythonTest) bool { return !expression.MatchString(t.name) })
	if len(found) == 0 {
		var names []string
		for _, t := range all {
			names = append(names, t.name)
		}
		return nil, fmt.Errorf("%w matches %q%s; verify --list names them", ErrTestPattern, pattern, suggest.Meant(pattern, names))
	}
	return found, nil
}
