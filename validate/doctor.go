package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/git"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/build"
	"mpsforge/fork/macos/mac"
	"mpsforge/internal/cxx"
	"mpsforge/native/script"
	"mpsforge/native/slots"
	"mpsforge/patches"
	"mpsforge/validate/stage"
)

// Diagnosis is what this machine can and cannot do.
type Diagnosis struct {
	Needs     []Requirement `json:"needs"`
	Stages    []CanRun      `json:"stages"`
	Variables []Variable    `json:"variables"`
}

// Requirement is something that a command needs.
type Requirement struct {
	Name    string `json:"name"`
	Present bool   `json:"present"`
	Found   string `json:"found"` // what was found, or why it does not do
	For     string `json:"for"`
	Fix     string `json:"fix"` // a command, or what to do
}

// CanRun says whether a stage of verify can run here. Why is empty when it can.
type CanRun struct {
	Name string `json:"name"`
	Why  string `json:"why,omitempty"`
}

// Variable is an environment variable that mpsforge or the patched PyTorch reads.
type Variable struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	Value   string `json:"value"`
}

// NotSet is the value of a variable that the environment does not have.
const NotSet = "not set"

// Summary is the diagnosis in one line.
func (d Diagnosis) Summary() string {
	missing := 0
	for _, need := range d.Needs {
		if !need.Present {
			missing++
		}
	}
	runnable := 0
	for _, stage := range d.Stages {
		if stage.Why == "" {
			runnable++
		}
	}
	return fmt.Sprintf("%d of %d stages can run; needs that are missing: %d", runnable, len(d.Stages), missing)
}

// buildGaps names what a build of PyTorch from the checkout lacks here.
func buildGaps(ctx context.Context, checkoutDir string) error {
	dir, err := filepath.Abs(checkoutDir)
	if err != nil {
		return err
	}
	recipe, err := build.ReadRecipe(dir)
	if err != nil {
		return err
	}
	machine, err := build.Probe(ctx, dir, nil)
	if err != nil {
		return err
	}
	plan, err := build.NewPlan(recipe, machine, build.PlanOptions{Venv: build.DefaultVenv(dir)})
	if err != nil {
		return err
	}
	var missing []string
	for _, check := range plan.Preflight() {
		if check.State == build.Missing {
			missing = append(missing, fmt.Sprintf("%s (%s)", check.Name, check.Found))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("lacking: %s", strings.Join(missing, "; "))
	}
	return nil
}

// What keeps something from working that is itself fine: another need, which has a line of its own.
var (
	errNeedsCache    = errors.New("needs the cache folder")
	errNeedsCompiler = errors.New("needs the C++17 compiler")
)

// Diagnose looks at the machine, the cache folder and the checkout. It changes nothing but the cache, where probes of
// the compiler are kept.
func Diagnose(ctx context.Context, checkoutDir, cache string) Diagnosis {
	const cacheFix = "set MPSFORGE_CACHE to a folder that can be written"
	var d Diagnosis
	add := func(name string, err error, found, what, fix string) bool {
		if err != nil {
			found = err.Error()
		}
		if errors.Is(err, errNeedsCache) {
			fix = cacheFix
		}
		d.Needs = append(d.Needs, Requirement{Name: name, Present: err == nil, Found: strings.SplitN(found, "\n", 2)[0], For: what, Fix: fix})
		return err == nil
	}
	haveCache := add("cache folder", writable(cache), cache,
		"downloads, what is compiled, and the stages conformance, runtime, python, bench and operators", cacheFix)
	version, err := git.Version(ctx)
	if err == nil && build.VersionLess(version, git.MinimumVersion) {
		err = fmt.Errorf("%s is older than %s", version, git.MinimumVersion)
	}
	add("git", err, version, "every command on a checkout", installer("git", "xcode-select --install"))
	haveCompiler := compilers(ctx, cache, haveCache, add)
	_, err = slots.Reference()
	haveReference := add("built-in reference", err, "linked in", "stages reference and conformance", "build mpsforge with CGO_ENABLED=1 and a C++ compiler")
	_, err = exec.LookPath("xz")
	add("xz", err, "present", "fetch from .tar.xz, Debian's among them", installer("xz-utils", "brew install xz"))
	fromDebian := func(fix string) string {
		if runtime.GOOS == "darwin" {
			return "nothing to do on a Mac: host builds run on Linux only, and v2.9.1 comes from GitHub"
		}
		return fix
	}
	_, err = exec.LookPath("apt-get")
	add("apt-get", err, "present", "fetch --from debian (baseline v2.6.0)",
		fromDebian("only on Debian and systems like it; elsewhere get the tarball and use fetch --from FILE"))
	root := filepath.Join(cache, "roots", host.DebianSuite)
	rootProblem := rootCanBeHad(cache)
	if rootProblem == nil && !haveCache {
		rootProblem = errNeedsCache
	}
	haveRoot := add("Debian root", rootProblem, "in the cache or made on demand: "+root,
		"host builds and the stages mac, runtime, python, bench and operators: clang, a libtorch and its Python on Linux",
		fromDebian("on Debian and systems like it: apt-get install dpkg apt; elsewhere name a Debian "+host.DebianSuite+" system's top folder with --root"))
	wheels := "downloaded on demand: 150 MB of PyPI's"
	if haveMacWheels(cache) {
		wheels = "in the cache"
	}
	add("wheels for macOS", nil, wheels, "host builds and the stage mac: PyTorch's Metal kernels and libraries, Apple's open headers and libc++'s", "")
	libtorchs, err := describeLibtorchs(cache)
	add("libtorch", err, libtorchs, "host builds: what PyTorch's MPS sources are compiled and linked with",
		"get mpsforge again: what is built into it is damaged")
	found, err := describeCheckout(ctx, checkoutDir)
	next, noCheckout := "mpsforge fetch --checkout "+checkoutDir, "no checkout"
	if interrupted := (*fork.InterruptedError)(nil); errors.As(err, &interrupted) {
		next, noCheckout = interrupted.Next(), "the last run on the checkout was interrupted"
	}
	haveCheckout := add("checkout", err, found, "all stages but series, reference and device", next)
	if haveCheckout {
		add("PyTorch build", buildGaps(ctx, checkoutDir), "all that it needs is there", "mpsforge build", "mpsforge build --dry-run --checkout "+
			checkoutDir+" shows how, for each")
	}
	_, err = exec.LookPath("gdb")
	if runtime.GOOS == "darwin" {
		_, err = exec.LookPath("sample")
	}
	add("debugger", err, "present", "native stacks of a hung Python test; without one there are only Python's", installer("gdb", "xcode-select --install"))
	d.Stages = stagesThatCanRun(map[stage.Need]string{
		stage.NeedsCache: missing(haveCache, errNeedsCache.Error()), stage.NeedsCheckout: missing(haveCheckout, noCheckout),
		stage.NeedsRoot: missing(haveRoot, "no Debian root"), stage.NeedsCompiler: missing(haveCompiler, "no C++17 compiler"),
		stage.NeedsReference: missing(haveReference, "built without cgo"),
	})
	for _, variable := range variables {
		variable.Value = NotSet
		if value, set := os.LookupEnv(variable.Name); set {
			variable.Value = strconv.Quote(value)
		}
		d.Variables = append(d.Variables, variable)
	}
	return d
}

// installer is the command that installs a package of this system.
func installer(debian, macos string) string {
	if runtime.GOOS == "darwin" {
		return macos
	}
	return "apt-get install " + debian
}

// compilers looks for a C++17 compiler, and for its sanitizers.
func compilers(ctx context.Context, cache string, haveCache bool, add func(name string, err error, found, what, fix string) bool) bool {
	tools := cxx.Find(ctx, cache)
	switch {
	case tools.Version != "" && !haveCache: // it is there; it was to be tried in the cache
		tools.Err, tools.Thread, tools.Address = errNeedsCache, errNeedsCache, errNeedsCache
	case tools.Err != nil:
		tools.Thread, tools.Address = errNeedsCompiler, errNeedsCompiler
	}
	have := add("C++17 compiler", tools.Err, tools.Version, "stage conformance", installer("g++", "xcode-select --install"))
	add("ThreadSanitizer", tools.Thread, "works", "the race checks of reference and conformance", installer("g++ (or clang with libclang-rt-dev)",
		"xcode-select --install"))
	add("AddressSanitizer", tools.Address, "works", "the memory checks of reference and conformance", installer("g++ (or clang with libclang-rt-dev)",
		"xcode-select --install"))
	return have
}

// missing is empty where it is there.
func missing(have bool, why string) string {
	if have {
		return ""
	}
	return why
}

// stagesThatCanRun says of each stage why it cannot run, with the needs that the machine does not have and why.
func stagesThatCanRun(why map[stage.Need]string) (stages []CanRun) {
	if _, err := script.Identity(script.Apple); err != nil {
		why[stage.NeedsMetal] = err.Error()
	}
	if runtime.GOOS == "darwin" {
		why[stage.NeedsTorch] = "name the Python of the built torch: verify --python PYTHON"
	} else {
		why[stage.NeedsTorch] = cmp.Or(why[stage.NeedsCache], why[stage.NeedsCheckout], why[stage.NeedsRoot]) // a host build's
	}
	for _, s := range Stages() {
		can := CanRun{Name: s.Name}
		for _, need := range s.Needs {
			can.Why = cmp.Or(can.Why, why[need])
		}
		stages = append(stages, can)
	}
	return stages
}

// Variables lists what the environment can set, without the values of this machine.
func Variables() []Variable { return slices.Clone(variables) }

// variables is the one list of environment variables: mpsforge's own, and those of the patched PyTorch.
var variables = []Variable{
	{Name: "MPSFORGE_CHECKOUT", Meaning: "the checkout, instead of ./pytorch"},
	{Name: "MPSFORGE_PATCHES", Meaning: "folder with series, instead of those built in"},
	{Name: "MPSFORGE_CACHE", Meaning: "cache folder, instead of the user's"},
	{Name: builds.AnySpace, Meaning: "1 starts downloads and builds even if the disk seems too small"},
	{Name: "MPSFORGE_TORCH", Meaning: "libtorch for host builds, instead of Debian's or PyTorch's wheel"},
	{Name: "MPSFORGE_PYTHON", Meaning: "Python whose torch the stages python, bench, operators and upstream test, instead of the host build's"},
	{Name: "MPSFORGE_VENV", Meaning: "Python environment that build makes, instead of build/mpsforge/venv in the checkout"},
	{Name: "MPSFORGE_ROOT", Meaning: "Debian system for host builds, instead of one in the cache"},
	{Name: "MPSFORGE_THEME", Meaning: "light or dark: the terminal's background, for the choice of colours"},
	{Name: "NO_COLOR", Meaning: "anything: no colours"},
	{Name: "MPSFORGE_OVERLAY", Meaning: "0: torch keeps its own MPS backend where an overlay is installed"},
	{Name: "CXX", Meaning: "C++ compiler for the subjects of verify"},
	{Name: "PYTORCH_MPS_STREAM_POOL_SIZE", Meaning: "patched PyTorch: worker streams and the default one, 2 to 1024, default 32"},
	{Name: "PYTORCH_MPS_STREAM_POOL_EXHAUSTED", Meaning: "patched PyTorch: share, wait, wait:500 (milliseconds) or error when all are taken, default share"},
	{Name: "PYTORCH_MPS_SANITIZE", Meaning: "patched PyTorch: warn, error, waits, poison, or some with commas: looks for mistakes in the use of memory"},
	{Name: "PYTORCH_MPS_STREAM_PER_THREAD", Meaning: "patched PyTorch: 0 makes all threads use the default stream, default 1"},
	{Name: "PYTORCH_MPS_GRAPH_CACHE_SIZE", Meaning: "patched PyTorch: compiled graphs that the process keeps, 0 for no bound; default 512, rising"},
	{Name: "PYTORCH_MPS_RAISE_FAILURES", Meaning: "patched PyTorch: 0 hides what failed on the GPU, default 1"},
}

// rootCanBeHad says why a root of Debian's packages is not there and cannot be made.
func rootCanBeHad(cache string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("host builds run on Linux; this is %s", runtime.GOOS)
	}
	if host.HaveRoot(cache) {
		return nil
	}
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	return nil
}

// haveMacWheels reports whether the cache has what the stage mac downloads for the baseline of host builds.
func haveMacWheels(cache string) bool {
	series, err := patches.Load(patches.Embedded(), host.DebianBaseline)
	if err != nil {
		return false
	}
	facts, err := series.MacFacts()
	return err == nil && mac.Have(cache, facts)
}

// describeLibtorchs says where host builds of each version get their libtorch from.
func describeLibtorchs(cache string) (string, error) {
	names, err := patches.Baselines(patches.Embedded())
	if err != nil {
		return "", err
	}
	var lines []string
	for _, name := range names {
		series, err := patches.Load(patches.Embedded(), name)
		if err != nil {
			return "", err
		}
		facts, err := series.HostFacts()
		if err != nil {
			return "", err
		}
		line := "PyTorch's wheel, downloaded on demand: 200 MB of its own index's, or 900 MB of PyPI's"
		if choices := host.Libtorchs(facts); len(choices) == 0 {
			line = "Debian's package, in the root"
		} else if host.HaveLibtorch(choices, cache) {
			line = "PyTorch's wheel, in the cache"
		}
		lines = append(lines, name+": "+line)
	}
	return strings.Join(lines, "; "), nil
}

func describeCheckout(ctx context.Context, dir string) (string, error) {
	checkout, err := fork.Open(ctx, dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is none at %s", dir)
	}
	if err != nil {
		return "", err
	}
	baseline := checkout.Baseline()
	if baseline == "" {
		baseline = "no baseline recorded"
	}
	return checkout.Dir() + ", " + baseline, errors.Join(checkout.Interrupted(), checkout.Close())
}

func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	probe, err := os.CreateTemp(dir, ".probe")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(filepath.Clean(probe.Name())))
}
