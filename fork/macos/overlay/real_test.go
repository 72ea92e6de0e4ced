package overlay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/overlay"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/native"
	"mpsforge/patches"
)

// python is the stock host build's Python, which plays the torch that pip has installed, with the wheel unpacked in a folder.
type python struct{ interpreter, site string }

// installed is what the tests run on.
type installed struct {
	python
	trapped python // with every function of torch's copy overwritten
	trial   overlay.Trial

	wheel, cache string
	stockLibrary string
	other        string // a Python of the same torch with another backend
	root         *host.Root
}

// maker makes host builds of 2.6.0, and wheels of them.
type maker struct {
	checkout     *fork.Checkout
	series       *patches.Series
	options      host.Options
	overlayFiles fs.FS
}

func newMaker(t *testing.T) maker {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIP overlay: it goes over a host build, which is made on Linux")
	}
	var m maker
	o := &m.options
	o.Root, o.Torch, m.checkout, m.series, o.Cache = hosttest.Inputs(t)
	o.Flavour = builds.Plain
	var err error
	o.Facts = require.One(m.series.HostFacts())(t)
	o.Native, o.Glue, err = native.HostBuildSources()
	require.NoError(t, err)
	m.overlayFiles = require.One(native.OverlaySources())(t)
	return m
}

// build builds as a stage does: what is the same is in the same folder of the cache.
func (m maker) build(t *testing.T, source *fork.Snapshot, err error) *host.Build {
	t.Helper()
	require.NoError(t, err)
	o := m.options
	o.Checkout = source.Dir
	o.Identity = builds.Stamp{Baseline: m.series.Baseline.Name, Commit: source.Commit, Tree: source.Tree, Patches: append([]string{}, source.Patches...)}
	if len(source.Patches) > 0 {
		part := *m.series
		part.Patches = m.series.Patches[:len(source.Patches)]
		o.Overlay, o.Identity.Series = m.overlayFiles, part.Digest()
	}
	return require.One(host.Make(t.Context(), o, events.Discard))(t)
}

// install makes the wheel of the series, or of the patches before one of it, and unpacks it.
func install(t *testing.T, before string) installed {
	t.Helper()
	m := newMaker(t)
	patched := require.One(m.checkout.Before(t.Context(), m.series, before, m.options.Cache))(t)
	return m.install(t, patched)
}

// install makes the wheel of a source, and unpacks it.
func (m maker) install(t *testing.T, patched *fork.Snapshot) installed {
	t.Helper()
	source, err := m.checkout.Stock(t.Context(), m.options.Cache)
	stock := m.build(t, source, err)
	if stock.Python == "" {
		t.Skipf("SKIP overlay: the host build has no Python: %s", stock.NoPython)
	}
	p := installed{python: python{stock.Python, t.TempDir()}, stockLibrary: stock.Library, root: m.options.Root, cache: m.options.Cache}
	over := m.build(t, patched, nil)
	p.other = over.Python
	wheel, stamp, err := overlay.Write(overlay.Options{Patched: over, Stock: stock, TorchVersion: m.options.Torch.VersionFile(), Checkout: patched.Dir,
		Dir: t.TempDir()})
	require.NoError(t, err)
	p.wheel = wheel
	require.NoError(t, wheels.Unpack(wheel, p.site, []string{""}))
	p.trial = require.One(overlay.Install(wheel, stamp, stock, t.TempDir()))(t)
	p.trapped = python{interpreter: p.trial.Python}
	return p
}

// run runs a program and gives what it wrote. Debian's libtorch brings an OpenMP runtime, which is not to take all processors.
func (p python) run(t *testing.T, settings []string, args ...string) (output string, err error) {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), 4*time.Minute) // only against a hang
	defer cancel()
	command := exec.CommandContext(limited, p.interpreter, args...)
	command.Env = append(os.Environ(), "PYTHONPATH="+p.site, "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONFAULTHANDLER=1", "MPSFORGE_METAL_ON_VIOLATION=abort", "MPSFORGE_METAL_WATCHDOG_MS=20000")
	command.Env = append(command.Env, settings...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGABRT) } // of which faulthandler makes stacks
	text, err := command.CombinedOutput()
	if limited.Err() != nil {
		t.Fatalf("%v hangs: %s", args, text)
	}
	return string(text), err
}

// must runs a program that is to end well and to write a text.
func (p python) must(t *testing.T, wanted string, args ...string) {
	t.Helper()
	if output, err := p.run(t, nil, args...); err != nil || !strings.Contains(output, wanted) {
		t.Errorf("%v: %v, expected %q in\n%s", args, err, wanted, output)
	}
}

func (p python) status(t *testing.T) overlay.Status {
	t.Helper()
	output, _ := p.run(t, nil, "-W", "ignore", "-m", overlay.Module)
	s, err := overlay.ReadStatus([]byte(output))
	if err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	return s
}

// leftStock prints whether the process has the series, and what device mps computes.
const leftStock = "import torch; print(hasattr(torch.mps, 'Stream'), torch.ones(2, device='mps').sum().item())"

// staticRuntime makes a module of Static Runtime.
const staticRuntime = "import torch; torch._C._jit_to_static_module(torch.jit.script(torch.nn.ReLU())._c)"

// One wheel serves all of these, since making it compiles.
func TestOverlayOverAHostBuild(t *testing.T) {
	if os.Getenv("MPSFORGE_LONG_TESTS") == "" {
		t.Skip("SKIP TestOverlayOverAHostBuild: compiled for five minutes, as in the stage overlay; asked for by MPSFORGE_LONG_TESTS=1, as make unit does")
	}
	p := install(t, "")

	t.Run("status names the overlay for every part", func(t *testing.T) {
		s := p.status(t)
		if !s.Active || s.Why() != "" || s.Kernels["MPS"][s.Library] < 700 || s.Symbols < 1000 || len(s.Rebound) == 0 || !slices.Contains(s.Patches,
			"thread-leases") {
			t.Errorf("%+v", s)
		}
	})
	t.Run("threads that end stock live, with all of stock trapped", func(t *testing.T) {
		if p.trial.Traps < 10000 || len(p.trial.LeftOut) > 20 {
			t.Errorf("%d functions of torch's copy have a trap, and these have none: %v", p.trial.Traps, p.trial.LeftOut)
		}
		p.trapped.must(t, "wrong: []", "testdata/threads.py", "8", "20")
	})
	t.Run("the same threads end stock", func(t *testing.T) {
		if output, err := p.run(t, []string{"MPSFORGE_OVERLAY=0"}, "testdata/threads.py", "8", "20"); err == nil {
			t.Errorf("stock lives: %s", output)
		}
	})
	t.Run("a trap ends who reaches it", func(t *testing.T) {
		output, err := p.trapped.run(t, nil, "testdata/reach.py")
		if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.Exited() && failed.ExitCode() != 133 || !strings.Contains(output, "calling") {
			t.Errorf("a program of torch's own copy: %v\n%s", err, output)
		}
	})
	t.Run("traps without an overlay are refused", func(t *testing.T) {
		if output, err := p.trapped.run(t, []string{"MPSFORGE_OVERLAY=0"}, "-c", "import torch"); err == nil || !strings.Contains(output,
			"there is no overlay in this process: MPSFORGE_OVERLAY=0") {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("torch.mps of the series, with all of stock trapped", func(t *testing.T) { p.trapped.must(t, "ok", "testdata/api.py") })
	t.Run("torch's handlers of exceptions see the types that the overlay throws", func(t *testing.T) { p.trapped.must(t, "ok", "testdata/errors.py") })
	t.Run("other layouts' copies do not reach torch's copy of the backend", func(t *testing.T) { p.trapped.must(t, "ok", "testdata/copies.py") })
	t.Run("Static Runtime is refused, by name", func(t *testing.T) {
		output, err := p.run(t, nil, "-c", staticRuntime)
		if err == nil || !strings.Contains(output, "Static Runtime is refused under mpsforge_overlay") {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("an extension built with stock headers runs, with all of stock trapped",
		func(t *testing.T) { p.trapped.must(t, "wrong: []", "testdata/extension.py") })
	t.Run("the selftest finds no fault", p.selftestPasses)
	t.Run("the selftest finds a wheel that is not whole", p.selftestFindsWheels)
	t.Run("children have the overlay", func(t *testing.T) { p.must(t, "ok", "testdata/processes.py") })
	t.Run("a late import is refused", func(t *testing.T) {
		output, err := p.run(t, []string{"TORCH_DEVICE_BACKEND_AUTOLOAD=0"}, "-c", "import torch, mpsforge_overlay; mpsforge_overlay.load()")
		if err == nil || !strings.Contains(output, "loads while torch is being imported and not later") {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("the switch leaves stock without a word", func(t *testing.T) {
		output, err := p.run(t, []string{"MPSFORGE_OVERLAY=0"}, "-c",
			"import torch, mpsforge_overlay; print(mpsforge_overlay.reason, hasattr(torch.mps, 'Stream'))")
		if err != nil || output != "MPSFORGE_OVERLAY=0 False\n" {
			t.Errorf("%v: %s", err, output)
		}
	})
	for name, change := range map[string]struct{ key, value, why string }{
		"another version":               {"torch", "2.6.1", "it is for torch 2.6.1, and this is 2.6.0"},
		"another commit":                {"git", "abc", "it is for torch of commit abc"},
		"another library":               {"stock_sha256", "abc", "is another file than the one that it was built for"},
		"a torch without the library":   {"stock", "libtorch_mps.so", "this torch has not loaded libtorch_mps.so"},
		"a library that is not its own": {"library_sha256", "abc", "its own libmpsforge_overlay.so is damaged"},
		"a forged stamp":                {"stamp", "abc", "its own libmpsforge_overlay.so has another stamp than its stamp.json"},
		"other Python files":            {"modules_sha256", "abc", "its own Python files are damaged"},
	} {
		t.Run(name+" leaves stock, with one warning", func(t *testing.T) {
			p.withStamp(t, func(stamp map[string]string) { stamp[change.key] = change.value })
			output, err := p.run(t, nil, "-c", leftStock)
			if err != nil || !strings.HasSuffix(output, "False 2.0\n") || strings.Count(output, "RuntimeWarning: mpsforge_overlay leaves") != 1 ||
				!strings.Contains(output, change.why) {
				t.Errorf("%v, expected %q in\n%s", err, change.why, output)
			}
		})
	}
	t.Run("an image that needs what the overlay lacks leaves stock whole, with one warning", func(t *testing.T) {
		gone := p.status(t).Gone
		if len(gone) == 0 {
			t.Fatal("the overlay lacks nothing of torch's copy")
		}
		library := filepath.Join(t.TempDir(), "user.so")
		source := fmt.Sprintf("extern char gone[] __asm__(%q); void* use(void) { return gone; }", gone[0])
		for _, command := range [][]string{{p.root.Tool("clang"), "-x", "c", "-c", "-fPIC", "-o", library + ".o", "-"},
			{p.root.Tool("ld.lld"), "-shared", "-o", library, library + ".o"}} {
			tool := exec.Command(command[0], command[1:]...)
			tool.Stdin = strings.NewReader(source)
			if text, err := tool.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", command, err, text)
			}
		}
		output, err := p.run(t, nil, "testdata/refused.py", p.stockLibrary, library)
		if err != nil || !strings.HasSuffix(output, "stock\n") || strings.Count(output, "RuntimeWarning: mpsforge_overlay leaves") != 1 ||
			!strings.Contains(output, library+": "+gone[0]) {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("pip", p.pipInEnvironments)
	t.Run("transformers and accelerate, with all of stock trapped", p.models)
	t.Run("torchvision, with all of stock trapped", p.vision)
	t.Run("another torch in the place of this one stays stock, with one warning", func(t *testing.T) {
		output, err := python{p.other, p.site}.run(t, nil, "-c", "import torch, mpsforge_overlay; print(mpsforge_overlay.reason)")
		if err != nil || !strings.HasSuffix(output, "is another file than the one that it was built for\n") ||
			strings.Count(output, "RuntimeWarning: mpsforge_overlay leaves") != 1 {
			t.Errorf("%v: %s", err, output)
		}
	})
}

// oneStream prints whether torch.mps has streams, and the streams that four threads use.
const oneStream = `
import threading, torch
streams = set()
def work():
    torch.ones(2, device="mps").add(1)
    streams.add(torch.accelerator.current_stream().stream_id)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(hasattr(torch.mps, "Stream"), streams)`

// The overlay of the patches up to event-streams.
func TestOverlayWithoutStreams(t *testing.T) {
	if os.Getenv("MPSFORGE_OVERLAY_WITHOUT_STREAMS") == "" {
		t.Skip("SKIP overlay without streams: compiles the backend once more, for minutes; asked for by MPSFORGE_OVERLAY_WITHOUT_STREAMS=1")
	}
	p := install(t, "stream-pool")
	t.Run("status names its patches", func(t *testing.T) {
		if s := p.status(t); !s.Active || s.Why() != "" || len(s.Patches) != 5 || s.Patches[4] != "event-streams" {
			t.Errorf("%+v", s)
		}
	})
	for _, threads := range []string{"2", "8"} { // by fewer iterations than these stock sometimes lives
		t.Run(threads+" threads that end stock compute right values, with all of stock trapped", func(t *testing.T) {
			p.trapped.must(t, "wrong: []", "testdata/threads.py", threads, "300")
		})
		t.Run("the same "+threads+" threads end stock", func(t *testing.T) {
			if output, err := p.run(t, []string{"MPSFORGE_OVERLAY=0"}, "testdata/threads.py", threads, "300"); err == nil {
				t.Errorf("stock lives: %s", output)
			}
		})
	}
	t.Run("one stream serves all threads, with all of stock trapped", func(t *testing.T) { p.trapped.must(t, "False {0}\n", "-c", oneStream) })
}

// withStamp changes stamp.json for one test.
func (p python) withStamp(t *testing.T, change func(map[string]string)) {
	t.Helper()
	file := filepath.Join(p.site, overlay.Module, "stamp.json")
	before := require.One(os.ReadFile(file))(t)
	stamp := map[string]string{}
	require.NoError(t, json.Unmarshal(before, &stamp))
	change(stamp)
	after, err := json.Marshal(stamp)
	if err == nil {
		err = os.WriteFile(file, after, 0o644)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, os.WriteFile(file, before, 0o644))
	})
}
