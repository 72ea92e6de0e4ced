package validate

import (
	"cmp"
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
func pythonSubjects(ctx context.Context, env *Env, stage *reports.Stage) (patched, stock *pythonSubject, err error) {
	scripts, err := unpackPython(env.Cache)
	if err != nil {
		return nil, nil, err
	}
	subject := func(name, interpreter string, patches []string) *pythonSubject {
		return &pythonSubject{name: name, interpreter: interpreter, device: cmp.Or(env.Python.Device, "mps"), scripts: scripts, patches: patches, limits: defaultPythonLimits,
			environment: []string{"PYTHONPYCACHEPREFIX=" + filepath.Join(env.Cache, "pycache"), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "UCX_ERROR_SIGNALS=SIGBUS", "PYTORCH_ENABLE_MPS_FALLBACK=0"}}
	}
	if env.Python.Stock != "" {
		stock = subject("stock", env.Python.Stock, nil)
		stock.wanted = wantedTorch{version: strings.TrimPrefix(env.Series.Baseline.Name, "v"), stock: true}
	}
	switch {
	case cmp.Or(env.Python.Device, "mps") == "cpu":
		interpreter, err := harnessPython(ctx, env)
		if err != nil {
			return nil, nil, err
		}
		patched = subject("cpu", interpreter, nil)
		patched.wanted.any = true
		return patched, nil, nil
	case env.Python.Interpreter != "":
		patched = subject("patched", env.Python.Interpreter, env.Identity.Patches)
		patched.wanted = wantedTorch{version: strings.TrimPrefix(env.Series.Baseline.Name, "v"), series: env.Series.Digest()}
		return patched, stock, nil
	case runtime.GOOS == "darwin":
		return nil, nil, Skipf("needs a Python with the built torch: name it with --python; --device cpu tries the harness alone")
	}
	return hostPythons(ctx, env, stage, subject)
}

// harnessPython is a Python whose torch need not have device mps.
func harnessPython(ctx context.Context, env *Env) (string, error) {
	if env.Python.Interpreter != "" {
		return env.Python.Interpreter, nil
	}
	if runtime.GOOS == "linux" && (env.Host.Root != "" || build.HaveRoot(env.Cache)) {
		root, err := build.OpenRoot(ctx, env.Host.Root, env.Cache, env.Sink)
		if err != nil {
			return "", err
		}
		return root.Tool("python3"), nil
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		return "", Skipf("needs a Python with torch; there is no python3: name one with --python")
	}
	return path, nil
}

// hostPythons builds the checkout's sources, patched and stock, and gives the Pythons over them.
func hostPythons(ctx context.Context, env *Env, stage *reports.Stage, subject func(name, interpreter string, patches []string) *pythonSubject) (patched, stock *pythonSubject, err error) {
	if env.Checkout == nil {
		return nil, nil, Skipf("%s", env.NoCheckout)
	}
	hosts, err := newHostBuilder(ctx, env, stage)
	if errors.Is(err, build.ErrEnvironment) || errors.Is(err, fork.ErrEnvironment) {
		return nil, nil, Skipf("%v", err)
	}
	if err != nil {
		return nil, nil, err
	}
	over := func(name string, source *fork.Snapshot) (*pythonSubject, error) {
		built, err := hosts.build(ctx, source, build.Plain)
		if err != nil {
			return nil, err
		}
		if built.Python == "" {
			return nil, Skipf("the host build has no Python: %s", built.NoPython)
		}
		s := subject(name, built.Python, source.Patches)
		s.environment = append(s.environment, hostEnvironment(hosts.root, env.Seed%1_000_000_007)...)
		if s.wanted.stamp, err = built.Stamp.Text(); err != nil {
			return nil, err
		}
		s.wanted.library, s.wanted.version = built.Library, hosts.torch.Version
		return s, nil
	}
	source, err := env.Checkout.Patched(ctx, env.Series, env.Cache)
	if err != nil {
		return nil, nil, err
	}
	if patched, err = over("patched", source); err != nil {
		return nil, nil, err
	}
	if env.Python.Stock != "" {
		return nil, nil, fmt.Errorf("--stock names a Python of another build than the patched one: give --python, too")
	}
	if source, err = env.Checkout.Stock(ctx, env.Cache); err != nil {
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

// provenPythons gives the subjects after each has proven which torch it loads.
func provenPythons(ctx context.Context, env *Env, stage *reports.Stage) (patched, stock *pythonSubject, err error) {
	patched, stock, err = pythonSubjects(ctx, env, stage)
	if err != nil {
		return nil, nil, err
	}
	if runtime.GOOS == "darwin" && patched.device == "mps" {
		env.Machine.MetalRan = true
	}
	for _, s := range []*pythonSubject{patched, stock} {
		if s == nil {
			continue
		}
		if err := s.prove(ctx, stage); err != nil {
			return nil, nil, err
		}
	}
	stage.Facts = append(stage.Facts, reports.Fact{Name: "device", Value: patched.device})
	if switches := slices.DeleteFunc(slices.Clone(patched.environment), func(setting string) bool { return !strings.HasPrefix(setting, "PYTORCH_MPS") }); len(switches) > 0 {
		stage.Facts = append(stage.Facts, reports.Fact{Name: "switches", Value: strings.Join(switches, " ")})
	}
	return patched, stock, nil
}

// harnessOnly takes the verdict away from a stage that ran without device mps, unless it failed.
func harnessOnly(patched *pythonSubject, stage *reports.Stage) error {
	if patched.device != "cpu" || stage.Verdict == reports.Failed {
		return nil
	}
	stage.Verdict = ""
	return Skipf("device cpu: the tests and their runner work; of device mps this says nothing")
}
