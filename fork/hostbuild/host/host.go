package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
var seriesDrivers = []string{"benchmarks.cc", "extensions.cc", "sanitizer.cc"}

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

type builder struct {
	Options
	compiler compiler
}

func (h *builder) build(ctx context.Context, sink events.Sink) (*Build, error) {
	unlock, err := Lock(ctx, h.Cache, sink)
	if err != nil {
		return nil, err
	}
	defer unlock()
	generated, err := generate(ctx, h.Root, h.Torch, h.Checkout, h.Cache, sink)
	if err != nil {
		return nil, err
	}
	compiled, excluded, err := backendSources(h.Checkout, h.Facts, h.Extent)
	if err != nil {
		return nil, err
	}
	if err := refuseAvailable(h.Checkout, compiled); err != nil {
		return nil, err
	}
	native, nativeDigest, err := h.unpack("native", h.Native)
	if err != nil {
		return nil, err
	}
	glue, glueDigest, err := h.unpack("native/torch", h.Glue)
	if err != nil {
		return nil, err
	}
	var translated *shaders.Built
	if h.Extent != First {
		translated, err = h.shaders(ctx, sink)
	}
	noShaders := ""
	if errors.Is(err, builds.ErrEnvironment) {
		noShaders, err = err.Error(), nil
		sink.Emit(events.Message{Level: events.Warning, Text: "SKIP Metal kernels: PyTorch's own do not run in this build; " + noShaders})
	}
	if err != nil {
		return nil, err
	}
	stamp := h.Identity
	stamp.Format, stamp.Kind, stamp.Flavour, stamp.Torch = builds.StampFormat, "host", h.Flavour, h.Torch.description
	stamp.Native = builds.Digest(nativeDigest, glueDigest)
	if stamp.Sources, err = builds.SourcesDigest(h.Checkout); err != nil {
		return nil, err
	}
	if translated != nil {
		stamp.Shaders = translated.Digest
	}
	text, err := stamp.Text()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Join(h.Cache, "hosts", builds.Digest(text, strings.Join(compiled, " "))[:24]))
	if err != nil {
		return nil, err
	}
	built := &Build{Dir: dir, Library: filepath.Join(dir, "libhostmps.so"), Metal: filepath.Join(dir, "libmpsforge_objc.so"),
		Driver: filepath.Join(dir, "scenarios"), Stamp: stamp, Compiled: compiled, Excluded: excluded, NoShaders: noShaders}
	objects := filepath.Join(dir, "objects")
	if err := makeAndDropOld(dir, keptBuilds); err != nil {
		return nil, err
	}

	include := func(folders ...string) []string {
		var flags []string
		for _, folder := range folders {
			flags = append(flags, "-I"+folder)
		}
		return flags
	}
	var metal, foreign, evaluator, drivers, tests []unit
	ownFlags := slices.Concat(commonFlags, []string{"-Wall", "-Wextra", "-Wno-unused-parameter"}, include(".", "objc/include"))
	err = eachSource(h.Native, func(path string) {
		if !strings.HasPrefix(path, "objc/") && !strings.HasPrefix(path, "metal/") && !strings.HasPrefix(path, "schedule/") &&
			!slices.Contains(mslSources, path) {
			return
		}
		u := unit{dir: native, path: path, flags: ownFlags, object: filepath.Join(objects, "native", path+".o")}
		u.bare = slices.ContainsFunc(bareFolders, func(folder string) bool { return strings.HasPrefix(path, folder) })
		if strings.HasSuffix(path, ".mm") {
			u.flags = slices.Concat(objcFlags, ownFlags)
		}
		if strings.HasPrefix(path, "objc/tests/") {
			tests = append(tests, u)
			return
		}
		metal = append(metal, u)
	})
	if err != nil {
		return nil, err
	}
	// Some headers of the old caffe2 are in no libtorch. USE_MPS lets the sources register kernels in dispatch stubs.
	torchFlags := slices.Concat(objcFlags, commonFlags, h.Torch.flags, []string{"-w", "-DAT_PER_OPERATOR_HEADERS", "-DFMT_HEADER_ONLY=1", "-DUSE_MPS",
		"-include", "mpsforge/integers.h", "-idirafter", "."},
		include(filepath.Join(native, "objc/include"), generated.include, "aten/src"), include(h.Torch.include...))
	// Only what is part of the backend sees the checkout; the rest is the same for all checkouts, and compiled once.
	ownGlue := slices.Concat(objcFlags, commonFlags, h.Torch.flags, []string{"-Wall", "-DFMT_HEADER_ONLY=1"},
		include(".", native, filepath.Join(native, "objc/include"), generated.include))
	glueFlags := slices.Concat(ownGlue, include(h.Torch.include...))
	backendFlags := slices.Concat(ownGlue, include(filepath.Join(h.Checkout, "aten/src")), include(h.Torch.include...))
	glueHeader := filepath.Join(glue, "prefix_glue.h")
	headers := []header{
		{"header", filepath.Join(glue, "prefix.h"), h.Checkout, torchFlags, false},
		{"header-backend", glueHeader, glue, backendFlags, false},
		{"header-glue", glueHeader, glue, glueFlags, false},
	}
	if h.Flavour == builds.Thread { // else it is the one before
		headers = append(headers, header{"header-glue-bare", glueHeader, glue, glueFlags, true})
	}
	prefixes, err := h.compiler.precompile(ctx, headers)
	if err != nil {
		return nil, err
	}
	prefix, backendPrefix, gluePrefix, barePrefix := prefixes[0], prefixes[1], prefixes[2], prefixes[len(prefixes)-1]
	for _, path := range compiled {
		u := unit{dir: h.Checkout, path: path, flags: torchFlags, prefix: prefix, object: filepath.Join(objects, path+".o")}
		foreign = append(foreign, u)
	}
	err = eachSource(h.Glue, func(path string) {
		u := unit{dir: glue, path: path, flags: glueFlags, prefix: gluePrefix, object: filepath.Join(objects, "hostmps", path+".o")}
		switch folder, _, _ := strings.Cut(path, "/"); folder {
		case "scenarios":
			if slices.Contains(seriesDrivers, filepath.Base(path)) {
				u.flags, u.prefix = backendFlags, backendPrefix
			}
			if h.Extent == First && !slices.Contains(firstDrivers, filepath.Base(path)) {
				return
			}
			drivers = append(drivers, u)
		case "tests":
			tests = append(tests, u)
		case "python":
			// pythonUnits'
		case dispatchStub:
			// It is a library of its own, too, which comes before the Objective-C runtime.
			u.flags, u.prefix = slices.Concat(glueFlags, []string{"-x", "c++"}), nil
			foreign = append(foreign, u)
		case "backend":
			u.flags, u.prefix = backendFlags, backendPrefix
			foreign = append(foreign, u)
		default:
			// What runs on the threads of the software GPU is checked by its own checker.
			if u.bare = strings.HasPrefix(path, "evaluator") || strings.HasPrefix(path, "kernels"); u.bare {
				u.prefix = barePrefix
			}
			evaluator = append(evaluator, u)
		}
	})
	if err != nil {
		return nil, err
	}
	stampSource, err := stamp.Source()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(objects, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(objects, "stamp.cc"), stampSource, 0o644); err != nil {
		return nil, err
	}
	foreign = append(foreign, unit{dir: objects, path: "stamp.cc", flags: commonFlags, object: filepath.Join(objects, "stamp.o")})

	if !h.Tests {
		tests = nil
	}
	if err := h.compiler.compile(ctx, foreign); err != nil {
		return nil, err
	}
	registration, kernels, err := h.registration(ctx, generated, objects, objectsOf(foreign))
	if err != nil {
		return nil, err
	}
	built.Kernels, built.Dropped = len(kernels.kept), kernels.dropped
	if err := h.checkDropped(kernels, excluded); err != nil {
		return nil, err
	}
	// Generated, large, and of no interest to anybody's speed.
	for i := range registration {
		registration[i].flags = slices.Concat(torchFlags, []string{"-O0"})
	}
	pythonInclude := slices.Concat(include(filepath.Join(native, "objc/include"), generated.include, "aten/src"), include(h.Torch.include...))
	forPython, noPython, err := h.python()
	if err != nil {
		return nil, err
	}
	if h.Extent == First {
		noPython = "this build has only what the first scenario needs"
	}
	var python []unit
	if noPython == "" {
		python = h.pythonUnits(forPython, glue, objects, pythonInclude)
	}
	// The largest first: it takes as long as many others together.
	if err := h.compiler.compile(ctx, slices.Concat(registration, python, evaluator, metal, drivers, tests)); err != nil {
		return nil, err
	}
	if h.Extent != First {
		if err := h.shaderCompiler(ctx, native, dir); err != nil {
			return nil, err
		}
	}
	search := h.runPaths(dir)
	if err := h.compiler.link(ctx, built.Metal, objectsOf(metal), []string{"-shared", "-Wl,-soname,libmpsforge_objc.so", "-Wl,-Bsymbolic"}); err != nil {
		return nil, err
	}
	libraries := append(search, "-L"+dir, "-ltorch_cpu", "-lc10", "-lmpsforge_objc")
	if translated != nil {
		built.Shaders = translated.Kernels
		if err := linkFile(translated.Path, filepath.Join(dir, shaders.FileName)); err != nil {
			return nil, err
		}
		libraries = append(libraries, "-lmpsforge_shaders")
	}
	var wraps []string
	for _, name := range wrappedFunctions {
		wraps = append(wraps, "-Wl,--wrap="+name)
	}
	if err := h.compiler.link(ctx, filepath.Join(dir, evaluatorLibrary), objectsOf(evaluator),
		slices.Concat([]string{"-shared", "-Wl,-soname," + evaluatorLibrary, "-Wl,-Bsymbolic"}, wraps, libraries)); err != nil {
		return nil, err
	}
	libraries = append(libraries, "-lmpsforge_evaluator")
	if err := h.compiler.link(ctx, built.Library, objectsOf(append(foreign, registration...)),
		slices.Concat([]string{"-shared", "-Wl,-soname,libhostmps.so", "-Wl,-Bsymbolic"}, wraps, libraries)); err != nil {
		return nil, err
	}
	if err := h.compiler.link(ctx, built.Driver, objectsOf(drivers), append([]string{"-lhostmps"}, libraries...)); err != nil {
		return nil, err
	}
	if h.Overlay != nil {
		if built.Overlay, err = h.overlay(ctx, dir, stamp, append(foreign, registration...), torchFlags, backendFlags,
			append(wraps, libraries...)); err != nil {
			return nil, err
		}
	}
	built.NoPython = noPython
	if noPython == "" {
		if built.Python, built.NoPython, err = h.linkPython(ctx, forPython, python, dir, glue, objects, libraries); err != nil {
			return nil, err
		}
	}
	if built.Tests, err = h.linkTests(ctx, dir, tests, append([]string{"-lhostmps"}, append(wraps, libraries...)...)); err != nil {
		return nil, err
	}
	if h.Flavour == builds.Plain && h.Extent != First { // they are the same in all flavours
		built.Layouts, err = h.layouts(ctx, torchFlags, dir)
	}
	return built, err
}

// shaders translates the Metal kernels of PyTorch's wheel. Without one, and where it cannot be had (builds.ErrEnvironment), the
// build does without: hand-written kernels do their work, as far as there are any.
func (h *builder) shaders(ctx context.Context, sink events.Sink) (*shaders.Built, error) {
	if h.Facts.Wheel.URL == "" {
		return nil, fmt.Errorf("%w: no wheel of this version is known", builds.ErrEnvironment)
	}
	libraries, err := shaders.Fetch(ctx, h.Facts.Wheel, h.Cache, sink)
	if err != nil {
		return nil, err
	}
	tools := shaders.Tools{Clang: h.Root.Tool("clang"), Link: h.Root.Tool("llvm-link"), Linker: h.Root.Tool("ld.lld")}
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
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %d\n%s", path, len(data), data)
		target := filepath.Join(dir, path)
		wanted[target] = true
		if have, err := os.ReadFile(target); err == nil && bytes.Equal(have, data) {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
	if err != nil {
		return "", "", fmt.Errorf("unpack embedded sources: %w", err)
	}
	// A header of an earlier version must not be found instead of another one.
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || wanted[path] {
			return err
		}
		return os.Remove(path)
	})
	return dir, hex.EncodeToString(hash.Sum(nil)), err
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
