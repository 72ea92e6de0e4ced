package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/shaders"
	"mpsforge/internal/events"
)

type builder struct {
	Options
	compiler compiler
}

// building is one build on its way, from what it is made of to its libraries.
type building struct {
	*builder
	built                 *Build
	native, glue, objects string // folders: our sources, those that replace parts of PyTorch, and what is compiled
	generated             *generated
	shaders               *shaders.Built // nil: PyTorch's own kernels do not run
	flags                 flags
	units                 units
	python                pythonOf
}

// flags are the compiler's, by what a source sees.
type flags struct {
	headers []string // the folders that PyTorch's sources include from: ours, the checkout's and libtorch's
	series  []string // which of its headers the series has added, for sources that ask by __has_include
	torch   []string // PyTorch's sources
	backend []string // ours that are part of the backend: the same, with our warnings
	asking  []string // the same, for sources that ask
	glue    []string // ours: libtorch's headers and no checkout, so that they are compiled once for all
	own     []string // the software Metal: nothing of PyTorch's
}

// units are the sources by the library or program that they go into.
type units struct {
	metal, backend, registration, evaluator, python, drivers, tests []unit
	counting                                                        []unit // with builds.Coverage, in each library that has counters
}

func (h *builder) build(ctx context.Context, sink events.Sink) (*Build, error) {
	unlock, err := Lock(ctx, h.Cache, sink)
	if err != nil {
		return nil, err
	}
	defer unlock()
	b := &building{builder: h}
	if err := b.prepare(ctx, sink); err != nil {
		return nil, err
	}
	if err := b.list(ctx); err != nil {
		return nil, err
	}
	if err := b.compile(ctx); err != nil {
		return nil, err
	}
	return b.built, b.link(ctx)
}

// prepare finds what the build is made of, which says where it is.
func (b *building) prepare(ctx context.Context, sink events.Sink) error {
	var err error
	if b.generated, err = generate(ctx, b.Root, b.Torch, b.Checkout, b.Cache, sink); err != nil {
		return err
	}
	compiled, excluded, err := backendSources(b.Checkout, b.Facts, b.Extent)
	if err != nil {
		return err
	}
	if err := refuseAvailable(b.Checkout, compiled); err != nil {
		return err
	}
	var nativeDigest, glueDigest string
	if b.native, nativeDigest, err = b.unpack("native", b.Native); err != nil {
		return err
	}
	if b.glue, glueDigest, err = b.unpack("native/torch", b.Glue); err != nil {
		return err
	}
	noShaders := ""
	if b.Extent != First {
		b.shaders, err = b.translate(ctx, sink)
		if errors.Is(err, builds.ErrEnvironment) {
			noShaders, err = err.Error(), nil
			sink.Emit(events.Message{Level: events.Warning, Text: "SKIP Metal kernels: PyTorch's own do not run in this build; " + noShaders})
		}
		if err != nil {
			return err
		}
	}
	stamp := b.Identity
	stamp.Format, stamp.Kind, stamp.Flavour, stamp.Torch = builds.StampFormat, "host", b.Flavour, b.Torch.description
	stamp.Native = builds.Digest(nativeDigest, glueDigest)
	if stamp.Sources, err = builds.SourcesDigest(b.Checkout); err != nil {
		return err
	}
	if b.shaders != nil {
		stamp.Shaders = b.shaders.Digest
	}
	text, err := stamp.Text()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Join(b.Cache, "hosts", builds.Digest(text, strings.Join(compiled, " "))[:24]))
	if err != nil {
		return err
	}
	b.built = &Build{Dir: dir, Library: filepath.Join(dir, "libhostmps.so"), Metal: filepath.Join(dir, "libmpsforge_objc.so"),
		Driver: filepath.Join(dir, "scenarios"), Stamp: stamp, Compiled: compiled, Excluded: excluded, NoShaders: noShaders}
	b.objects = filepath.Join(dir, "objects")
	if err := makeAndDropOld(dir, keptBuilds); err != nil {
		return err
	}
	return os.MkdirAll(b.objects, 0o755)
}

func include(folders ...string) []string {
	var flags []string
	for _, folder := range folders {
		flags = append(flags, "-I"+folder)
	}
	return flags
}

// headersFlag shows ccache which of the backend's headers there are. It gives an object again where the files that were included are the
// same, and does not see that one which __has_include asked for has come since: a folder that does not exist, named by them, does.
func headersFlag(checkout string) ([]string, error) {
	headers, err := fs.Glob(os.DirFS(filepath.Join(checkout, "aten/src/ATen/mps")), "*.h")
	return []string{"-I/nowhere/" + builds.Digest(headers...)[:16]}, err
}

// list precompiles what nearly all sources include, and lists the sources with their flags.
func (b *building) list(ctx context.Context) error {
	ownHeaders := []string{b.native, filepath.Join(b.native, "objc/include"), b.generated.include}
	b.flags.headers = slices.Concat(include(ownHeaders[1:]...), include("aten/src"), include(b.Torch.include...))
	// Some headers of the old caffe2 are in no libtorch. USE_MPS lets the sources register kernels in dispatch stubs.
	b.flags.torch = slices.Concat(objcFlags, commonFlags, b.Torch.flags, []string{"-w", "-DAT_PER_OPERATOR_HEADERS", "-DFMT_HEADER_ONLY=1", "-DUSE_MPS",
		"-include", "mpsforge/integers.h", "-idirafter", "."}, b.flags.headers)
	ours := slices.Concat(objcFlags, commonFlags, b.Torch.flags, []string{"-Wall", "-DFMT_HEADER_ONLY=1"}, include("."), include(ownHeaders...))
	b.flags.glue = slices.Concat(ours, include(b.Torch.include...))
	b.flags.backend = slices.Concat(ours, include(filepath.Join(b.Checkout, "aten/src")), include(b.Torch.include...))
	var err error
	if b.flags.series, err = headersFlag(b.Checkout); err != nil {
		return err
	}
	b.flags.asking = slices.Concat(b.flags.backend, b.flags.series)
	b.flags.own = slices.Concat(commonFlags, []string{"-Wall", "-Wextra", "-Wno-unused-parameter"}, include(".", "objc/include"))
	if err := b.listMetal(); err != nil {
		return err
	}
	glueHeader := filepath.Join(b.glue, "prefix_glue.h")
	precompiled := []header{
		{"header", filepath.Join(b.glue, "prefix.h"), b.Checkout, b.flags.torch, false},
		{"header-backend", glueHeader, b.glue, b.flags.backend, false},
		{"header-glue", glueHeader, b.glue, b.flags.glue, false},
	}
	if b.Flavour == builds.Thread { // else it is the one before
		precompiled = append(precompiled, header{"header-glue-bare", glueHeader, b.glue, b.flags.glue, true})
	}
	prefixes, err := b.compiler.precompile(ctx, precompiled)
	if err != nil {
		return err
	}
	for _, path := range b.built.Compiled {
		u := unit{dir: b.Checkout, path: path, flags: b.counted(b.flags.torch), prefix: prefixes[0], object: filepath.Join(b.objects, path+".o")}
		b.units.backend = append(b.units.backend, u)
	}
	err = eachSource(b.Glue, func(path string) { b.listGlue(path, prefixes[1], prefixes[2], prefixes[len(prefixes)-1]) })
	if err != nil {
		return err
	}
	stamp, err := b.built.Stamp.Source()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.objects, "stamp.cc"), stamp, 0o644); err != nil {
		return err
	}
	b.units.backend = append(b.units.backend,
		unit{dir: b.objects, path: "stamp.cc", flags: commonFlags, object: filepath.Join(b.objects, "stamp.o")})
	if !b.Tests {
		b.units.tests = nil
	}
	if b.Flavour == builds.Coverage {
		return b.listCounting()
	}
	return nil
}

// listMetal lists the software Metal's sources.
func (b *building) listMetal() error {
	return eachSource(b.Native, func(path string) {
		if !strings.HasPrefix(path, "objc/") && !strings.HasPrefix(path, "metal/") && !strings.HasPrefix(path, "schedule/") &&
			!slices.Contains(mslSources, path) {
			return
		}
		u := unit{dir: b.native, path: path, flags: b.flags.own, object: filepath.Join(b.objects, "native", path+".o")}
		u.bare = slices.ContainsFunc(bareFolders, func(folder string) bool { return strings.HasPrefix(path, folder) })
		if strings.HasSuffix(path, ".mm") {
			u.flags = slices.Concat(objcFlags, b.flags.own)
		}
		if strings.HasPrefix(path, "objc/tests/") {
			b.units.tests = append(b.units.tests, u)
			return
		}
		b.units.metal = append(b.units.metal, u)
	})
}

// listGlue adds a source that replaces a part of PyTorch to the library or program that it goes into.
func (b *building) listGlue(path string, backend, glue, bare []string) {
	u := unit{dir: b.glue, path: path, flags: b.flags.glue, prefix: glue, object: filepath.Join(b.objects, "hostmps", path+".o")}
	switch folder, _, _ := strings.Cut(path, "/"); folder {
	case "scenarios":
		if slices.Contains(seriesDrivers, filepath.Base(path)) {
			u.flags, u.prefix = b.counted(b.flags.asking), backend
		}
		if b.Extent == First && !slices.Contains(firstDrivers, filepath.Base(path)) {
			return
		}
		b.units.drivers = append(b.units.drivers, u)
	case "tests":
		b.units.tests = append(b.units.tests, u)
	case "python":
		// compiled by pythonUnits
	case dispatchStub:
		// It is a library of its own, too, which comes before the Objective-C runtime.
		u.flags, u.prefix = slices.Concat(b.flags.glue, []string{"-x", "c++"}), nil
		b.units.backend = append(b.units.backend, u)
	case "backend":
		u.flags, u.prefix = b.flags.asking, backend
		b.units.backend = append(b.units.backend, u)
	default:
		// What runs on the threads of the software GPU is checked by its own checker.
		if u.bare = strings.HasPrefix(path, "evaluator") || strings.HasPrefix(path, "kernels"); u.bare {
			u.prefix = bare
		}
		b.units.evaluator = append(b.units.evaluator, u)
	}
}

// compile compiles the backend, then what is generated from the kernels that it has, and the rest with that.
func (b *building) compile(ctx context.Context) error {
	if err := b.compiler.compile(ctx, b.units.backend); err != nil {
		return err
	}
	registration, kernels, err := b.registration(ctx, b.generated, b.objects, objectsOf(b.units.backend))
	if err != nil {
		return err
	}
	b.built.Kernels, b.built.Dropped = len(kernels.kept), kernels.dropped
	if err := b.checkDropped(kernels, b.built.Excluded); err != nil {
		return err
	}
	// Generated, large, and of no interest to anybody's speed.
	for i := range registration {
		registration[i].flags = b.counted(slices.Concat(b.flags.torch, []string{"-O0"}))
	}
	b.units.registration = registration
	if b.python, b.built.NoPython, err = b.findPython(); err != nil {
		return err
	}
	if b.Extent == First {
		b.built.NoPython = "this build has only what the first scenario needs"
	}
	if b.built.NoPython == "" {
		b.units.python = b.pythonUnits(b.python, b.glue, b.objects, b.flags.headers, b.flags.series)
	}
	// The largest first: it takes as long as many others together.
	u := b.units
	if err := b.compiler.compile(ctx, slices.Concat(u.registration, u.python, u.evaluator, u.metal, u.drivers, u.tests, u.counting)); err != nil {
		return err
	}
	if b.Extent == First {
		return nil
	}
	return b.shaderCompiler(ctx, b.native, b.built.Dir)
}

// link makes the libraries and programs.
func (b *building) link(ctx context.Context) error {
	dir, built := b.built.Dir, b.built
	library := func(path string, units []unit, flags ...[]string) error {
		shared := []string{"-shared", "-Wl,-soname," + filepath.Base(path), "-Wl,-Bsymbolic"}
		return b.compiler.link(ctx, path, objectsOf(units), append(shared, slices.Concat(flags...)...))
	}
	if err := library(built.Metal, b.units.metal); err != nil {
		return err
	}
	libraries := append(b.runPaths(dir), "-L"+dir, "-ltorch_cpu", "-lc10", "-lmpsforge_objc")
	if b.shaders != nil {
		built.Shaders = b.shaders.Kernels
		if err := linkFile(b.shaders.Path, filepath.Join(dir, shaders.FileName)); err != nil {
			return err
		}
		libraries = append(libraries, "-lmpsforge_shaders")
	}
	var wraps []string
	for _, name := range wrappedFunctions {
		wraps = append(wraps, "-Wl,--wrap="+name)
	}
	if err := library(filepath.Join(dir, evaluatorLibrary), b.units.evaluator, wraps, libraries); err != nil {
		return err
	}
	libraries = append(libraries, "-lmpsforge_evaluator")
	backend := slices.Concat(b.units.backend, b.units.registration, b.units.counting)
	libraries = b.counted(libraries)
	if err := library(built.Library, backend, wraps, libraries); err != nil {
		return err
	}
	drivers := slices.Concat(b.units.drivers, b.units.counting)
	if err := b.compiler.link(ctx, built.Driver, objectsOf(drivers), append([]string{"-lhostmps"}, libraries...)); err != nil {
		return err
	}
	var err error
	if b.Overlay != nil {
		link := slices.Concat(wraps, libraries)
		if built.Overlay, err = b.overlay(ctx, dir, built.Stamp, backend, b.flags.torch, b.flags.asking, link); err != nil {
			return err
		}
	}
	if built.NoPython == "" {
		built.Python, built.NoPython, err = b.linkPython(ctx, b.python, slices.Concat(b.units.python, b.units.counting), dir, b.glue, b.objects, libraries)
		if err != nil {
			return err
		}
	}
	if built.Tests, err = b.linkTests(ctx, dir, b.units.tests, slices.Concat([]string{"-lhostmps"}, wraps, libraries)); err != nil {
		return err
	}
	if b.Flavour == builds.Plain && b.Extent != First { // they are the same in all flavours
		built.Layouts, err = b.layouts(ctx, b.flags.torch, dir)
	}
	return err
}
