package pytests

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
	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/suggest"
	"mpsforge/reports"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/stage"
)

//go:embed python/*.py
var Sources embed.FS

// Subject is a Python with a torch that tests run on.
type Subject struct {
	Name        string // patched, stock or cpu
	interpreter string
	Device      string
	environment []string
	scripts     string // folder with the tests
	wanted      wantedTorch
	patches     []string // that the torch has
	limits      Limits
}

// unpackPython writes the embedded tests into the cache.
func unpackPython(cache string) (string, error) { return Unpack(cache, Sources) }

// Unpack writes the files of the folders called python into the cache, into one folder named after their contents, and gives it.
func Unpack(cache string, sources ...fs.FS) (string, error) {
	hash := sha256.New()
	contents := map[string][]byte{}
	for _, source := range sources {
		entries, err := fs.ReadDir(source, "python")
		if err != nil {
			return "", err
		}
		for _, entry := range entries {
			if contents[entry.Name()] != nil {
				return "", fmt.Errorf("unpack Python files: two are called %s", entry.Name())
			}
			data, err := fs.ReadFile(source, "python/"+entry.Name())
			if err != nil {
				return "", err
			}
			contents[entry.Name()] = data
			fmt.Fprintf(hash, "%s %d\n%s", entry.Name(), len(data), data)
		}
	}
	parent := filepath.Join(cache, "unpacked", "validate", "python")
	dir, err := filepath.Abs(filepath.Join(parent, hex.EncodeToString(hash.Sum(nil))[:16]))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, builds.MakeFolder(dir, func(made string) error {
		for name, data := range contents {
			if err := os.WriteFile(filepath.Join(made, name), data, 0o644); err != nil {
				return err
			}
		}
		return nil
	})
}

// subjects gives the torch to be tested and, where there is one, the unpatched one.
func subjects(ctx context.Context, env *stage.Env, report *reports.Stage) (patched, stock *Subject, err error) {
	scripts, err := unpackPython(env.Cache)
	if err != nil {
		return nil, nil, err
	}
	subject := func(name, interpreter string, patches []string) *Subject {
		return newSubject(env, scripts, name, interpreter, patches)
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
		return nil, nil, stage.Skipf("needs a Python with the built torch: name it with --python; --device cpu tries the harness alone")
	}
	return hostPythons(ctx, env, report, scripts)
}

func newSubject(env *stage.Env, scripts, name, interpreter string, patches []string) *Subject {
	return &Subject{Name: name, interpreter: interpreter, Device: cmp.Or(env.Python.Device, "mps"), scripts: scripts, patches: patches, limits: defaultLimits,
		environment: append([]string{"PYTHONPYCACHEPREFIX=" + filepath.Join(env.Cache, "pycache"), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
			"UCX_ERROR_SIGNALS=SIGBUS", "PYTORCH_ENABLE_MPS_FALLBACK=0"}, env.Python.Environment...)}
}

// harnessPython is a Python whose torch need not have device mps.
func harnessPython(ctx context.Context, env *stage.Env) (string, error) {
	if env.Python.Interpreter != "" {
		return env.Python.Interpreter, nil
	}
	if runtime.GOOS == "linux" && (env.Host.Root != "" || host.HaveRoot(env.Cache)) {
		root, err := host.OpenRoot(ctx, env.Host.Root, env.Cache, env.Sink)
		if err != nil {
			return "", err
		}
		return root.Tool("python3"), nil
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		return "", stage.Skipf("needs a Python with torch; there is no python3: name one with --python")
	}
	return path, nil
}

// hostPythons builds the checkout's sources, patched and stock, and gives the Pythons over them.
func hostPythons(ctx context.Context, env *stage.Env, report *reports.Stage, scripts string) (patched, stock *Subject, err error) {
	if env.Checkout == nil {
		return nil, nil, stage.Skipf("%s", env.NoCheckout)
	}
	builder, err := hosts.New(ctx, env, report)
	if errors.Is(err, builds.ErrEnvironment) || errors.Is(err, fork.ErrEnvironment) {
		return nil, nil, stage.Skipf("%v", err)
	}
	if err != nil {
		return nil, nil, err
	}
	source, err := env.Checkout.Patched(ctx, env.Series, env.Cache)
	if err != nil {
		return nil, nil, err
	}
	if patched, err = overHostBuild(ctx, env, scripts, builder, "patched", source, builds.Plain); err != nil {
		return nil, nil, err
	}
	if env.Python.Stock != "" {
		return nil, nil, fmt.Errorf("--stock names a Python of another build than the patched one: give --python, too")
	}
	if env.Host.NoStock {
		return patched, nil, nil
	}
	if source, err = env.Checkout.Stock(ctx, env.Cache); err != nil {
		return nil, nil, err
	}
	stock, err = overHostBuild(ctx, env, scripts, builder, "stock", source, builds.Plain)
	return patched, stock, err
}

// overHostBuild builds sources and makes the subject over them.
func overHostBuild(ctx context.Context, env *stage.Env, scripts string, builder *hosts.Builder, name string, source *fork.Snapshot,
	flavour builds.Flavour) (*Subject, error) {
	built, err := builder.Build(ctx, source, flavour)
	if err != nil {
		return nil, err
	}
	if built.Python == "" {
		return nil, stage.Skipf("the host build has no Python: %s", built.NoPython)
	}
	s := newSubject(env, scripts, name, built.Python, source.Patches)
	s.environment = append(s.environment, hosts.Environment(builder.Root, builder.Env.Seed%1_000_000_007,
		len(source.Patches) == len(builder.Env.Series.Patches))...)
	s.environment = append(s.environment, "MPSFORGE_SERIES_TESTS="+filepath.Join(source.Dir, "test"))
	if s.wanted.stamp, err = built.Stamp.Text(); err != nil {
		return nil, err
	}
	s.wanted.library, s.wanted.version = built.Library, builder.Torch.Version
	return s, nil
}

// ErrTestPattern is returned, wrapped, for a pattern that is none or that no test matches.
var ErrTestPattern = errors.New("no such Python test")

// SelectTests gives the tests whose names match the pattern.
func SelectTests(all []Test, pattern string) ([]Test, error) {
	if pattern == "" {
		return all, nil
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is not a regular expression: %w", ErrTestPattern, pattern, err)
	}
	found := slices.DeleteFunc(slices.Clone(all), func(t Test) bool { return !expression.MatchString(t.Name) })
	if len(found) == 0 {
		var names []string
		for _, t := range all {
			names = append(names, t.Name)
		}
		return nil, fmt.Errorf("%w matches %q%s; verify --list names them", ErrTestPattern, pattern, suggest.Meant(pattern, names))
	}
	return found, nil
}

// Proven gives the subjects after each has proven which torch it loads.
func Proven(ctx context.Context, env *stage.Env, report *reports.Stage) (patched, stock *Subject, err error) {
	patched, stock, err = subjects(ctx, env, report)
	if err != nil {
		return nil, nil, err
	}
	if runtime.GOOS == "darwin" && patched.Device == "mps" {
		env.Machine.MetalRan = true
	}
	for _, s := range []*Subject{patched, stock} {
		if s == nil {
			continue
		}
		if err := s.prove(ctx, report); err != nil {
			return nil, nil, err
		}
	}
	report.Facts = append(report.Facts, reports.Fact{Name: "device", Value: patched.Device})
	if switches := slices.DeleteFunc(slices.Clone(patched.environment), func(setting string) bool {
		return !strings.HasPrefix(setting, "PYTORCH_MPS")
	}); len(switches) > 0 {
		report.Facts = append(report.Facts, reports.Fact{Name: "switches", Value: strings.Join(switches, " ")})
	}
	return patched, stock, nil
}

// HarnessOnly takes the verdict away from a stage that ran without device mps, unless it failed.
func HarnessOnly(patched *Subject, report *reports.Stage) error {
	if patched.Device != "cpu" || report.Verdict == reports.Failed {
		return nil
	}
	report.Verdict = ""
	return stage.Skipf("device cpu: the tests and their runner work; this says nothing about device mps")
}
