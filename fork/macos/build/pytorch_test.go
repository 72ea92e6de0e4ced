package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
)

// A build ends in a wheel that is installed and imports, with the stamp in its library and beside it. The next one finds
// nothing to do.
func TestBuildMakesAnEnvironmentAndThenHasNothingToDo(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: a virtual environment is made; go test -run '^TestBuildMakesAnEnvironmentAndThenHasNothingToDo$' ./fork/macos/build")
	}
	p := newProject(t)
	p.options.Venv = p.path("build", "venv")
	log := &eventLog{}
	p.sink = log
	built := p.mustBuild()
	if built.Compiled == 0 || built.Torch != filepath.Join(venvSite(t, p.options.Venv), "torch/__init__.py") {
		t.Errorf("%+v", built)
	}
	if len(log.progress) == 0 || log.progress[len(log.progress)-1].Done != log.progress[len(log.progress)-1].Total {
		t.Errorf("progress: %+v", log.progress)
	}
	for _, file := range append(built.Libraries, built.Wheel) {
		stamp, err := ReadStamp(file)
		if err != nil || stamp.Tree != "t0" || stamp.Kind != "pytorch" || stamp.Tool != "test" || !slices.Contains(stamp.Flags, "USE_MPS=0") {
			t.Errorf("%s: %+v, %v", file, stamp, err)
		}
	}
	if text, err := os.ReadFile(stampFile(built.Wheel)); err != nil || !strings.Contains(string(text), `"tree": "t0"`) {
		t.Errorf("the stamp beside the wheel: %s, %v", text, err)
	}
	if text, err := os.ReadFile(p.path("LICENSE")); err != nil || string(text) != standIn["LICENSE"] {
		t.Errorf("LICENSE is not as it was: %s, %v", text, err)
	}
	all := func() time.Duration {
		return processorTime(t, syscall.RUSAGE_SELF) + processorTime(t, syscall.RUSAGE_CHILDREN)
	}
	before := all()
	again := p.mustBuild()
	if took := all() - before; again.Compiled != 0 || again.Torch != built.Torch || took > 2*time.Second {
		t.Errorf("nothing has changed, and in %s it ran: %+v", took, again)
	}
	require.Equal(t, again.Skipped, []string{StepTools, StepVenv, StepConfigure, StepWheel, StepInstall, StepDependencies, StepCheck}, "left out")
}

// venvSite is the folder of an environment's packages.
func venvSite(t *testing.T, venv string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(venv, "lib/python3*/site-packages"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0]
}

// A compiler error is reported with its file and line, though other compilers' words are around it.
func TestCompilerErrorIsNamedWithItsPlace(t *testing.T) {
	p := newProject(t)
	p.write("aten/src/ATen/native/mps/Copy.cpp", "#warning something else\nint copy() { return two; }\n")
	_, err := p.build(t.Context())
	if !errors.Is(err, builds.ErrSources) {
		t.Fatal(err)
	}
	wantIn(t, err.Error(), "step compile", "Copy.cpp:2: ", "two", "last lines:", "ninja: build stopped", "build/mpsforge/build.log", "what is built is kept")
	p.write("aten/src/ATen/native/mps/Copy.cpp", standIn["aten/src/ATen/native/mps/Copy.cpp"])
	if built := p.mustBuild(); !slices.Contains(built.Skipped, StepConfigure) {
		t.Errorf("it configured again: %+v", built)
	}
}

// What cmake refuses is reported with the place in the list file.
func TestConfigureErrorIsNamedWithItsPlace(t *testing.T) {
	p := newProject(t)
	p.write("c10/CMakeLists.txt", "find_package(Nothing REQUIRED)\n")
	_, err := p.build(t.Context())
	if !errors.Is(err, ErrConfigure) {
		t.Fatal(err)
	}
	wantIn(t, err.Error(), "step configure", p.path("c10/CMakeLists.txt:1: "), "Nothing")
}

// A linker that finds nothing for a name is a fault of the sources, too.
func TestLinkErrorIsNamed(t *testing.T) {
	p := newProject(t)
	p.options.Set = []string{"CMAKE_SHARED_LINKER_FLAGS=-Wl,-z,defs"}
	p.write("aten/Context.cpp", "int nowhere(); int context() { return nowhere(); }\n")
	_, err := p.build(t.Context())
	if !errors.Is(err, builds.ErrSources) {
		t.Fatal(err)
	}
	wantIn(t, err.Error(), "undefined reference to", "nowhere")
}

// A killed compiler is not an error in the sources.
func TestKilledCompilerIsToldApart(t *testing.T) {
	p := newProject(t)
	p.program("c++", `case "$*" in *-c*Copy.cpp*) kill -9 $$;; esac; exec c++ "$@"`)
	_, err := p.build(t.Context())
	if !errors.Is(err, ErrCompilerKilled) {
		t.Fatal(err)
	}
	wantIn(t, err.Error(), "--jobs N")
}

// A killed ninja leaves a tree that the next run goes on with.
func TestKilledNinjaIsResumed(t *testing.T) {
	p := newProject(t)
	ninja := p.machine.Tools["ninja"]
	p.program("ninja", `case "$*" in "-C build -j"*) `+ninja.Path+` -C build c10; kill -9 $$;; esac; exec `+ninja.Path+` "$@"`)
	_, err := p.build(t.Context())
	if !errors.Is(err, ErrKilled) {
		t.Fatal(err)
	}
	wantIn(t, err.Error(), "killed by a signal from outside", "run it again to continue")
	p.machine.Tools["ninja"] = ninja
	if built := p.mustBuild(); !slices.Contains(built.Skipped, StepConfigure) || built.Compiled != 4 {
		t.Errorf("c10 was built already: %+v", built)
	}
}

// Ctrl-C ends the compilers, too; the next run goes on.
func TestInterruptEndsAllAndIsResumed(t *testing.T) {
	p := newProject(t)
	p.options.Jobs = 1
	pid := p.path("pid")
	p.program("c++", `case "$*" in *-c*Copy.cpp*) echo $$ > `+pid+`; exec sleep 600;; esac; exec c++ "$@"`)
	ctx, cancel := context.WithCancel(t.Context())
	var text []byte
	go func() {
		for ctx.Err() == nil && !bytes.HasSuffix(text, []byte("\n")) { // it may be there and still empty
			time.Sleep(10 * time.Millisecond)
			text, _ = os.ReadFile(pid)
		}
		cancel()
	}()
	_, err := p.build(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// A process that was killed goes when it is next given a processor, which takes a moment on a busy machine.
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the compiler still runs: %s", stat)
		}
	}
	p.options.Set = nil
	p.mustBuild()
}

// A configure that was cut off is done again, whatever it left.
func TestInterruptedConfigureIsDoneAgain(t *testing.T) {
	p := newProject(t)
	p.mustBuild()
	cmake := p.machine.Tools["cmake"]
	p.program("cmake", "kill -9 $PPID; kill -9 $$")
	p.options.Set = []string{"USE_KINETO=0"}
	if _, err := p.build(t.Context()); !errors.Is(err, ErrKilled) {
		t.Fatal(err)
	}
	p.machine.Tools["cmake"], p.options.Set = cmake, nil
	if built := p.mustBuild(); slices.Contains(built.Skipped, StepConfigure) {
		t.Error("it took what the killed cmake has left for whole")
	}
}

// Two builds at once would write the same files.
func TestSecondBuildIsRefused(t *testing.T) {
	p := newProject(t)
	require.NoError(t, os.MkdirAll(ownFolder(p.dir), 0o755))
	lock := require.One(lockBuild(filepath.Join(ownFolder(p.dir), "lock")))(t)
	if _, err := p.build(t.Context()); !errors.Is(err, ErrBuilding) {
		t.Fatal(err)
	}
	lock.Close()
	p.mustBuild()
}

// Compilers that a killed ninja has left behind still write into the build: nobody else may, until the last has ended.
func TestLeftCompilersHoldTheLock(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: it waits for a lock; go test -run '^TestLeftCompilersHoldTheLock$' ./fork/macos/build")
	}
	p := newProject(t)
	p.mustBuild()
	runs := p.path("compiler-runs")
	p.write("compiler-runs", "")
	// It ends when this test removes the file, or after ten minutes.
	p.program("ninja", `case "$*" in "-C build -j"*) (n=0; while [ -e `+runs+
		` ] && [ $((n+=1)) -lt 6000 ]; do sleep 0.1; done) & kill -9 $$;; esac; exec `+p.machine.Tools["ninja"].Path+` "$@"`)
	p.options.Targets = []string{"c10"}
	if _, err := p.build(t.Context()); !errors.Is(err, ErrKilled) {
		t.Fatal(err)
	}
	_, err := p.build(t.Context())
	if !errors.Is(err, ErrBuilding) {
		t.Fatal(err)
	}
	wantIn(t, err.Error(), "or one that it started")
	require.NoError(t, os.Remove(runs))
}

// What is missing is reported before anything is written.
func TestMissingSubmoduleAndNoNinja(t *testing.T) {
	p := newProject(t)
	require.NoError(t, os.Remove(p.path("third_party/fmt/CMakeLists.txt")))
	delete(p.machine.Tools, "ninja")
	_, err := p.build(t.Context())
	if !errors.Is(err, builds.ErrEnvironment) {
		t.Fatal(err)
	}
	wantIn(t, err.Error(), "submodules: third_party/fmt", "submodule update --init --recursive", "ninja: none found")
	if builds.Exists(p.path("build")) {
		t.Error("it has begun to build")
	}
}

// A changed source of the MPS backend compiles one file; --mps-only refuses when more has changed.
func TestMPSOnly(t *testing.T) {
	p := newProject(t)
	p.mustBuild()
	p.options.MPSOnly = true
	p.write("aten/src/ATen/native/mps/Copy.cpp", "int copy() { return 3; }\n")
	p.identity.Tree = "t1"
	built := p.mustBuild()
	// Copy.cpp, the stamp twice, c10 and torch_cpu.
	if built.Compiled > 5 || built.Wheel != "" {
		t.Errorf("%+v", built)
	}
	if stamp, err := ReadStamp(built.Libraries[1]); err != nil || stamp.Tree != "t1" {
		t.Errorf("%+v, %v", stamp, err)
	}
	p.write("aten/Context.cpp", "int device(); int context() { return 1 + device(); }\n")
	_, err := p.build(t.Context())
	if !errors.Is(err, ErrMore) {
		t.Fatal(err)
	}
	wantIn(t, err.Error(), "Context.cpp.o", "--target torch_cpu")
}

// What ninja calls the commands of the MPS backend, on a Mac, in the words of PyTorch's own build files.
func TestMPSCommandsAreKnown(t *testing.T) {
	mps := []string{
		"Building CXX object caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/mps/operations/Copy.mm.o",
		"Building CXX object caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/mps/MPSStream.mm.o",
		"Compiling /src/aten/src/ATen/native/mps/kernels/Bucketization.metal to Bucketization_30.air", "Linking kernels_basic.metallib",
		"Updating metallibs timestamp", "Building CXX object caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/metallib_dummy.cpp.o",
		"Building CXX object c10/CMakeFiles/c10.dir/__/mpsforge/stamp.cpp.o", "Linking CXX shared library lib/libc10.dylib",
		"Linking CXX shared library lib/libtorch_cpu.dylib",
	}
	if err := onlyMPS(mps); err != nil {
		t.Error(err)
	}
	for _, other := range []string{"Building CXX object caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/Context.cpp.o", "Re-running CMake...",
		"Linking CXX shared library lib/libtorch_python.dylib"} {
		require.Is(t, onlyMPS(append(mps, other)), ErrMore, other)
	}
}

// A build says how long the rest takes, from what the commands took last time, at most ten times a second.
func TestProgressIsLearntAndThinned(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: its compiler is slow; go test -run '^TestProgressIsLearntAndThinned$' ./fork/macos/build")
	}
	p := newProject(t)
	p.options.Jobs = 1
	p.program("c++", `case "$*" in *-c*) sleep 0.4;; esac; exec c++ "$@"`)
	log := &eventLog{}
	p.sink = log
	started := time.Now()
	p.mustBuild()
	known := require.One(durations(p.path("build", ".ninja_log")))(t)
	if took := known["CMakeFiles/torch_cpu.dir/aten/Context.cpp.o"]; took < 400*time.Millisecond {
		t.Errorf("learnt: %v", known)
	}
	if !slices.ContainsFunc(log.progress, func(p events.StepProgress) bool { return p.Left > 0 }) {
		t.Errorf("no time left is reported: %+v", log.progress)
	}
	// On a busy machine an update may come late, and the next one soon after it; the last one comes in any case.
	for i, at := range log.at[:len(log.at)-1] {
		if at.Sub(started) < time.Duration(i)*updateInterval {
			t.Errorf("%d updates came within %s", i+1, at.Sub(started))
		}
	}
}

// The same tree and toolchain make the same stamp, wherever the checkout is, whatever its commit is, and with however many
// compilers.
func TestStampsOfTwoBuildsAreTheSame(t *testing.T) {
	one, two := newProject(t), newProject(t)
	one.options.Targets, two.options.Targets, two.options.Jobs = []string{"c10"}, []string{"c10"}, 1
	two.identity.Commit = "c1"
	a, b := one.mustBuild(), two.mustBuild()
	first := require.One(ReadStamp(a.Libraries[0]))(t)
	second := require.One(ReadStamp(b.Libraries[0]))(t)
	x, _ := first.Text()
	if y, _ := second.Text(); x != y || strings.Contains(x, one.dir) {
		t.Errorf("%s\n%s", x, y)
	}
	two.options.Set = []string{"USE_KINETO=0"}
	if third := two.mustBuild(); slices.Equal(third.Stamp.Flags, first.Flags) {
		t.Errorf("another setting, the same stamp: %+v", third.Stamp)
	}
}

// A full disk that the system reports, and no text, is one too.
func TestFullDiskIsKnownByItsError(t *testing.T) {
	require.Is(t, diagnose("x", "/", nil, &os.PathError{Op: "write", Err: syscall.ENOSPC}, "log"), ErrDiskFull)
}
