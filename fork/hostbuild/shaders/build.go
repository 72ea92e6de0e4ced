package shaders

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
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
	Clang, Link, Linker string
	// Flags are what the linker needs beside its own.
	Flags []string
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
	}{{options.Native, "shaders/*"}, {own, "*.go"}} {
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
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	b := builder{Options: options, dir: temporary, march: march}
	if err := b.build(ctx); err != nil {
		return nil, fmt.Errorf("translate Metal kernels: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Rename(temporary, dir); err != nil {
		return nil, err
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

func (b *builder) build(ctx context.Context) error {
	err := fs.WalkDir(b.Native, "shaders", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(b.Native, path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(b.dir, path)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(b.dir, path), data, 0o644)
	})
	if err != nil {
		return err
	}
	compile := append([]string{"-std=c++17", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-I."}, b.march...)
	if err := b.clang(ctx, append(slices.Clone(compile), "-emit-llvm", "-c", inlinedSource, "-o", "access.bc")...); err != nil {
		return err
	}
	type part struct {
		library int
		name    string
		modules []Module
		result  *translated
		err     error
	}
	var parts []*part
	for i, library := range b.Libraries {
		for k, modules := range chunks(library.Modules, chunk) {
			parts = append(parts, &part{library: i, name: fmt.Sprintf("%s_%d", library.Section, k), modules: modules})
		}
	}
	var waiting sync.WaitGroup
	tokens := make(chan struct{}, runtime.NumCPU())
	for _, p := range parts {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			tokens <- struct{}{}
			defer func() { <-tokens }()
			p.result, p.err = b.compile(ctx, p.name, p.modules)
		}()
	}
	waiting.Wait()
	kernels := make([][]kernel, len(b.Libraries))
	objects := []string{"table.o"}
	var failures []error
	for _, p := range parts {
		failures = append(failures, p.err)
		if p.err == nil {
			kernels[p.library] = append(kernels[p.library], p.result.kernels...)
			objects = append(objects, p.name+".o")
		}
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "table.cc"), []byte(tableSource(b.Libraries, kernels)), 0o644); err != nil {
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

// compile translates some kernels of a library into an object.
func (b *builder) compile(ctx context.Context, name string, modules []Module) (*translated, error) {
	var files []string
	for i, module := range modules {
		file := fmt.Sprintf("%s.%d.air", name, i)
		if err := os.WriteFile(filepath.Join(b.dir, file), module.Bitcode, 0o644); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	linked, err := run.Command{Name: b.Tools.Link, Args: append([]string{"-S", "-o", "-"}, files...), Dir: b.dir}.Run(ctx)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := os.Remove(filepath.Join(b.dir, file)); err != nil {
			return nil, err
		}
	}
	result, err := translate(name, string(linked.Stdout))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.dir, name+".ll"), []byte(result.code), 0o644); err != nil {
		return nil, err
	}
	args := append([]string{"-O2", "-fPIC", "-Wno-override-module", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", "access.bc"}, b.march...)
	return result, b.clang(ctx, append(args, "-c", name+".ll", "-o", name+".o")...)
}

func chunks[T any](all []T, size int) [][]T { return slices.Collect(slices.Chunk(all, size)) }

// tableSource is the C++ file that says what the kernels are (native/shaders/run.h).
func tableSource(libraries []Library, kernels [][]kernel) string {
	var text strings.Builder
	text.WriteString("#include \"shaders/run.h\"\nusing namespace mpsforge::shaders;\nextern \"C\" {\n")
	for _, all := range kernels {
		for _, k := range all {
			fmt.Fprintf(&text, "void %s(Run*, uint32_t, uint32_t);\n", k.symbol)
		}
	}
	text.WriteString("}\nnamespace {\n")
	for _, all := range kernels {
		for _, k := range all {
			fmt.Fprintf(&text, "const Argument arguments_%s[] = {", k.symbol)
			for _, a := range k.arguments {
				kind, access := "ArgumentKind::Position", "0"
				if a.kind == "buffer" {
					kind, access = "ArgumentKind::Buffer", "kRead"
					if a.writes {
						access = "kRead | kWrite"
					}
					if a.space == 3 {
						kind = "ArgumentKind::Threadgroup"
					}
				}
				fmt.Fprintf(&text, "{%s, %d, %s, %d, %q, %q}, ", kind, a.location, access, a.size, a.typeName, a.name)
			}
			text.WriteString("};\n")
		}
	}
	for i, all := range kernels {
		fmt.Fprintf(&text, "const Kernel kernels_%d[] = {\n", i)
		for _, k := range all {
			wait := 0
			if k.waits {
				wait = 1
			}
			fmt.Fprintf(&text, "  {%q, %s, %d, %d, arguments_%s},\n", k.name, k.symbol, wait, len(k.arguments), k.symbol)
		}
		text.WriteString("};\n")
	}
	text.WriteString("const Library libraries[] = {\n")
	for i, library := range libraries {
		fmt.Fprintf(&text, "  {%q, %d, kernels_%d},\n", library.Section, len(kernels[i]), i)
	}
	fmt.Fprintf(&text, "};\nconst Table table{kFormat, %d, libraries};\n}\n", len(libraries))
	text.WriteString("extern \"C\" __attribute__((visibility(\"default\"))) const Table* mpsforge_shaders() { return &table; }\n")
	return text.String()
}
