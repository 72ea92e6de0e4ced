package host

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/shaders"
	"mpsforge/internal/events"
)

// mslSources compile shaders that are source at run time, as part of the software Metal.
var mslSources = []string{"msl/rewrite.cc", "msl/compile.cc"}

// mslObjects are linked into each library that comes of it.
var mslObjects = []string{"msl/hooks.cc", "shaders/fibers.cc", "shaders/races.cc", "shaders/runtime.cc"}

// mslFolder is the part of a host build where the software Metal finds what it compiles shaders with, and ToolchainFile the file
// there that says what that is (native/msl/compile.h).
const (
	mslFolder     = "msl"
	ToolchainFile = "toolchain"
)

// keptShaders is how many compiled shaders stay in the cache when a build looks there, some 50 KB each. Who uses one marks it.
const keptShaders = 2000

// shaderCompiler lays out in the build what compiles shaders that are source at run time, with more flags if there are some.
func (h *builder) shaderCompiler(ctx context.Context, native, dir string, more ...string) error {
	march := shaders.Processor()
	var units []unit
	lines := []string{"clang " + h.Root.Tool("clang"), "linker " + h.Root.Tool("ld.lld")}
	// The checks of other flavours would look for what only a program of that flavour has.
	plain := h.compiler
	plain.flavour = builds.Plain
	for _, path := range mslObjects {
		object := filepath.Join(dir, mslFolder, filepath.Base(path)+".o")
		flags := slices.Concat([]string{"-std=c++17", "-O2", "-g0", "-fPIC", "-pthread", "-fvisibility=hidden", "-fno-omit-frame-pointer", "-I."}, march)
		units = append(units, unit{dir: native, path: path, flags: flags, object: object})
		lines = append(lines, "object "+object)
	}
	if err := plain.compile(ctx, units); err != nil {
		return err
	}
	identity, err := h.shaderIdentity("msl", "shaders")
	if err != nil {
		return err
	}
	for _, folder := range []string{"msl/include", "shaders/run.h"} {
		err := builds.EachFile(h.Native, folder, func(path string, data []byte) error {
			return builds.WriteChanged(filepath.Join(dir, mslFolder, path), data)
		})
		if err != nil {
			return fmt.Errorf("lay out the headers of Metal's language: %w", err)
		}
	}
	for _, flag := range slices.Concat(march, more) {
		lines = append(lines, "flag "+flag)
	}
	kept := filepath.Join(h.Cache, "msl")
	lines = append(lines, "headers "+filepath.Join(dir, mslFolder, "msl/include"), "cache "+kept, "identity "+identity)
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	if err := dropOld(kept, keptShaders); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, mslFolder, ToolchainFile), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// shaderIdentity is of what a compiled shader depends on besides its source: the compiler, the processor, and mpsforge's own sources.
func (h *builder) shaderIdentity(sources ...string) (string, error) {
	packages, err := builds.ReadText(filepath.Join(h.Root.Dir(), packageList))
	if err != nil {
		return "", err
	}
	parts := []string{packages, strings.Join(shaders.Processor(), " ")}
	for _, folder := range sources {
		err := builds.EachFile(h.Native, folder, func(path string, data []byte) error {
			parts = append(parts, path, string(data))
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("read the sources of Metal's language: %w", err)
		}
	}
	return builds.Digest(parts...), nil
}

// keptRunners is how many programs of ShaderRunner stay in the cache.
const keptRunners = 4

// ShaderRunner gives the program that runs kernels of Metal source files, native/programs/run_shader.cc, and the file that says what it
// compiles them with. Both are in the cache, and made if they are not.
func ShaderRunner(ctx context.Context, root *Root, cache string, native fs.FS, sink events.Sink) (program, toolchain string, err error) {
	const main, step = "programs/run_shader.cc", "build the runner of shaders"
	sink = events.OrDiscard(sink)
	if cache, err = filepath.Abs(cache); err != nil {
		return "", "", err
	}
	h := builder{Options: Options{Root: root, Cache: cache, Native: native}, compiler: compiler{root: root, cache: cache, sink: sink, step: step}}
	identity, err := h.shaderIdentity("msl", "shaders", main)
	if err != nil {
		return "", "", err
	}
	dir := filepath.Join(cache, "runners", builds.Digest(identity, root.Dir())[:24])
	program, toolchain = filepath.Join(dir, shaderProgramName), filepath.Join(dir, mslFolder, ToolchainFile)
	if builds.Exists(program) { // the last to be made
		return program, toolchain, nil
	}
	// Not the lock of host builds, which take minutes; so the sources are in a folder of their own, too.
	unlock, err := lock(ctx, filepath.Join(cache, "runners.lock"), sink)
	if err != nil {
		return "", "", err
	}
	defer unlock()
	if builds.Exists(program) { // another process has made it meanwhile, and uses it
		return program, toolchain, nil
	}
	finish := events.Step(sink, step)
	defer finish(events.Failed, "")
	if err := makeAndDropOld(dir, keptRunners); err != nil {
		return "", "", err
	}
	unpacked, _, err := h.unpack("runner", native)
	if err != nil {
		return "", "", err
	}
	// So that a finding has the line of the source.
	if err := h.shaderCompiler(ctx, unpacked, dir, "-gline-tables-only", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"); err != nil {
		return "", "", err
	}
	if err := h.shaderProgram(ctx, unpacked, dir, main); err != nil {
		return "", "", err
	}
	finish(events.OK, "")
	return program, toolchain, nil
}

const shaderProgramName = "program"

// shaderProgram makes, in dir, a program of a source of package native that compiles shaders.
func (h *builder) shaderProgram(ctx context.Context, native, dir, main string) error {
	var units []unit
	for _, path := range append([]string{main}, mslSources...) {
		units = append(units, unit{dir: native, path: path, flags: []string{"-std=c++17", "-O1", "-Wall", "-Wextra", "-pthread", "-I."},
			object: filepath.Join(dir, filepath.Base(path)+".o")})
	}
	if err := h.compiler.compile(ctx, units); err != nil {
		return err
	}
	return h.compiler.link(ctx, filepath.Join(dir, shaderProgramName), objectsOf(units), []string{"-pthread", "-Wl,--disable-new-dtags",
		"-Wl,-rpath," + h.Root.libraries()})
}
