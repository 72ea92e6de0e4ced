//go:build cgo

package runtime

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/stagetest"
)

// counts are of the thread that runs a scenario, for each of its operators, commits or guards.
type counts struct {
	instructions float64 // of PyTorch, and of the C libraries that it calls
	atomics      float64 // locked instructions of PyTorch's MPS sources, without those of mutexes
	calls        map[string]float64
	functions    map[string]float64 // instructions of PyTorch's functions
}

// called are the calls that PyTorch makes out of its own libraries, by what the table has them under.
var called = []struct {
	column string
	is     func(function string) bool
}{
	{"locks", func(f string) bool { return f == "__wrap_pthread_mutex_lock" || f == "pthread_mutex_lock" }},
	{"allocations", func(f string) bool {
		return strings.HasPrefix(f, "operator new") || f == "malloc" || f == "calloc" || f == "realloc" || f == "posix_memalign"
	}},
	{"messages", func(f string) bool { return f == "objc_msg_lookup" || f == "objc_msg_lookup_super" }},
	{"blocks", func(f string) bool { return strings.HasPrefix(f, "dispatch_sync") }},
	{"commits", func(f string) bool { return strings.HasPrefix(f, "_i_") && strings.Contains(f, "__commit") }},
	{"signals", func(f string) bool { return strings.Contains(f, "__encodeSignalEvent") }},
	{"waits", func(f string) bool { return strings.Contains(f, "__encodeWaitForEvent") }},
}

// BenchmarkInstructions counts what the series costs the host, by callgrind, which a machine's load hardly changes: two runs differed by some
// thousandths on v2.9.1 and by up to 2.5 % on 2.6.0, and in allocations by more. Not counted is what the software Metal does inside of a
// call, as that says nothing of Apple's.
func BenchmarkInstructions(b *testing.B) {
	for _, baseline := range []string{"v2.9.1", host.DebianBaseline} {
		b.Run(baseline, func(b *testing.B) {
			stock, patched := newCounter(b, baseline, true), newCounter(b, baseline, false)
			table := &strings.Builder{}
			row := func(name string, of counts, to *counts) {
				ratio := ""
				if to != nil {
					ratio = fmt.Sprintf("%.3f", of.instructions/to.instructions)
					b.ReportMetric(of.instructions/to.instructions, strings.ReplaceAll(name, " ", "-")+"/stock")
				}
				fmt.Fprintf(table, "%-38s %12.0f %7s %8.2f", name, of.instructions, ratio, of.atomics)
				for _, call := range called {
					fmt.Fprintf(table, " %12.2f", of.calls[call.column])
				}
				table.WriteByte('\n')
			}
			fmt.Fprintf(table, "%-38s %12s %7s %8s", baseline+", for each", "instructions", "/ stock", "atomics")
			for _, call := range called {
				fmt.Fprintf(table, " %12s", call.column)
			}
			table.WriteByte('\n')
			const operators, iterations, guards = 50, 10, 1000
			of := stock.count("count-operators", iterations, operators*iterations)
			row("operator, stock", of, nil)
			row("operator", patched.count("count-operators", iterations, operators*iterations), &of)
			row("operator beside a stream", patched.count("count-operators-beside", iterations, operators*iterations), &of)
			row("operator of a worker", patched.count("count-operators-worker", iterations, operators*iterations), &of)
			commit := stock.count("count-commits", guards, guards)
			row("operator and commit, stock", commit, nil)
			row("operator and commit", patched.count("count-commits", guards, guards), &commit)
			row("operator and commit beside a stream", patched.count("count-commits-beside", guards, guards), &commit)
			row("guard with one stream", patched.count("count-guard-alone", guards, guards), nil)
			row("guard of one buffer", patched.count("count-guard-1", guards, guards), nil)
			four := patched.count("count-guard-4", guards, guards)
			row("guard of four buffers", four, nil)
			table.WriteString("\nWhere the instructions of a guard of four buffers are:\n")
			for _, function := range slices.SortedFunc(maps.Keys(four.functions), func(x, y string) int {
				return cmp.Compare(four.functions[y], four.functions[x])
			}) {
				if share := four.functions[function]; share >= 10 {
					fmt.Fprintf(table, "%10.0f  %s\n", share, function)
				}
			}
			fmt.Printf("\n%s\n", table) // a benchmark's log is cut after ten lines
			b.ReportMetric(0, "ns/op")
		})
	}
}

// valgrind gives the folder that Debian's package of it is unpacked into, once, beside the root of host builds.
func valgrind(b *testing.B) string {
	cache := hosttest.Cache(b)
	dir := filepath.Join(cache, "roots", "valgrind")
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	making := require.One(os.MkdirTemp(filepath.Dir(dir), "making-"))(b)
	defer os.RemoveAll(making)
	tree := filepath.Join(making, "tree")
	hosttest.Unpack(b, cache, "valgrind", tree)
	require.NoError(b, os.Rename(tree, dir))
	return dir
}

// counter counts on one host build.
type counter struct {
	b        *testing.B
	valgrind string
	root     *host.Root
	built    *host.Build
	library  string          // of PyTorch's MPS sources
	locked   map[uint64]bool // the addresses of its locked instructions
}

func newCounter(b *testing.B, baseline string, stock bool) *counter {
	b.Helper()
	built, root := stagetest.HostBuildOf(b.Context(), b, baseline, builds.Plain, stock, false)
	library := filepath.Join(filepath.Dir(built.Driver), "libhostmps.so")
	return &counter{b: b, valgrind: valgrind(b), root: root, built: built, library: library, locked: lockedInstructions(b, root, library)}
}

// count runs a scenario once under callgrind; what it counts is divided by units.
func (c *counter) count(scenario string, iterations int, units float64) counts {
	c.b.Helper()
	out := filepath.Join(c.b.TempDir(), "callgrind")
	one := hostRun{built: c.built, tools: c.root, scenario: scenario, threads: 1, iterations: iterations, seed: 1, limit: process.Patient,
		under: []string{filepath.Join(c.valgrind, "usr/bin/valgrind"), "--tool=callgrind", "--callgrind-out-file=" + out,
			"--instr-atstart=no", "--collect-atstart=no", "--toggle-collect=mpsforge_counted", "--dump-instr=yes", "--compress-strings=no",
			"--compress-pos=no"},
		more: []string{"MPSFORGE_METAL_MAX_DELAY_US=0", "VALGRIND_LIB=" + filepath.Join(c.valgrind, "usr/libexec/valgrind")}}
	end, result, err := one.run(c.b.Context())
	require.NoError(c.b, err)
	if end.Problem != "" || result.Wrong > 0 {
		c.b.Fatalf("%s: %s %s\n%s", one.command(), end.Problem, result.FirstWrong, end.Output)
	}
	data := require.One(os.ReadFile(out))(c.b)
	found, err := read(data, c.library, c.locked)
	if err != nil {
		c.b.Fatalf("%s: %v", out, err)
	}
	found.divide(units)
	return found
}

func lockedInstructions(b *testing.B, root *host.Root, library string) map[uint64]bool {
	b.Helper()
	code, err := (run.Command{Name: root.Tool("llvm-objdump"), Args: []string{"--disassemble", "--no-show-raw-insn", library}}).Run(b.Context())
	require.NoError(b, err)
	found := map[uint64]bool{}
	for line := range bytes.Lines(code.Stdout) {
		address, instruction, ok := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(instruction)
		// xchg with memory is locked without the prefix
		if !ok || len(fields) == 0 || !(string(fields[0]) == "lock" || bytes.HasPrefix(fields[0], []byte("xchg")) && bytes.Contains(instruction, []byte("("))) {
			continue
		}
		if at, err := strconv.ParseUint(string(bytes.TrimSpace(address)), 16, 64); err == nil {
			found[at] = true
		}
	}
	return found
}

// unnamed is the object of stubs of which callgrind knows nothing, such as those by which PyTorch calls its own functions. Nothing of the
// software Metal goes through one.
const unnamed = "???"

// side says whose code a function of an object is. The driver has an operator new and an operator delete of its own, for all libraries,
// the software Metal's too: they are the system's.
func side(object, function string) string {
	name := filepath.Base(object)
	switch {
	case strings.HasPrefix(function, "operator new"), strings.HasPrefix(function, "operator delete"):
		return "system"
	case name == unnamed:
		return "torch"
	case strings.HasPrefix(name, "libmpsforge"):
		return "metal"
	case strings.HasPrefix(name, "libhostmps"), strings.HasPrefix(name, "libtorch"), strings.HasPrefix(name, "libc10"), strings.HasPrefix(name, "scenarios"):
		return "torch"
	}
	return "system"
}

var errFormat = errors.New("not what callgrind writes")

// read sums up callgrind's output (https://valgrind.org/docs/manual/cl-format.html), which names without compression and positions of
// instructions and lines make plain: who calls whom is under the caller.
func read(data []byte, library string, locked map[uint64]bool) (counts, error) {
	found := counts{calls: map[string]float64{}, functions: map[string]float64{}}
	object, function, calledObject, calledFunction, calls := "", "", "", "", 0.0
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		key, value, isKey := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "0x"):
			fields := strings.Fields(line)
			if len(fields) != 3 || function == "" {
				return found, fmt.Errorf("%w: %q", errFormat, line)
			}
			address, err := strconv.ParseUint(fields[0], 0, 64)
			cost, err2 := strconv.ParseFloat(fields[2], 64)
			if err := errors.Join(err, err2); err != nil {
				return found, fmt.Errorf("%w: %w", errFormat, err)
			}
			own := side(object, function) == "torch"
			if calls == 0 {
				if own {
					found.instructions += cost
					found.functions[function] += cost
				}
				if object == library && locked[address] {
					found.atomics += cost
				}
				continue
			}
			if own && side(calledObject, calledFunction) == "system" {
				found.instructions += cost
				found.functions[calledFunction] += cost
			}
			if own && side(calledObject, calledFunction) != "torch" {
				for _, call := range called {
					if call.is(calledFunction) {
						found.calls[call.column] += calls
					}
				}
			}
			calls, calledObject = 0, ""
		case !isKey:
		case key == "ob":
			object = value
		case key == "fn":
			function = value
		case key == "cob":
			calledObject = value
		case key == "cfn":
			if calledFunction = value; calledObject == "" {
				calledObject = object
			}
		case key == "calls":
			number, _, _ := strings.Cut(value, " ")
			var err error
			if calls, err = strconv.ParseFloat(number, 64); err != nil {
				return found, fmt.Errorf("%w: %q", errFormat, line)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return found, err
	}
	if found.instructions == 0 {
		return found, fmt.Errorf("%w: no instruction of PyTorch in it", errFormat)
	}
	return found, nil
}

func (c *counts) divide(by float64) {
	c.instructions /= by
	c.atomics /= by
	for _, of := range []map[string]float64{c.calls, c.functions} {
		for key := range of {
			of[key] /= by
		}
	}
}

// Instructions of the software Metal are not PyTorch's, those of the C libraries are if PyTorch calls them, and a locked instruction counts
// as an atomic where PyTorch's MPS sources have it. What PyTorch calls through a stub without a name counts once, not again as the stub's.
func TestInstructionsAreWhosCodeItIs(t *testing.T) {
	const written = `# callgrind format
positions: instr line
events: Ir

ob=/host/libhostmps.so
fl=MPSStream.mm
fn=at::mps::commit()
0x10 1 7
0x14 1 2
cob=/usr/lib/libc.so.6
cfi=malloc.c
cfn=malloc
calls=2 0x99 5
0x18 2 100
cob=/host/libmpsforge_objc.so
cfn=objc_msg_lookup
calls=3 0x40 9
0x1c 3 5000
cfn=at::mps::other()
calls=1 0x50 9
0x20 4 30

ob=/host/libmpsforge_objc.so
fn=objc_msg_lookup
0x10 9 4000
cob=/usr/lib/libc.so.6
cfn=malloc
calls=50 0x99 5
0x44 9 1000
cob=/host/scenarios
cfn=operator new(unsigned long)
calls=7 0x70 5
0x48 9 700

ob=/host/scenarios
fn=operator new(unsigned long)
0x70 5 21
cob=/usr/lib/libc.so.6
cfn=malloc
calls=7 0x99 5
0x74 5 679

ob=/host/libhostmps.so
fn=at::mps::other()
0x50 9 30
cob=???
cfn=0x6245190
calls=1 0x60 9
0x54 9 35

ob=???
fn=0x6245190
0x60 0 1
cob=/host/libhostmps.so
cfn=at::mps::commit()
calls=1 0x10 1
0x64 0 34
`
	found := require.One(read([]byte(written), "/host/libhostmps.so", map[uint64]bool{0x14: true}))(t)
	if found.instructions != 7+2+100+30+1 || found.atomics != 2 {
		t.Errorf("%v instructions, %v atomics", found.instructions, found.atomics)
	}
	if found.calls["allocations"] != 2 || found.calls["messages"] != 3 || len(found.calls) != 2 {
		t.Errorf("calls: %v", found.calls)
	}
	for _, wrong := range []string{"", "fn=f\n0x10 1\n", "fn=f\n0x1g 1 7\n", "fn=f\ncalls=many 0x10 1\n"} {
		_, err := read([]byte(wrong), "", nil)
		require.Is(t, err, errFormat, wrong)
	}
}
