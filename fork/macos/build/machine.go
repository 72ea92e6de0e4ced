package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/internal/words"
)

// Machine is what a build of PyTorch has to know of the machine that it runs on. It is data, so that the plan for a Mac can
// be made and looked at anywhere.
type Machine struct {
	System       string `json:"system"`       // linux or darwin
	Architecture string `json:"architecture"` // as cmake names it: x86_64, arm64, aarch64
	Release      string `json:"release"`      // of macOS or of the kernel
	Processors   int    `json:"processors"`
	Memory       int64  `json:"memory"` // bytes
	Disk         int64  `json:"disk"`   // bytes free where the checkout is
	// Developer is the folder that xcode-select names, Xcode the version of the Xcode in it (the command line tools have
	// none), SDK that of the macOS SDK; Metal is what the Metal compiler says of itself, or why it does not run.
	Developer string `json:"developer,omitempty"`
	Xcode     string `json:"xcode,omitempty"`
	SDK       string `json:"sdk,omitempty"`
	Metal     string `json:"metal,omitempty"`
	HasMetal  bool   `json:"has_metal,omitempty"`
	// Tools are the programs found, by name.
	Tools map[string]Tool `json:"tools"`
	// Modules are the packages that the Python has, of those that a build imports.
	Modules []string `json:"modules"`
	// Variables are the caller's environment.
	Variables map[string]string `json:"-"`
}

// Tool is a program found.
type Tool struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	// Text is the line in which the program gives its version.
	Text string `json:"text,omitempty"`
}

// buildModules are the Python packages that configure and wheel import, by the names that they are imported by.
var buildModules = []string{"setuptools", "wheel", "yaml", "numpy", "typing_extensions"}

// toolNames are looked for on the path; python3 and the compilers come with the options.
var toolNames = []string{"git", "cmake", "ninja", "ccache", "sccache"}

// Probe looks at this machine. Of the tools python3, cc and c++, those in requested are taken from the paths given there.
func Probe(ctx context.Context, checkout string, requested map[string]string) (Machine, error) {
	m := Machine{System: runtime.GOOS, Processors: runtime.NumCPU(), Tools: map[string]Tool{}, Variables: map[string]string{}}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		m.Variables[name] = value
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return m, fmt.Errorf("uname: %w", err)
	}
	m.Architecture, m.Release = unix.ByteSliceToString(name.Machine[:]), unix.ByteSliceToString(name.Release[:])
	var err error
	if m.Memory, err = memorySize(ctx); err != nil {
		return m, err
	}
	if m.Disk, err = builds.Free(checkout); err != nil {
		return m, err
	}
	for _, name := range toolNames {
		m.find(ctx, name, name)
	}
	for name, fallback := range map[string]string{"python3": "python3", "cc": compilers[m.System][0], "c++": compilers[m.System][1]} {
		if path := requested[name]; path != "" {
			fallback = path
		}
		m.find(ctx, name, fallback)
	}
	// A launcher such as pyenv's follows settings that the build does not see; what it starts is meant.
	if python, found := m.Tools["python3"]; found {
		if python.Path, err = m.say(ctx, python.Path, "-c", "import sys; print(sys.executable)"); err != nil {
			return m, fmt.Errorf("ask Python for its path: %w", err)
		}
		m.Tools["python3"] = python
	}
	m.Modules = importable(ctx, m.Tools["python3"].Path)
	if m.System == "darwin" {
		m.probeApple(ctx)
	}
	return m, nil
}

// compilers are those of the system, for C and C++. On a Mac they are xcrun's, which follow DEVELOPER_DIR.
var compilers = map[string][2]string{"linux": {"cc", "c++"}, "darwin": {"/usr/bin/clang", "/usr/bin/clang++"}}

// versionNumber is the first version in what a program says of itself.
var versionNumber = regexp.MustCompile(`\d+(?:\.\d+)+`)

func (m *Machine) find(ctx context.Context, name, program string) {
	path, err := exec.LookPath(program)
	if err != nil {
		return
	}
	if path, err = filepath.Abs(path); err != nil {
		return
	}
	found, err := m.say(ctx, path, "--version")
	if err != nil {
		return // what does not run is as good as not there
	}
	line := words.FirstLine(found)
	m.Tools[name] = Tool{Path: path, Version: versionNumber.FindString(line), Text: line}
}

// say runs a program for the words that it prints.
func (m *Machine) say(ctx context.Context, name string, args ...string) (string, error) {
	found, err := run.Command{Name: name, Args: args, Env: run.Environment([]string{"LC_ALL=C"}, nil)}.Run(ctx)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(found.Stdout)), nil
}

// probeApple asks Apple's tools. What is missing is left empty; preflight says so.
func (m *Machine) probeApple(ctx context.Context) {
	for target, command := range map[*string][]string{
		&m.Release:   {"sw_vers", "-productVersion"},
		&m.Developer: {"xcode-select", "--print-path"},
		&m.SDK:       {"xcrun", "--sdk", "macosx", "--show-sdk-version"},
	} {
		*target, _ = m.say(ctx, command[0], command[1:]...)
	}
	if text, err := m.say(ctx, "xcodebuild", "-version"); err == nil {
		m.Xcode = versionNumber.FindString(text)
	}
	// xcrun --find names a launcher even where the Metal Toolchain, which is a component of its own since Xcode 26, is not
	// installed (pytorch/executorch issue 22683): only a run of the compiler shows it.
	text, err := m.say(ctx, "xcrun", "--sdk", "macosx", "metal", "--version")
	if m.HasMetal = err == nil; err != nil {
		text = err.Error()
	}
	m.Metal = words.FirstLine(text)
}

// importable reports which packages a Python has, without importing them.
func importable(ctx context.Context, python string) []string {
	if python == "" {
		return nil
	}
	const program = "import sys, importlib.util\nprint(*(n for n in sys.argv[1:] if importlib.util.find_spec(n)))"
	found, err := run.Command{Name: python, Args: append([]string{"-c", program}, buildModules...)}.Run(ctx)
	if err != nil {
		return nil
	}
	return strings.Fields(string(found.Stdout))
}

func memorySize(ctx context.Context) (int64, error) {
	if runtime.GOOS == "darwin" {
		found, err := run.Command{Name: "sysctl", Args: []string{"-n", "hw.memsize"}}.Run(ctx)
		if err != nil {
			return 0, fmt.Errorf("size of the memory: %w", err)
		}
		return strconv.ParseInt(strings.TrimSpace(string(found.Stdout)), 10, 64)
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("size of the memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("size of the memory: /proc/meminfo has no MemTotal")
}

// toolchain names what decides the bytes of a build besides sources and flags.
func (m Machine) toolchain() []string {
	var all []string
	add := func(name, version string) {
		if version != "" {
			all = append(all, name+" "+version)
		}
	}
	add("c++:", m.Tools["c++"].Text)
	add("python", m.Tools["python3"].Version)
	add("Xcode", m.Xcode)
	add("macOS SDK", m.SDK)
	if m.HasMetal {
		add("metal:", m.Metal)
	}
	add("architecture", m.Architecture)
	return all
}

// VersionLess compares versions part by part: 3.9 is less than 3.10. A part that is not a number, as rc1 in 2.38.rc1, counts as 0.
func VersionLess(a, b string) bool {
	number := func(parts []string, i int) int {
		if i >= len(parts) {
			return 0
		}
		n, _ := strconv.Atoi(parts[i])
		return n
	}
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		if x, y := number(as, i), number(bs, i); x != y {
			return x < y
		}
	}
	return false
}
