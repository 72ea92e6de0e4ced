package build

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
)

// PlanOptions are the user's choices for a build of PyTorch.
type PlanOptions struct {
	// Venv is the folder of the Python environment that the build makes and installs into; empty takes the Python of the
	// machine as it is and installs nothing.
	Venv string
	Jobs int // compilers at once; 0: from processors and memory
	// Launcher is put before each compiler: ccache or sccache, as found on the path, or a path; empty: the first of the
	// two that there is; none: none.
	Launcher string
	// Targets are what ninja builds instead of everything; then no wheel is made.
	Targets []string
	// MPSOnly builds torch_cpu, and refuses if that takes more than the MPS backend's objects.
	MPSOnly bool
	// Set is put over the pinned environment: NAME=VALUE.
	Set []string
}

// Plan is what a build does: an environment and commands, as data.
type Plan struct {
	Recipe  Recipe  `json:"recipe"`
	Machine Machine `json:"machine"`
	Jobs    int     `json:"jobs"`
	// Targets are ninja's; without any the result is a wheel.
	Targets []string `json:"targets"`
	MPSOnly bool     `json:"mps_only,omitempty"`
	Venv    string   `json:"venv,omitempty"`
	// Python runs setup.py and is what the result is installed for.
	Python string `json:"python"`
	// Settings are the pinned variables, Carried the names of those taken over from the caller: nothing else is seen by the
	// commands. Values of the caller's are not shown, as some hold passwords (PIP_INDEX_URL, SCCACHE_WEBDAV_TOKEN).
	Settings []Setting `json:"settings"`
	Carried  []string  `json:"carried"`
	// LeftOut are variables of the caller that would have changed the build.
	LeftOut []string   `json:"left_out"`
	Steps   []PlanStep `json:"steps"`
}

// Setting is an environment variable.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Local is set for what differs from machine to machine with no effect on the result's code.
	Local bool `json:"local,omitempty"`
}

// PlanStep is one command of a plan.
type PlanStep struct {
	Name string `json:"name"`
	// When says when the step is left out.
	When string   `json:"when,omitempty"`
	Args []string `json:"args"`
	Dir  string   `json:"dir"`
}

// The steps of a plan.
const (
	StepTools        = "tools"
	StepVenv         = "venv"
	StepRequirements = "requirements"
	StepConfigure    = "configure"
	StepCompile      = "compile"
	StepWheel        = "wheel"
	StepInstall      = "install"
	StepDependencies = "dependencies"
	StepCheck        = "check"
)

// buildFolder is where setup.py has cmake build; the name is fixed in PyTorch's tools/setup_helpers/env.py. What mpsforge
// itself writes is in a folder of its own there, as git ignores it.
const buildFolder = "build"

// ownFolder holds the log, the stamp's sources, records of finished steps and the wheel.
func ownFolder(checkout string) string { return filepath.Join(checkout, buildFolder, "mpsforge") }

// DefaultVenv is where the Python environment of a checkout is, unless the user says otherwise.
func DefaultVenv(checkout string) string { return filepath.Join(ownFolder(checkout), "venv") }

// memoryPerJob is what a compiler may take: the largest of PyTorch's sources need about that much with clang, and a machine
// that swaps is slower than one job fewer.
const memoryPerJob = 2 << 30

// deploymentTarget is the oldest macOS that the code may run on, as for PyTorch's own wheels; left open it would be the
// SDK's, and differ between machines.
const deploymentTarget = "11.0"

// wheelTarget builds all that setup.py's own build would.
const wheelTarget = "all"

// mpsTarget is the library that the MPS backend is a part of.
const mpsTarget = "torch_cpu"

// NewPlan makes the plan. It looks at nothing: recipe and machine are the facts.
func NewPlan(recipe Recipe, machine Machine, options PlanOptions) (Plan, error) {
	p := Plan{Recipe: recipe, Machine: machine, Jobs: options.Jobs, Targets: options.Targets, MPSOnly: options.MPSOnly, Venv: options.Venv}
	if p.Jobs <= 0 {
		p.Jobs = max(1, min(machine.Processors, int(machine.Memory/memoryPerJob)))
	}
	if p.MPSOnly {
		p.Targets = []string{mpsTarget}
	}
	p.Python = machine.Tools["python3"].Path
	if p.Venv != "" {
		p.Python = filepath.Join(p.Venv, "bin", "python3")
	}
	if err := p.setEnvironment(options); err != nil {
		return p, err
	}
	p.addSteps()
	return p, nil
}

// carried are taken over from the caller: who and where the user is, how downloads are made, and the settings of a
// launcher's cache.
var (
	carriedNames = []string{"HOME", "USER", "LOGNAME", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "http_proxy", "https_proxy", "no_proxy",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}
	carriedPrefixes = []string{"CCACHE_", "SCCACHE_", "PIP_"}
)

// harmful begin the names of variables that compilers, linkers, cmake or setup.py would follow.
var harmful = []string{"CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_",
	"DYLD_",
	"SDKROOT", "DEVELOPER_DIR", "MACOSX_DEPLOYMENT_TARGET", "CMAKE_", "USE_", "BUILD_", "PYTORCH_", "CONDA_", "PYTHONPATH", "PYTHONHOME", "MAX_JOBS",
	"VERBOSE", "DEBUG"}

func (p *Plan) setEnvironment(options PlanOptions) error {
	m := p.Machine
	apple := m.System == "darwin"
	mps := "0"
	if apple {
		mps = "1"
	}
	put := func(name, value string) { p.Settings = append(p.Settings, Setting{Name: name, Value: value}) }
	local := func(name, value string) {
		p.Settings = append(p.Settings, Setting{Name: name, Value: value, Local: true})
	}
	put("USE_MPS", mps)
	put("USE_CUDA", "0")
	put("USE_ROCM", "0")
	put("USE_XPU", "0")
	put("USE_DISTRIBUTED", "0")
	put("BUILD_TEST", "0")
	put("CMAKE_BUILD_TYPE", "Release")
	local("USE_COLORIZE_OUTPUT", "0") // the log is a file
	// Without these setup.py puts the commit into the version, and what only asks for PyTorch of that release is refused.
	put("PYTORCH_BUILD_VERSION", p.Recipe.Version+"+mpsforge")
	put("PYTORCH_BUILD_NUMBER", "1")
	if apple {
		// CMAKE_OSX_ARCHITECTURES stays unset: PyTorch's CMakeLists.txt takes it for a cross build, and builds a universal
		// protoc first. Preflight sees to it that the processor is the Mac's own.
		put("MACOSX_DEPLOYMENT_TARGET", deploymentTarget)
		if m.Developer != "" {
			local("DEVELOPER_DIR", m.Developer)
		}
	}
	local("CC", m.Tools["cc"].Path)
	local("CXX", m.Tools["c++"].Path)
	if err := p.setLauncher(options.Launcher, put, local); err != nil {
		return err
	}
	local("MAX_JOBS", strconv.Itoa(p.Jobs))
	// setup.py hands every variable that begins with CMAKE_ on to cmake. cmake includes the named file after project(Torch),
	// and so the stamp becomes part of the libraries with no change to PyTorch.
	local("CMAKE_PROJECT_Torch_INCLUDE", stampInclude(p.Recipe.Checkout))
	local("PATH", strings.Join(p.searchPath(), ":"))
	local("NINJA_STATUS", ninjaStatus)
	local("LC_ALL", "C")
	for _, entry := range options.Set {
		name, value, found := strings.Cut(entry, "=")
		if !found || name == "" {
			return fmt.Errorf("%q is no NAME=VALUE", entry)
		}
		i := slices.IndexFunc(p.Settings, func(s Setting) bool { return s.Name == name })
		if i < 0 {
			put(name, value)
			continue
		}
		p.Settings[i].Value = value
	}
	for _, name := range slices.Sorted(maps.Keys(m.Variables)) {
		has := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		switch {
		case slices.ContainsFunc(p.Settings, func(s Setting) bool { return s.Name == name && s.Value == m.Variables[name] }):
		case slices.Contains(carriedNames, name), slices.ContainsFunc(carriedPrefixes, has):
			p.Carried = append(p.Carried, name)
		case slices.ContainsFunc(harmful, func(prefix string) bool {
			return name == prefix || strings.HasSuffix(prefix, "_") && has(prefix)
		}):
			p.LeftOut = append(p.LeftOut, name)
		}
	}
	return nil
}

// setLauncher puts ccache, sccache or another program before the compilers. PyTorch's own search for ccache is switched
// off, so that what is used is what is reported.
func (p *Plan) setLauncher(launcher string, put, local func(name, value string)) error {
	put("USE_CCACHE", "0")
	path := launcher
	switch launcher {
	case "none":
		return nil
	case "":
		for _, name := range []string{"ccache", "sccache"} {
			if path == "" {
				path = p.Machine.Tools[name].Path
			}
		}
		if path == "" {
			return nil
		}
	case "ccache", "sccache":
		if path = p.Machine.Tools[launcher].Path; path == "" {
			return fmt.Errorf("%w: --launcher %s: it is not on the path", builds.ErrEnvironment, launcher)
		}
	}
	languages := []string{"C", "CXX"}
	if p.Machine.System == "darwin" {
		languages = append(languages, "OBJC", "OBJCXX")
	}
	for _, language := range languages {
		local("CMAKE_"+language+"_COMPILER_LAUNCHER", path)
	}
	return nil
}

// searchPath is the environment's own programs, links to the tools that were found, and the system's: no other compiler,
// linker or library tool of the user's path can come between.
func (p *Plan) searchPath() []string {
	path := []string{toolFolder(p.Recipe.Checkout), "/usr/bin", "/bin", "/usr/sbin", "/sbin"}
	if p.Venv != "" {
		path = append([]string{filepath.Join(p.Venv, "bin")}, path...)
	}
	return path
}

// toolFolder holds the links.
func toolFolder(checkout string) string { return filepath.Join(ownFolder(checkout), "tools") }

// linkedTools are the programs that setup.py and cmake look for on the path; a venv that requires cmake and ninja has its own.
func (p *Plan) linkedTools() []string {
	var all []string
	for _, name := range []string{"cmake", "ninja", "git"} {
		if tool := p.Machine.Tools[name]; tool.Path != "" && (p.Venv == "" || !p.Recipe.requires(name)) {
			all = append(all, tool.Path)
		}
	}
	return all
}

func (p *Plan) addSteps() {
	checkout := p.Recipe.Checkout
	if tools := p.linkedTools(); len(tools) > 0 {
		p.Steps = append(p.Steps, PlanStep{Name: StepTools, Args: append(append([]string{"/bin/ln", "-sf"}, tools...), "."), Dir: toolFolder(checkout)})
	}
	step := func(name, when string, args ...string) {
		p.Steps = append(p.Steps, PlanStep{Name: name, When: when, Args: args, Dir: checkout})
	}
	pip := []string{p.Python, "-m", "pip", "--disable-pip-version-check", "install"}
	if p.Venv != "" {
		step(StepVenv, "it exists", p.Machine.Tools["python3"].Path, "-m", "venv", p.Venv)
		if p.Recipe.RequirementsFile == "requirements-build.txt" {
			step(StepRequirements, "they are installed", append(pip, "-r", p.Recipe.RequirementsFile)...)
		} else if len(p.Recipe.Requirements) > 0 {
			step(StepRequirements, "they are installed", append(slices.Clone(pip), p.Recipe.Requirements...)...)
		}
	}
	// --cmake drops an older cache, as setup.py does not configure again for other settings by itself.
	step(StepConfigure, "it is configured like this already", p.Python, "setup.py", "build", "--cmake", "--cmake-only")
	compile := []string{"ninja", "-C", buildFolder, "-j", strconv.Itoa(p.Jobs)}
	if len(p.Targets) > 0 {
		step(StepCompile, "", append(compile, p.Targets...)...)
		return
	}
	step(StepCompile, "", append(compile, wheelTarget)...)
	dist := filepath.Join(ownFolder(checkout), "dist")
	step(StepWheel, "nothing has changed", p.Python, "setup.py", "bdist_wheel", "--dist-dir", dist)
	if p.Venv != "" {
		wheel := filepath.Join(dist, "torch-*.whl")
		step(StepInstall, "nothing has changed", append(slices.Clone(pip), "--force-reinstall", "--no-deps", wheel)...)
		step(StepDependencies, "nothing has changed", append(slices.Clone(pip), wheel)...)
		// Isolated and outside of the checkout, whose folder torch would be found first.
		p.Steps = append(p.Steps, PlanStep{Name: StepCheck, Args: []string{p.Python, "-I", "-c", importCheck}, Dir: dist})
	}
}

// importCheck prints which torch a clean process gets.
const importCheck = "import json, torch; print(json.dumps([torch.__version__, torch.__file__, torch.backends.mps.is_built()]))"

// environment is what the commands see.
func (p *Plan) environment() []string {
	var all []string
	for _, name := range p.Carried {
		all = append(all, name+"="+p.Machine.Variables[name])
	}
	for _, s := range p.Settings {
		all = append(all, s.Name+"="+s.Value)
	}
	return all
}

// flags are the settings that are part of a stamp: those that decide what is built, wherever it is built.
func (p *Plan) flags() []string {
	var all []string
	for _, s := range p.Settings {
		if !s.Local {
			all = append(all, s.Name+"="+s.Value)
		}
	}
	slices.Sort(all)
	return all
}

// Shell gives the plan as a script of the shell: exactly what runs, with the environment it runs in.
func (p *Plan) Shell() string {
	var b strings.Builder
	b.WriteString("# environment: nothing else is set\n")
	for _, name := range p.Carried {
		fmt.Fprintf(&b, "export %s=\"$%s\"\n", name, name)
	}
	for _, s := range p.Settings {
		fmt.Fprintf(&b, "export %s\n", run.Command{Name: s.Name + "=" + s.Value})
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "\n# %s", s.Name)
		if s.When != "" {
			fmt.Fprintf(&b, "; left out when %s", s.When)
		}
		// The wheel's name is known when it is made; a shell finds it by the pattern.
		line := strings.ReplaceAll(run.Command{Name: s.Args[0], Args: s.Args[1:]}.String(), "torch-*.whl'", "'torch-*.whl")
		fmt.Fprintf(&b, "\nmkdir -p %[1]s && cd %[1]s\n%[2]s\n", run.Command{Name: s.Dir}, line)
	}
	return b.String()
}
