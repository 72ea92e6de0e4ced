package build

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
)

// standIn is a small project that is built the way PyTorch is: by a setup.py that hands its environment's CMAKE_ and USE_
// variables to cmake, from targets c10 and torch_cpu of a project Torch, into a wheel.
var standIn = map[string]string{
	"version.txt": "2.9.1\n",
	"LICENSE":     "licence\n",
	"setup.py": `python_min_version = (3, 0, 0)
import os, subprocess, sys, zipfile
if "build" in sys.argv:
    os.makedirs("build", exist_ok=True)
    if "--cmake" in sys.argv and os.path.exists("build/CMakeCache.txt"):
        os.remove("build/CMakeCache.txt")
    defines = [f"-D{k}={v}" for k, v in os.environ.items() if k.startswith(("CMAKE_", "USE_"))]
    sys.exit(subprocess.call(["cmake", "-GNinja", *defines, ".."], cwd="build"))
open("LICENSE", "a").write("third parties' licences, until the wheel is made")
name = os.path.join(sys.argv[sys.argv.index("--dist-dir") + 1], "torch-2.9.1-py3-none-any.whl")
info = "torch-2.9.1.dist-info/"
with zipfile.ZipFile(name, "w") as wheel:
    wheel.writestr("torch/__init__.py", open("init.py").read())
    wheel.write("build/lib/libtorch_cpu.so", "torch/lib/libtorch_cpu.so")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
`,
	"init.py": "__version__ = '2.9.1'\nclass backends:\n    class mps:\n        is_built = staticmethod(lambda: False)\n",
	"CMakeLists.txt": `cmake_minimum_required(VERSION 3.18 FATAL_ERROR)
project(Torch CXX)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
add_subdirectory(c10)
add_library(torch_cpu SHARED aten/src/ATen/native/mps/Copy.cpp aten/Context.cpp)
target_link_libraries(torch_cpu PRIVATE c10)
`,
	"c10/CMakeLists.txt":                "add_library(c10 SHARED Device.cpp)\n",
	"c10/Device.cpp":                    "int device() { return 1; }\n",
	"aten/Context.cpp":                  "int device(); int context() { return device(); }\n",
	"aten/src/ATen/native/mps/Copy.cpp": "int copy() { return 2; }\n",
	"third_party/fmt/CMakeLists.txt":    "",
	".gitmodules":                       "[submodule \"third_party/fmt\"]\n\tpath = third_party/fmt\n",
}

// project is a checkout of the stand-in.
type project struct {
	t        testing.TB
	dir      string
	options  PlanOptions
	machine  Machine
	identity builds.Stamp
	sink     events.Sink
}

func newProject(t testing.TB) *project {
	t.Helper()
	for _, tool := range []string{"cmake", "ninja", "c++", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here: apt-get install cmake ninja-build g++ python3", tool)
		}
	}
	p := &project{t: t, dir: t.TempDir(), options: PlanOptions{Launcher: "none"}, sink: events.Discard,
		identity: builds.Stamp{Baseline: "v2.9.1", Commit: "c0", Tree: "t0", Patches: []string{"slots"}}}
	for name, text := range standIn {
		p.write(name, text)
	}
	p.machine = require.One(Probe(t.Context(), p.dir, nil))(t)
	p.machine.Modules = buildModules // the stand-in's setup.py imports none of them
	p.machine.Disk = 100 << 30
	return p
}

func (p *project) write(name, text string) {
	p.t.Helper()
	require.File(p.t, filepath.Join(p.dir, name), text)
}

func (p *project) build(ctx context.Context) (*Built, error) {
	p.t.Helper()
	recipe := require.One(ReadRecipe(p.dir))(p.t)
	plan := require.One(NewPlan(recipe, p.machine, p.options))(p.t)
	return PyTorch(ctx, plan, p.identity, "test", p.sink)
}

func (p *project) mustBuild() *Built {
	p.t.Helper()
	return require.One(p.build(p.t.Context()))(p.t)
}

// program puts a shell script in the place of a program, into a folder that comes first on the plan's path.
func (p *project) program(name, script string) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), name)
	require.NoError(p.t, os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755))
	switch name {
	case "c++":
		p.options.Set = append(p.options.Set, "CXX="+file)
	default:
		p.machine.Tools[name] = Tool{Path: file, Version: p.machine.Tools[name].Version}
	}
}

// log collects the events of a build.
type eventLog struct {
	progress []events.StepProgress
	at       []time.Time
}

func (l *eventLog) Emit(event events.Event) {
	if e, ok := event.(events.StepProgress); ok && e.Step == StepCompile {
		l.progress, l.at = append(l.progress, e), append(l.at, time.Now())
	}
}

func (p *project) path(parts ...string) string {
	return filepath.Join(append([]string{p.dir}, parts...)...)
}

// processorTime is what this process, or those that it has waited for, have computed: other work on the machine does not
// show in it.
func processorTime(t testing.TB, who int) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(who, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
