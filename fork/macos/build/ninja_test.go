package build

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
)

// A flood fills neither memory nor disk: of a line without an end, pieces are taken, and the log ends at its limit.
func TestFloodOfABuild(t *testing.T) {
	var log counter
	w := newWatcher(&log, &eventLog{}, StepCompile, nil)
	w.logLeft = 3 << 20
	piece := []byte(strings.Repeat("x", 1<<20))
	for range 16 {
		if n, err := w.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if log != 3<<20 || len(w.line) >= lineLimit || len(w.kept) > 3*outputKept {
		t.Errorf("%d bytes in the log, %d of a line, %d kept", log, len(w.line), len(w.kept))
	}
}

// counter counts what is written.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// A recorded build of c10 and of a slice of ATen, from PyTorch 2.6.0's sources on Debian trixie: every command is counted,
// the code generator's many words are cut, and the last line is reported.
func TestProgressOfARecordedBuild(t *testing.T) {
	text := require.One(os.ReadFile("testdata/ninja/pytorch-2.6.0-c10.log"))(t)
	log := &eventLog{}
	w := newWatcher(io.Discard, log, StepCompile, newEstimator(nil, nil))
	// Pipes cut lines anywhere.
	for len(text) > 0 {
		n := min(97, len(text))
		require.One(w.Write(text[:n]))(t)
		text = text[n:]
	}
	if len(log.progress) < 2 {
		t.Fatalf("%+v", log.progress)
	}
	first, last := log.progress[0], log.progress[len(log.progress)-1]
	if int64(w.ran) != last.Total || last.Done != last.Total || first.Done != 1 || first.Total != last.Total {
		t.Errorf("%d commands; first %+v, last %+v", w.ran, first, last)
	}
	for _, p := range log.progress {
		if len(p.Note) > noteLimit+80 {
			t.Errorf("a note of %d bytes: %s", len(p.Note), p.Note)
		}
	}
}

// All commands of a build of PyTorch 2.6.0 for the CPU, as ninja's dry run names them, run by eight simulated processors,
// each command as long as the length of its name makes it, the linkers at the end a hundred times as long: what is shown to
// be left is right within a tenth from the first quarter on, although the count would be far off.
func TestTimeLeftOfAWholeBuild(t *testing.T) {
	file := require.One(os.Open("testdata/ninja/pytorch-2.6.0-all.txt.gz"))(t)
	defer file.Close()
	text := require.One(gzip.NewReader(file))(t)
	var pending []string
	known := map[string]time.Duration{}
	for scanner := bufio.NewScanner(text); scanner.Scan(); {
		n, ok := parseNinja(scanner.Text())
		if !ok {
			continue
		}
		if n.done != len(pending)+1 || n.what == "" {
			t.Fatalf("command %d is read as %+v", len(pending)+1, n)
		}
		took := time.Duration(len(n.what)%40+1) * time.Second / 4
		if strings.HasPrefix(n.what, "Linking") {
			took *= 100
		}
		pending = append(pending, n.what)
		known[outputOf(n.what)] = took
	}
	if len(pending) != 1356 {
		t.Fatalf("commands: %d", len(pending))
	}
	var processors [8]time.Duration // when each is free
	ends := make([]time.Duration, len(pending))
	for i, what := range pending {
		first := 0
		for p := range processors {
			if processors[p] < processors[first] {
				first = p
			}
		}
		processors[first] += known[outputOf(what)]
		ends[i] = processors[first]
	}
	order := make([]int, len(pending))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(ends[a], ends[b]) })
	whole := ends[order[len(order)-1]]
	e := newEstimator(known, pending)
	for done, i := range order {
		e.end(pending[i])
		if ends[i] < whole/4 || ends[i] > whole*9/10 {
			continue
		}
		left, ok := e.left(ends[i], done+1, len(pending))
		if off := left - (whole - ends[i]); !ok || off > whole/10 || off < -whole/10 {
			t.Fatalf("after %s of %s, %d of %d commands: %s left", ends[i], whole, done+1, len(pending), left)
		}
	}
}

// Lines of ninja's, and lines that only look like them.
func TestStatusLines(t *testing.T) {
	for line, want := range map[string]ninjaLine{
		"[3/94/2] Building CXX object c10/CMakeFiles/c10.dir/core/Device.cpp.o": {3, 94, 2, "Building CXX object c10/CMakeFiles/c10.dir/core/Device.cpp.o"},
		"[0/1] Re-running CMake...":      {0, 1, 0, "Re-running CMake..."},
		"[ 50%] Building CXX object a.o": {}, "ninja: no work to do.": {}, "[1/x] a": {},
	} {
		if got, ok := parseNinja(line); got != want || ok != (want.total > 0) {
			t.Errorf("%s: %+v, %t", line, got, ok)
		}
	}
}

// The log of the versions that are in use, one line cut off by a kill.
func TestDurationsAreReadFromNinjasLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".ninja_log")
	for _, version := range []string{"5", "6", "7"} {
		text := "# ninja log v" + version + "\n0\t1500\t1700000000000\ta.cpp.o\tdeadbeef\n10\t400\t1\tb.mm.o\tabc\n20\t1020\t1\ta.cpp.o\tdeadbeef\n30\t"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		known, err := durations(file)
		if err != nil || len(known) != 2 || known["a.cpp.o"] != time.Second || known["b.mm.o"] != 390*time.Millisecond {
			t.Errorf("version %s: %v, %v", version, known, err)
		}
	}
	if known, err := durations(filepath.Join(t.TempDir(), "none")); err != nil || len(known) != 0 {
		t.Errorf("%v, %v", known, err)
	}
}

// Commands weigh what they took last time: after the small ones are done, the time left is that of the large ones, not
// their share of the count.
func TestTimeLeftIsLearnt(t *testing.T) {
	known := map[string]time.Duration{"other.mm.o": 30 * time.Second}
	var pending []string
	for i := range 90 {
		output := fmt.Sprintf("small%d.cpp.o", i)
		known[output] = time.Second
		pending = append(pending, "Building CXX object "+output)
	}
	for i := range 9 {
		output := fmt.Sprintf("large%d.cpp.o", i)
		known[output] = 10 * time.Second
		pending = append(pending, "Building CXX object "+output)
	}
	pending = append(pending, "Building OBJCXX object new.mm.o") // as other.mm.o took
	e := newEstimator(known, pending)
	for _, what := range pending[:90] {
		e.end(what)
	}
	// Two processors got 90 seconds of work done in 45; 120 are left.
	if left, ok := e.left(45*time.Second, 90, 100); !ok || left != time.Minute {
		t.Errorf("left: %s, %t", left, ok)
	}
	// What the dry run had not named is counted instead.
	if left, ok := e.left(45*time.Second, 90, 180); !ok || left != 45*time.Second {
		t.Errorf("left: %s, %t", left, ok)
	}
	if _, ok := newEstimator(nil, pending).left(time.Hour, 0, 100); ok {
		t.Error("a time is reported when nothing has been seen")
	}
}

// Updates are at most ten a second, however fast ninja is; all that it prints is in the log.
func TestUpdatesAreThinned(t *testing.T) {
	log := &eventLog{}
	var disk strings.Builder
	w := newWatcher(&disk, log, StepCompile, newEstimator(nil, nil))
	started := time.Now()
	for i := range 20000 {
		fmt.Fprintf(w, "[%d/20000/8] Building CXX object %d.o\n", i+1, i)
	}
	if most := 2 + int(time.Since(started)/updateInterval); len(log.progress) > most {
		t.Errorf("%d updates in %s", len(log.progress), time.Since(started))
	}
	require.Equal(t, strings.Count(disk.String(), "\n"), 20000, "lines in the log")
}

// What tools print when a build fails, and what it comes down to. The forms are those of ninja 1.11 and 1.13, gcc, clang,
// GNU ld, lld, Apple's ld and cmake.
func TestDiagnosis(t *testing.T) {
	failed := func(output, words string) string {
		return "FAILED: " + output + " \n/usr/bin/c++ -Werror=format -o " + output + " -c x.cpp\n" + words + "\nninja: build stopped: subcommand failed.\n"
	}
	for name, c := range map[string]struct {
		output   string
		want     error
		at, text string
	}{
		"gcc": {failed("a.o", "In file included from ../x.h:3,\n                 from ../aten/x.cpp:1:\n../aten/y.h:10:5: warning: "+
			"unused\n../aten/y.h:12:7: error: 'z' was not declared in this scope\n../aten/x.cpp:3:1: error: second"),
			builds.ErrSources, "/src/aten/y.h:12", "'z' was not declared in this scope"},
		"clang, Objective-C++": {failed("b.mm.o",
			"/src/aten/src/ATen/mps/MPSStream.mm:51:12: fatal error: 'Foo.h' file not found\n1 error generated."), builds.ErrSources,
			"/src/aten/src/ATen/mps/MPSStream.mm:51", "'Foo.h' file not found"},
		"ninja 1.13": {"FAILED: [code=1] a.o \nc++ -c\n../a.cpp:1:1: error: no\n", builds.ErrSources, "/src/a.cpp:1", "no"},
		"GNU ld": {failed("lib.so",
			"/usr/bin/ld: a.o: in function `f':\na.cpp:(.text+0x5): undefined reference to `g()'\ncollect2: error: ld returned 1 exit status"),
			builds.ErrSources, "", "a.cpp:(.text+0x5): undefined reference to `g()'"},
		"Apple's ld": {failed("lib.dylib",
			"Undefined symbols for architecture arm64:\n  \"_g\", referenced from:\nld: symbol(s) not found for architecture arm64"), builds.ErrSources,
			"", "Undefined symbols for architecture arm64:"},
		"out of memory, gcc": {failed("a.o", "c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated."),
			ErrCompilerKilled, "", "c++: fatal error: Killed signal terminated program cc1plus"},
		"out of memory, clang": {failed("a.o",
			"clang++: error: unable to execute command: Killed: 9\nclang++: error: clang frontend command failed due to signal (use -v to see invocation)"),
			ErrCompilerKilled, "",
			"clang++: error: unable to execute command: Killed: 9"},
		"out of memory, told by ninja 1.13": {"FAILED: [code=137] a.o \nc++ -c\nninja: build stopped: subcommand failed.\n", ErrCompilerKilled, "",
			"FAILED: [code=137] a.o"},
		"disk full, assembler": {failed("a.o",
			"/tmp/cc.s: Assembler messages:\n/tmp/cc.s: Fatal error: can't write 12 bytes to section .text of a.o: 'No space left on device'"),
			ErrDiskFull, "", "/tmp/cc.s: Fatal error: can't write 12 bytes to section .text of a.o: 'No space left on device'"},
		"disk full, ninja": {"ninja: error: opening deps log: No space left on device\n", ErrDiskFull, "",
			"ninja: error: opening deps log: No space left on device"},
		"a tool without a place": {failed("lib/libc10.so.2.6.0", "Error running 'ldd': no such file or directory"), nil, "",
			"lib/libc10.so.2.6.0: Error running 'ldd': no such file or directory"},
		"cmake": {"-- Found x\nCMake Error at cmake/Dependencies.cmake:280 (message):\n  pocketfft directory not found, expected\n  " +
			"/src/third_party/pocketfft/\nCall Stack (most recent call first):\n  CMakeLists.txt:861 (include)\n", ErrConfigure,
			"/src/cmake/Dependencies.cmake:280", "pocketfft directory not found, expected /src/third_party/pocketfft/"},
		"setup.py": {"Could not find any of CMakeLists.txt, LICENSE in /src/third_party/gloo\nDid you run 'git submodule update --init --recursive'?\n",
			nil, "", "Could not find any of CMakeLists.txt, LICENSE in /src/third_party/gloo"},
	} {
		t.Run(name, func(t *testing.T) {
			other := errors.New("exit status 1")
			got := diagnose(StepCompile, "/src", []byte(c.output), other, "/src/build/mpsforge/build.log")
			if c.want == nil {
				c.want = other
			}
			if !errors.Is(got, c.want) || got.At != c.at || got.Text != c.text {
				t.Errorf("%v, at %q: %q", got.Err, got.At, got.Text)
			}
		})
	}
}

// Of a very long output what is at the first failure is kept, not what came before or long after.
func TestFirstFailureIsKept(t *testing.T) {
	w := newWatcher(io.Discard, events.Discard, StepCompile, newEstimator(nil, nil))
	filler := strings.Repeat("x", 999) + "\n"
	for range 2000 {
		fmt.Fprint(w, filler)
	}
	fmt.Fprint(w, "FAILED: a.o \nc++ -c a.cpp\n../a.cpp:7:1: error: first\n")
	for range 2000 {
		fmt.Fprint(w, filler)
	}
	if got := diagnose(StepCompile, "/src", w.output(), errors.New("exit status 1"), ""); got.At != "/src/a.cpp:7" {
		t.Errorf("%+v", got)
	}
	if n := len(w.output()); n > outputKept+2000 {
		t.Errorf("%d bytes are kept", n)
	}
}
