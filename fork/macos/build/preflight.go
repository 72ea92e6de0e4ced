package build

import (
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork/builds"
)

// Check is one thing that a build needs, and whether it is there.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Found string `json:"found"`
	For   string `json:"for,omitempty"`
	Fix   string `json:"fix,omitempty"` // a command, or what to do
}

// State is how a check came out.
type State string

// The states of a check: a build starts with advice, but not with something missing.
const (
	Good    State = "ok"
	Advice  State = "advice"
	Missing State = "missing"
)

// Estimates: no whole build has been measured on a Mac yet. They are on the safe side; a disk that fills up nevertheless is
// reported as such, and nothing is lost.
const (
	diskNeeded   = 15 << 30
	memoryNeeded = 8 << 30
	sliceNeeded  = 2 << 30 // of disk, where one target is built
)

// cmakeForStamp is the first cmake with cmake_language(DEFER), which the stamp is added by.
const cmakeForStamp = "3.19"

// Preflight checks everything that a plan needs before anything is run.
func (p *Plan) Preflight() []Check {
	var all checks
	p.checkTools(&all)
	p.checkMachine(&all)
	return all
}

type checks []Check

func (all *checks) add(good bool, otherwise State, name, found, purpose, fix string) {
	c := Check{Name: name, State: Good, Found: found}
	if !good {
		c.State, c.For, c.Fix = otherwise, purpose, fix
	}
	*all = append(*all, c)
}

// checkTools looks for sources, compilers and Python.
func (p *Plan) checkTools(all *checks) {
	check := all.add
	m, r := p.Machine, p.Recipe
	apple := m.System == "darwin"
	install := map[bool]string{true: "brew install ", false: "apt-get install "}[apple]

	modules, fix := strings.Join(r.Missing, ", "), fmt.Sprintf("git -C %s submodule update --init --recursive", r.Checkout)
	systemLibraries := slices.ContainsFunc(p.Settings, func(s Setting) bool { return s.Name == "USE_SYSTEM_LIBS" && s.Value != "0" })
	switch {
	case len(r.Missing) == 0:
		modules = "complete"
	case systemLibraries:
		modules = "not asked for: USE_SYSTEM_LIBS is set"
	case r.Bare:
		fix = "these sources come without them: build a git checkout of PyTorch, or install the libraries and give --set USE_SYSTEM_LIBS=1"
	}
	check(len(r.Missing) == 0 || systemLibraries, Missing, "submodules", modules, "PyTorch's third-party sources", fix)

	if apple {
		check(m.Developer != "", Missing, "Xcode", cmpOr(strings.TrimSpace(m.Xcode+" in "+m.Developer), m.Developer != ""), "compiler and SDK",
			"install Xcode from the App Store; sudo xcode-select --switch /Applications/Xcode.app")
		check(m.SDK != "" && !VersionLess(m.SDK, r.SDK), Missing, "macOS SDK", atLeast(m.SDK, r.SDK), "MPSGraph; PyTorch switches MPS off without it",
			"update Xcode, then: sudo xcode-select --switch /Applications/Xcode.app")
		check(m.HasMetal, Advice, "Metal compiler", m.Metal, "shaders compiled ahead; without it they are compiled when torch first needs them",
			"xcodebuild -downloadComponent MetalToolchain")
		check(m.Architecture == "arm64", Missing, "processor", m.Architecture, "MPS on Apple silicon; an x86_64 shell on such a Mac runs under Rosetta",
			"start the terminal and Python natively: arch -arm64 zsh")
	}
	compiler := m.Tools["c++"]
	fix = install + "g++"
	if apple {
		fix = "xcode-select --install"
	}
	check(compiler.Path != "", Missing, "C++ compiler", cmpOr(compiler.Text+" ("+compiler.Path+")", compiler.Path != ""), "everything", fix)
	python := m.Tools["python3"]
	check(python.Path != "" && !VersionLess(python.Version, r.Python), Missing, "Python", atLeast(python.Version, r.Python), "setup.py and the result",
		"install a newer Python and name it with --python")
	for _, tool := range []struct{ name, least, purpose, fix string }{
		{"cmake", r.CMake, "configuring", install + "cmake"},
		{"ninja", "", "compiling", install + map[bool]string{true: "ninja", false: "ninja-build"}[apple]},
	} {
		if tool.name == "cmake" && VersionLess(tool.least, cmakeForStamp) {
			tool.least = cmakeForStamp
		}
		if p.Venv != "" && r.requires(tool.name) {
			check(true, Good, tool.name, "installed into the environment from "+r.RequirementsFile, "", "")
			continue
		}
		version := m.Tools[tool.name].Version
		check(version != "" && !VersionLess(version, tool.least), Missing, tool.name, atLeast(version, tool.least), tool.purpose, tool.fix)
	}
	if p.Venv != "" {
		check(true, Good, "environment", fmt.Sprintf("%s, with %s", p.Venv, strings.Join(r.Requirements, ", ")), "", "")
	} else {
		var lacking []string
		for _, name := range []string{"setuptools", "yaml", "typing_extensions"} {
			if !slices.Contains(m.Modules, name) {
				lacking = append(lacking, name)
			}
		}
		found := "all there"
		if len(lacking) > 0 {
			found = "lacking: " + strings.Join(lacking, ", ")
		}
		check(len(lacking) == 0, Missing, "Python packages", found, "setup.py",
			python.Path+" -m pip install -r "+r.RequirementsFile+"; or leave out --no-venv")
	}
}

// checkMachine looks at disk, memory and environment.
func (p *Plan) checkMachine(all *checks) {
	check, m := all.add, p.Machine
	disk := int64(diskNeeded)
	if len(p.Targets) > 0 {
		disk = sliceNeeded
	}
	little := Missing
	if m.Variables[builds.AnySpace] == "1" {
		little = Advice
	}
	check(m.Disk >= disk, little, "free disk", fmt.Sprintf("%s, of %s needed", gigabytes(m.Disk), gigabytes(disk)), "objects, libraries and the wheel",
		"free some space, put the checkout elsewhere, or set "+builds.AnySpace+"=1 to try anyway")
	check(m.Memory >= memoryNeeded, Advice, "memory", fmt.Sprintf("%s, %d compilers at once", gigabytes(m.Memory), p.Jobs),
		"the largest sources need 2 GB each", "--jobs 1")
	if len(p.LeftOut) > 0 {
		check(false, Advice, "environment left out", strings.Join(p.LeftOut, ", "), "they would change the build, and are not passed on",
			"--set NAME=VALUE passes one on")
	}
}

// cmpOr is text when it holds something, else the usual word.
func cmpOr(text string, holds bool) string {
	if !holds {
		return "none found"
	}
	return text
}

func atLeast(found, least string) string {
	if found == "" {
		found = "none found"
	}
	if least == "" {
		return found
	}
	return fmt.Sprintf("%s (at least %s)", found, least)
}

func gigabytes(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/(1<<30)) }

// Gaps is the error for what is missing; nil when nothing is.
func Gaps(checks []Check) error {
	var missing []string
	for _, c := range checks {
		if c.State == Missing {
			missing = append(missing, fmt.Sprintf("%s: %s; needed for %s; to fix it: %s", c.Name, c.Found, c.For, c.Fix))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n  %s", builds.ErrEnvironment, strings.Join(missing, "\n  "))
}
