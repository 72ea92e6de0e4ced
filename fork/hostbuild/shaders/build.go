package shaders

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

// The code that translates is part of what a translation is named after, so that a change of it makes a new one.
//
//go:embed *.go
var own embed.FS

// Tools are the paths of the compiler's programs.
type Tools struct {
	Clang, Linker string
	// Flags are what the linker needs beside its own.
	Flags []string
	// LLVM are what a program that uses LLVM's library is compiled and linked with.
	LLVM []string
}

// Options say what is translated and with what.
type Options struct {
	Libraries []Library
	Tools     Tools
	Cache     string // folder
	// Native is package native's sources.
	Native fs.FS
	Sink   events.Sink
}

// Built is a shared library with the kernels.
type Built struct {
	Path    string
	Digest  string
	Kernels int
}

// FileName is the library's.
const FileName = "libmpsforge_shaders.so"

// translator is the program that translates LLVM's code, of these sources.
const translator = "translator"

var translatorSources = []string{"translate/translate.cc", "translate/air.cc"}

// runtimeSources are compiled into each library; inlinedSource goes into the kernels.
var runtimeSources = []string{"shaders/fibers.cc", "shaders/races.cc", "shaders/runtime.cc"}

const inlinedSource = "shaders/access.cc"

// Build translates libraries, unless the cache has the result. The caller holds the cache's lock.
func Build(ctx context.Context, options Options) (*Built, error) {
	sink := events.OrDiscard(options.Sink)
	march := Processor()
	parts := []string{strings.Join(march, " ")}
	built := &Built{}
	for _, library := range options.Libraries {
		parts = append(parts, library.Section)
		for _, module := range library.Modules {
			parts = append(parts, module.Name, string(module.Bitcode))
		}
		built.Kernels += len(library.Modules)
	}
	for _, files := range []struct {
		fs      fs.FS
		pattern string
	}{{options.Native, "shaders/*"}, {options.Native, "translate/*"}, {own, "*.go"}} {
		names, err := fs.Glob(files.fs, files.pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			data, err := fs.ReadFile(files.fs, name)
			if err != nil {
				return nil, err
			}
			parts = append(parts, name, string(data))
		}
	}
	built.Digest = builds.Digest(parts...)
	dir := filepath.Join(options.Cache, "shaders", built.Digest[:24])
	built.Path = filepath.Join(dir, FileName)
	if builds.Exists(built.Path) {
		return built, nil
	}
	const step = "translate kernels"
	finish := events.Step(sink, step)
	defer finish(events.Failed, "")
	if err := os.RemoveAll(dir); err != nil { // it lacks the library
		return nil, err
	}
	err := builds.MakeFolder(dir, func(made string) error {
		b := builder{Options: options, dir: made, march: march}
		return b.build(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("translate Metal kernels: %w", err)
	}
	finish(events.OK, fmt.Sprintf("%d kernels", built.Kernels))
	return built, nil
}

// Processor gives the compiler's flags for what this machine can: conversions of half and vectors of 256 bits matter here.
func Processor() []string {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil
	}
	flags := strings.Fields(string(text))
	for _, flag := range []string{"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"} {
		if !slices.Contains(flags, flag) {
			return nil
		}
	}
	return []string{"-march=x86-64-v3"}
}

type builder struct {
	Options
	dir   string
	march []string
}

// chunk is how many kernels are compiled at once.
const chunk = 60

// unpack writes the sources into the folder.
func (b *builder) unpack() error {
	for _, folder := range []string{"shaders", "translate"} {
		sources, err := fs.Sub(b.Native, folder)
		if err != nil {
			return err
		}
		if err := os.CopyFS(filepath.Join(b.dir, folder), sources); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) build(ctx context.Context) error {
	if err := b.unpack(); err != nil {
		return err
	}
	compile := append([]string{"-std=c++17", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-I."}, b.march...)
	if err := b.clang(ctx, append(slices.Clone(compile), "-emit-llvm", "-c", inlinedSource, "-o", "access.bc")...); err != nil {
		return err
	}
	if err := b.makeTranslator(ctx); err != nil {
		return err
	}
	var waiting sync.WaitGroup
	tokens := make(chan struct{}, runtime.NumCPU())
	parts := make([][]string, len(b.Libraries)) // by library
	var results []*error                        // by part
	objects := []string{"table.o"}
	for i, library := range b.Libraries {
		for k, modules := range slices.Collect(slices.Chunk(library.Modules, chunk)) {
			name := fmt.Sprintf("%s_%d", library.Section, k)
			parts[i], objects = append(parts[i], name), append(objects, name+".o")
			result := new(error)
			results = append(results, result)
			waiting.Go(func() {
				tokens <- struct{}{}
				defer func() { <-tokens }()
				*result = b.compile(ctx, name, modules)
			})
		}
	}
	waiting.Wait()
	var failures []error
	for _, result := range results {
		failures = append(failures, *result)
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "table.cc"), []byte(tableSource(b.Libraries, parts)), 0o644); err != nil {
		return err
	}
	for _, source := range append([]string{"table.cc"}, runtimeSources...) {
		object := strings.TrimSuffix(filepath.Base(source), ".cc") + ".o"
		if err := b.clang(ctx, append(slices.Clone(compile), "-c", source, "-o", object)...); err != nil {
			return err
		}
		if source != "table.cc" {
			objects = append(objects, object)
		}
	}
	link := append([]string{"--driver-mode=g++", "--ld-path=" + b.Tools.Linker, "-shared", "-Wl,-soname," + FileName, "-Wl,-z,defs", "-o", FileName},
		objects...)
	return b.clang(ctx, append(append(link, b.Tools.Flags...), "-lm")...)
}

func (b *builder) clang(ctx context.Context, args ...string) error {
	_, err := run.Command{Name: b.Tools.Clang, Args: args, Dir: b.dir}.Run(ctx)
	return err
}

// makeTranslator compiles the program that translates. It runs once for each part, mostly in LLVM's own code.
func (b *builder) makeTranslator(ctx context.Context) error {
	link := []string{"--driver-mode=g++", "--ld-path=" + b.Tools.Linker, "-o", translator}
	for _, source := range translatorSources {
		object := filepath.Base(source) + ".o"
		compile := []string{"-std=c++17", "-Wno-unused-command-line-argument", "-c", source, "-o", object}
		if err := b.clang(ctx, append(compile, b.Tools.LLVM...)...); err != nil {
			return err
		}
		link = append(link, object)
	}
	return b.clang(ctx, append(link, b.Tools.LLVM...)...)
}

// compile translates some kernels of a library into an object.
func (b *builder) compile(ctx context.Context, name string, modules []Module) error {
	translate := run.Command{Name: filepath.Join(b.dir, translator), Args: []string{name}, Dir: b.dir}
	for i, module := range modules {
		file := fmt.Sprintf("%s.%d.%s.air", name, i, url.PathEscape(module.Name)) // errors name it
		if err := os.WriteFile(filepath.Join(b.dir, file), module.Bitcode, 0o644); err != nil {
			return err
		}
		translate.Args = append(translate.Args, file)
	}
	if _, err := translate.Run(ctx); err != nil {
		return err
	}
	for _, file := range translate.Args[1:] {
		if err := os.Remove(filepath.Join(b.dir, file)); err != nil {
			return err
		}
	}
	args := append([]string{"-O2", "-fPIC", "-Wno-override-module", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", "access.bc"}, b.march...)
	return b.clang(ctx, append(args, "-c", name+".bc", "-o", name+".o")...)
}

// tableSource is the C++ file that says what the kernels are (native/shaders/run.h), by the rows that were written with each part.
func tableSource(libraries []Library, parts [][]string) string {
	var text strings.Builder
	text.WriteString("#include \"shaders/run.h\"\nusing namespace mpsforge::shaders;\n" +
		"#define KERNEL(name, symbol, waits, ...) \\\n  extern \"C\" void symbol(Run*, uint32_t, uint32_t); \\\n" +
		"  static const Argument arguments_##symbol[] = {__VA_ARGS__};\n")
	rows := func(parts []string) {
		for _, name := range parts {
			fmt.Fprintf(&text, "#include \"%s.inc\"\n", name)
		}
	}
	rows(slices.Concat(parts...))
	text.WriteString("#undef KERNEL\n#define KERNEL(name, symbol, waits, ...) \\\n" +
		"  {name, symbol, waits, sizeof arguments_##symbol / sizeof(Argument), arguments_##symbol},\n")
	for i := range libraries {
		fmt.Fprintf(&text, "static const Kernel kernels_%d[] = {\n", i)
		rows(parts[i])
		text.WriteString("};\n")
	}
	text.WriteString("static const Library libraries[] = {\n")
	for i, library := range libraries {
		fmt.Fprintf(&text, "  {%q, sizeof kernels_%d / sizeof(Kernel), kernels_%d},\n", library.Section, i, i)
	}
	fmt.Fprintf(&text, "};\nstatic const Table table{kFormat, %d, libraries};\n", len(libraries))
	text.WriteString("extern \"C\" __attribute__((visibility(\"default\"))) const Table* mpsforge_shaders() { return &table; }\n")
	return text.String()
}
