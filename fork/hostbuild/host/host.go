package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/shaders"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// Options say what a host build compiles and with what.
type Options struct {
	// Checkout is a folder with PyTorch's sources: a checkout, or as much of one as the backend is.
	Checkout string
	// Identity is what the caller knows of the checkout; Make fills in the rest of the stamp.
	Identity builds.Stamp
	// Facts are the baseline's.
	Facts   patches.HostFacts
	Root    *Root
	Torch   *Torch
	Flavour builds.Flavour
	Jobs    int    // compilers at once; 0: one for each processor
	Cache   string // folder
	// Subject names the sources in the step's name, such as stock; may be empty.
	Subject string
	// Native is package native's sources, Glue those that stand in for PyTorch.
	Native, Glue fs.FS
	Extent       Extent
	// Tests asks for the test programs of both, too.
	Tests bool
	// Overlay, unless nil, holds native/overlay's sources, and asks for an overlay, too.
	Overlay fs.FS
}

// Extent says how much of the backend is compiled.
type Extent int

const (
	Whole Extent = iota // every source, the Metal kernels and the Python
	Core                // not the sources that no scenario needs
	First               // only what the first scenario needs: no Metal kernels, no Python, and of the scenarios those of its file
)

// Build is a finished host build.
type Build struct {
	Dir string `json:"dir"`
	// Library registers the backend for the MPS dispatch key when it is loaded; Metal, which it is linked with, is the
	// software Metal with its Objective-C classes; Driver runs scenarios over both. What computes graphs and kernels, as
	// Apple's frameworks do, is a library of its own, evaluatorLibrary.
	Library string `json:"library"`
	Metal   string `json:"metal"`
	Driver  string `json:"driver"`
	// Python is a script that starts a Python whose torch has device mps, with the checkout's bindings and its package
	// torch.mps; where there is none, NoPython says why.
	Python   string       `json:"python,omitempty"`
	NoPython string       `json:"no_python,omitempty"`
	Stamp    builds.Stamp `json:"stamp"`
	Compiled []string     `json:"compiled"`
	Excluded []Excluded   `json:"excluded"`
	Kernels  int          `json:"kernels"` // registered operators
	// Shaders is how many Metal kernels of PyTorch's wheel run in it; if none, NoShaders says why.
	Shaders   int      `json:"shaders"`
	NoShaders string   `json:"no_shaders,omitempty"`
	Dropped   []string `json:"dropped"` // operators whose kernels are not among the compiled sources
	// Layouts are those of the classes that extensions are built with; the plain flavour has them.
	Layouts []Layout `json:"layouts,omitempty"`
	// Overlay is there if it was asked for.
	Overlay *Overlay `json:"overlay,omitempty"`
	// Tests are the test programs by name, if they were asked for.
	Tests map[string]string `json:"tests,omitempty"`
}

// objcFlags compile Objective-C++: the ABI of ObjFW needs few functions of a runtime, and clang gives it subscripting and
// C++ exceptions (the GNU one gives neither); retain and release are manual, as in PyTorch's build for the Mac.
var objcFlags = []string{"-x", "objective-c++", "-fobjc-runtime=objfw", "-fobjc-exceptions", "-fblocks"}

// libtorch is compiled by GCC, which leaves the type of an unnamed template parameter out of a symbol, as clang did up to 17.
var commonFlags = []string{"-std=c++17", "-O1", "-g1", "-fPIC", "-pthread", "-fclang-abi-compat=17"}

// bareFolders are compiled without ThreadSanitizer: their locks and memory must not order PyTorch's threads for it. Order
// that Apple documents is declared by hand.
var bareFolders = []string{"metal/", "schedule/", "objc/runtime/", "objc/engine.cc", "objc/system/mutex_order.cc"}

const evaluatorLibrary = "libmpsforge_evaluator.so"

// firstDrivers are the sources of the program scenarios that it is made of where it has the first scenario's file alone.
var firstDrivers = []string{"main.cc", "run.cc", "programs.cc", "language.cc", "parallel.cc"}

// seriesDrivers are the sources of the program scenarios that use what only the series declares.
var seriesDrivers = []string{"benchmarks.cc", "blocks.cc", "copies.cc", "extensions.cc", "interfaces.cc", "memory.cc", "sanitizer.cc"}

// dispatchStub is the source in native/torch whose function must be found before libtorch's own.
const dispatchStub = "dispatch_stub.cc"

// wrappedFunctions are those of mutexes, whose order between threads the happens-before checker is to know
// (native/objc/system/mutex_order.cc).
var wrappedFunctions = []string{
	"pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_unlock", "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait",
	"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
}

// Make builds the MPS backend's sources for this Linux machine.
func Make(ctx context.Context, options Options, sink events.Sink) (*Build, error) {
	sink = events.OrDiscard(sink)
	checkout, err := filepath.Abs(options.Checkout)
	if err != nil {
		return nil, err
	}
	options.Checkout = checkout
	// Programs run in folders of the cache, from where a relative path would name another one.
	if options.Cache, err = filepath.Abs(options.Cache); err != nil {
		return nil, err
	}
	if err := options.Torch.checkVersion(checkout); err != nil {
		return nil, err
	}
	name := "build " + string(options.Flavour)
	if options.Subject != "" {
		name = "build " + options.Subject + ", " + string(options.Flavour)
	}
	finish := events.Step(sink, name)
	defer finish(events.Failed, "")
	sink = events.Under(sink, name)
	h := builder{Options: options, compiler: compiler{root: options.Root, cache: options.Cache, flavour: options.Flavour, jobs: options.Jobs,
		sink: sink, step: name}}
	built, err := h.build(ctx, sink)
	if err != nil {
		return nil, fmt.Errorf("host build of %s: %w", checkout, err)
	}
	finish(events.OK, "host build "+filepath.Base(built.Dir))
	return built, nil
}

// translate translates the Metal kernels of PyTorch's wheel. Without one, and where it cannot be had (builds.ErrEnvironment), the
// build does without: hand-written kernels do their work, as far as there are any.
func (h *builder) translate(ctx context.Context, sink events.Sink) (*shaders.Built, error) {
	if h.Facts.Wheel.URL == "" {
		return nil, fmt.Errorf("%w: no wheel of this version is known", builds.ErrEnvironment)
	}
	libraries, err := shaders.Fetch(ctx, h.Facts.Wheel, h.Cache, sink)
	if err != nil {
		return nil, err
	}
	tools := shaders.Tools{Clang: h.Root.Tool("clang"), Linker: h.Root.Tool("ld.lld"), LLVM: h.Root.LLVMFlags()}
	return shaders.Build(ctx, shaders.Options{Libraries: libraries, Tools: tools, Cache: h.Cache, Native: h.Native, Sink: sink})
}

// linkFile gives a file a second name.
func linkFile(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Link(from, to)
}

// linkTests links each NAME_test.* with the other NAME_* and with what serves all of them.
func (h *builder) linkTests(ctx context.Context, dir string, tests []unit, flags []string) (map[string]string, error) {
	programs := map[string]string{}
	for _, main := range tests {
		name, _, _ := strings.Cut(filepath.Base(main.path), ".")
		prefix, found := strings.CutSuffix(name, "test")
		if !found {
			continue
		}
		var parts []unit
		for _, u := range tests {
			base := filepath.Base(u.path)
			if filepath.Dir(u.path) == filepath.Dir(main.path) && (strings.HasPrefix(base, prefix) || strings.HasPrefix(base, "harness.")) {
				parts = append(parts, u)
			}
		}
		programs[name] = filepath.Join(dir, name)
		if err := h.compiler.link(ctx, programs[name], objectsOf(parts), flags); err != nil {
			return nil, err
		}
	}
	return programs, nil
}

// runPaths are the linker's flags for the folders with shared libraries, at build time and at run time. DT_RPATH is
// used because it holds for the libraries' own libraries as well.
func (h *builder) runPaths(dir string) []string {
	flags := []string{"-Wl,--disable-new-dtags", "-Wl,-rpath," + dir}
	for _, folder := range h.Torch.libraries {
		flags = append(flags, "-L"+folder, "-Wl,-rpath,"+folder)
	}
	return flags
}

// registration filters what torchgen wrote by the kernels that the objects and libtorch have.
func (h *builder) registration(ctx context.Context, generated *generated, objects string, compiled []string) ([]unit, registered, error) {
	var kernels registered
	symbols, err := h.symbols(ctx, append([]string{"--defined-only", "--extern-only", "--format=just-symbols", "--no-sort"}, compiled...))
	if err != nil {
		return nil, kernels, err
	}
	for _, folder := range h.Torch.libraries {
		if library := filepath.Join(folder, "libtorch_cpu.so"); builds.Exists(library) {
			more, err := h.symbols(ctx, []string{"--dynamic", "--defined-only", "--format=just-symbols", "--no-sort", library})
			if err != nil {
				return nil, kernels, err
			}
			symbols = append(symbols, more...)
			break
		}
	}
	has := kernelSymbols(symbols)
	files, err := generated.sources()
	if err != nil {
		return nil, kernels, err
	}
	var units []unit
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, kernels, err
		}
		filtered, found, err := filterRegistration(text, func(symbol string) bool { return has[symbol] })
		if err != nil {
			return nil, kernels, fmt.Errorf("%s: %w", file, err)
		}
		kernels.kept, kernels.dropped = append(kernels.kept, found.kept...), append(kernels.dropped, found.dropped...)
		// In a folder named after the text: ccache has the object of the same text for each build, as it knows a source by its path, too.
		digest := sha256.Sum256(filtered)
		folder := filepath.Join(h.Cache, "generated", "registration-"+hex.EncodeToString(digest[:12]))
		if err := builds.MakeFolder(folder, func(made string) error {
			return os.WriteFile(filepath.Join(made, filepath.Base(file)), filtered, 0o644)
		}); err != nil {
			return nil, kernels, err
		}
		// The compiler runs in the checkout, where its relative folders are.
		units = append(units, unit{dir: h.Checkout, path: filepath.Join(folder, filepath.Base(file)), object: filepath.Join(objects, filepath.Base(file)+".o")})
	}
	return units, kernels, nil
}

func (h *builder) symbols(ctx context.Context, args []string) ([]string, error) {
	result, err := run.Command{Name: h.Root.Tool("llvm-nm"), Args: args, Dir: h.Cache}.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("list symbols: %w", err)
	}
	return strings.Fields(string(result.Stdout)), nil
}

// unpack writes embedded sources into a folder of the cache, always the same one: ccache knows headers by their paths.
// Files that are there already are left alone. The caller holds the cache's lock.
func (h *builder) unpack(name string, files fs.FS) (dir, digest string, err error) {
	dir, err = filepath.Abs(filepath.Join(h.Cache, "unpacked", name))
	if err != nil {
		return "", "", err
	}
	hash := sha256.New()
	wanted := map[string]bool{}
	err = builds.EachFile(files, ".", func(path string, data []byte) error {
		fmt.Fprintf(hash, "%s %d\n%s", path, len(data), data)
		target := filepath.Join(dir, path)
		wanted[target] = true
		return builds.WriteChanged(target, data)
	})
	if err != nil {
		return "", "", fmt.Errorf("unpack embedded sources: %w", err)
	}
	return dir, hex.EncodeToString(hash.Sum(nil)), builds.RemoveOthers(dir, wanted)
}

// eachSource calls visit for every C++ and Objective-C++ source, by path.
func eachSource(files fs.FS, visit func(path string)) error {
	return fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".cc") || strings.HasSuffix(path, ".mm")) {
			visit(path)
		}
		return err
	})
}

func objectsOf(units []unit) []string {
	var objects []string
	for _, u := range units {
		objects = append(objects, u.object)
	}
	return objects
}
