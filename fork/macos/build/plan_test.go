package build

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
)

// mac are the facts of a Mac on which PyTorch can be built. No Mac has run this: the plan is what is tested.
func mac() Machine {
	return Machine{System: "darwin", Architecture: "arm64", Release: "15.1", Processors: 10, Memory: 16 << 30, Disk: 100 << 30,
		Developer: "/Applications/Xcode.app/Contents/Developer", Xcode: "16.2", SDK: "15.2", Metal: "Apple metal version 32023.404", HasMetal: true,
		Tools: map[string]Tool{
			"cc": {Path: "/usr/bin/clang", Version: "16.0.0", Text: "Apple clang version 16.0.0"}, "c++": {Path: "/usr/bin/clang++", Version: "16.0.0",
				Text: "Apple clang version 16.0.0"},
			"python3": {Path: "/opt/homebrew/bin/python3.12", Version: "3.12.4", Text: "Python 3.12.4"}, "git": {Path: "/usr/bin/git", Version: "2.39.5"},
			"ccache": {Path: "/opt/homebrew/bin/ccache", Version: "4.10"},
		},
		Variables: map[string]string{"HOME": "/Users/u", "CPATH": "/opt/homebrew/include", "CONDA_PREFIX": "/Users/u/miniconda3",
			"CCACHE_DIR": "/Users/u/cc", "EDITOR": "vi"},
	}
}

// release is what a checkout of 2.9.1 says of itself.
func release() Recipe {
	return Recipe{Checkout: "/src/pytorch", Version: "2.9.1", CMake: "3.27", Python: "3.10", SDK: "12.3",
		RequirementsFile: "requirements-build.txt", Requirements: []string{"setuptools>=70.1.0", "cmake>=3.27", "ninja", "numpy", "pyyaml"}}
}

func planFor(t *testing.T, r Recipe, m Machine, o PlanOptions) Plan {
	t.Helper()
	return require.One(NewPlan(r, m, o))(t)
}

func wantIn(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		require.Contains(t, text, want)
	}
}

// The whole plan for a Mac: MPS on, clang by its path, a search path that nothing of the user's is in, jobs by memory.
func TestPlanForAMac(t *testing.T) {
	p := planFor(t, release(), mac(), PlanOptions{Venv: "/venv"})
	require.NoError(t, Gaps(p.Preflight()))
	text := p.Shell()
	wantIn(t, text, "export USE_MPS=1\n", "export USE_DISTRIBUTED=0\n", "export BUILD_TEST=0\n", "export MAX_JOBS=8\n",
		"export CC=/usr/bin/clang\n", "export MACOSX_DEPLOYMENT_TARGET=11.0\n",
		"export CMAKE_OBJCXX_COMPILER_LAUNCHER=/opt/homebrew/bin/ccache\n", "export CCACHE_DIR=\"$CCACHE_DIR\"\n",
		"export PATH=/venv/bin:/src/pytorch/build/mpsforge/tools:/usr/bin:/bin:/usr/sbin:/sbin\n", "export PYTORCH_BUILD_VERSION=2.9.1+mpsforge\n",
		"/bin/ln -sf /usr/bin/git .\n", "/opt/homebrew/bin/python3.12 -m venv /venv\n",
		"/venv/bin/python3 -m pip --disable-pip-version-check install -r requirements-build.txt\n",
		"/venv/bin/python3 setup.py build --cmake --cmake-only\n", "ninja -C build -j 8 all\n",
		"/venv/bin/python3 setup.py bdist_wheel --dist-dir /src/pytorch/build/mpsforge/dist\n")
	if strings.Contains(text, "CPATH") || strings.Contains(text, "CONDA") || strings.Contains(text, "EDITOR") {
		t.Errorf("the caller's environment shows through:\n%s", text)
	}
	if strings.Contains(text, "/Users/u/cc") || !slices.Contains(p.environment(), "CCACHE_DIR=/Users/u/cc") {
		t.Errorf("the caller's values are handed on and not shown:\n%s", text)
	}
	require.Equal(t, p.LeftOut, []string{"CONDA_PREFIX", "CPATH"}, "told as left out")
	page := require.One(os.ReadFile("../../../docs/transcripts.md"))(t)
	if !strings.Contains(string(page), "\n"+strings.TrimSpace(text)+"\n```\n") {
		t.Errorf("docs/transcripts.md has another plan; this is the plan now:\n%s", text)
	}
}

// On Linux it is the same plan without MPS.
func TestPlanForLinux(t *testing.T) {
	m := mac()
	m.System, m.Architecture, m.Memory = "linux", "x86_64", 3<<30
	p := planFor(t, release(), m, PlanOptions{Targets: []string{"c10"}, Launcher: "none"})
	text := p.Shell()
	wantIn(t, text, "export USE_MPS=0\n", "export MAX_JOBS=1\n", "ninja -C build -j 1 c10\n", "/opt/homebrew/bin/python3.12 setup.py build")
	for _, not := range []string{"MACOSX", "LAUNCHER", "bdist_wheel", " pip "} {
		if strings.Contains(text, not) {
			t.Errorf("%s in:\n%s", not, text)
		}
	}
}

// Each gap is reported by name, with what fixes it, before anything runs.
func TestPreflightNamesEachGapWithItsFix(t *testing.T) {
	for _, gap := range []struct {
		name, found, fix string
		make             func(*Recipe, *Machine)
	}{
		{"submodules", "third_party/fmt", "submodule update --init --recursive", func(r *Recipe, _ *Machine) { r.Missing = []string{"third_party/fmt"} }},
		{"Xcode", "none found", "xcode-select --switch", func(_ *Recipe, m *Machine) { m.Developer, m.Xcode = "", "" }},
		{"macOS SDK", "12.1 (at least 12.3)", "update Xcode", func(_ *Recipe, m *Machine) { m.SDK = "12.1" }},
		{"processor", "x86_64", "arch -arm64", func(_ *Recipe, m *Machine) { m.Architecture = "x86_64" }},
		{"C++ compiler", "none found", "xcode-select --install", func(_ *Recipe, m *Machine) { delete(m.Tools, "c++") }},
		{"Python", "3.9.6 (at least 3.10)", "--python", func(_ *Recipe, m *Machine) { m.Tools["python3"] = Tool{Path: "/usr/bin/python3", Version: "3.9.6"} }},
		{"cmake", "3.26.1 (at least 3.27)", "brew install cmake", func(r *Recipe, m *Machine) {
			r.Requirements = nil
			m.Tools["cmake"], m.Tools["ninja"] = Tool{Path: "/c", Version: "3.26.1"}, Tool{Path: "/n", Version: "1.12"}
		}},
		{"ninja", "none found", "brew install ninja", func(r *Recipe, m *Machine) {
			r.Requirements = nil
			m.Tools["cmake"] = Tool{Path: "/c", Version: "3.30.0"}
		}},
		{"free disk", "3.0 GB, of 15.0 GB needed", "free some space", func(_ *Recipe, m *Machine) { m.Disk = 3 << 30 }},
	} {
		t.Run(gap.name, func(t *testing.T) {
			r, m := release(), mac()
			gap.make(&r, &m)
			p := planFor(t, r, m, PlanOptions{Venv: "/venv"})
			err := Gaps(p.Preflight())
			if !errors.Is(err, builds.ErrEnvironment) {
				t.Fatalf("no gap: %v", err)
			}
			wantIn(t, err.Error(), gap.name+": "+gap.found, "to fix it: ", gap.fix)
			if n := strings.Count(err.Error(), "fix it:"); n != 1 {
				t.Errorf("%d gaps are reported, one is there: %v", n, err)
			}
		})
	}
}

// What only makes a build worse does not keep it from starting.
func TestPreflightAdvises(t *testing.T) {
	m := mac()
	m.HasMetal, m.Memory, m.Disk = false, 4<<30, 3<<30
	m.Variables[builds.AnySpace] = "1"
	p := planFor(t, release(), m, PlanOptions{Venv: "/venv"})
	checks := p.Preflight()
	if err := Gaps(checks); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"Metal compiler", "memory", "free disk", "environment left out"} {
		if i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name }); i < 0 || checks[i].State != Advice || checks[i].Fix == "" {
			t.Errorf("%s: no advice in %+v", name, checks)
		}
	}
}

// Bounds and requirements are the checkout's own, in the words of 2.6.0 and of 2.9.
func TestRecipeIsReadFromTheCheckout(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.File(t, filepath.Join(dir, name), text)
	}
	write("version.txt", "2.6.0a0\n")
	write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.18 FATAL_ERROR)\n      if(_macosx_sdk_version VERSION_GREATER_EQUAL 12.3)\n")
	write("setup.py", "python_min_version = (3, 9, 0)\n")
	write("pyproject.toml", "[build-system]\nrequires = [\n    \"setuptools\",\n    \"typing-extensions>=4.10.0\",\n]\n")
	write(".gitmodules", "[submodule \"a\"]\n\tpath = third_party/a\n[submodule \"b\"]\n\tpath = third_party/b\n")
	write("third_party/a/LICENSE", "")
	r, err := ReadRecipe(dir)
	require.NoError(t, err)
	if r.Version != "2.6.0" || r.CMake != "3.18" || r.Python != "3.9.0" || r.SDK != "12.3" || r.RequirementsFile != "pyproject.toml" ||
		!slices.Equal(r.Requirements, []string{"setuptools", "typing-extensions>=4.10.0"}) || !slices.Equal(r.Missing, []string{"third_party/b"}) {
		t.Errorf("%+v", r)
	}
	write("requirements-build.txt", "# Build System requirements\ncmake>=3.27\nsix  # for PeachPy\n")
	if r, err = ReadRecipe(dir); err != nil || !slices.Equal(r.Requirements, []string{"cmake>=3.27", "six"}) || !r.requires("cmake") || r.requires("ninja") {
		t.Errorf("%+v, %v", r, err)
	}
}
