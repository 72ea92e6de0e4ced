package host

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

// Generate runs torchgen and gives the folder with the registration, for tests outside this package.
func Generate(ctx context.Context, root *Root, torch *Torch, checkout, cache string, sink events.Sink) (string, error) {
	made, err := generate(ctx, root, torch, checkout, cache, sink)
	if err != nil {
		return "", err
	}
	return made.registration, nil
}

// CompileWithPrefix compiles a source of a checkout with a precompiled header and gives the object's bytes.
func CompileWithPrefix(ctx context.Context, root *Root, cache, checkout, header, source string, flags []string) ([]byte, error) {
	c := compiler{root: root, cache: cache, jobs: 1, sink: events.Discard}
	prefix, err := c.precompile(ctx, header, checkout, flags)
	if err != nil {
		return nil, err
	}
	object := filepath.Join(checkout, source+".o")
	if err := c.compile(ctx, []unit{{dir: checkout, path: source, flags: flags, prefix: prefix, object: object}}); err != nil {
		return nil, err
	}
	return os.ReadFile(object)
}

// CacheHits is how many objects ccache has given from a cache.
func CacheHits(t testing.TB, root *Root, cache string) int {
	t.Helper()
	found, err := run.Command{Name: root.Tool("ccache"), Args: []string{"--print-stats"}, Env: run.Environment([]string{"CCACHE_DIR=" + filepath.Join(cache, "ccache")}, nil)}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hits := 0
	for _, line := range strings.Split(string(found.Stdout), "\n") {
		name, number, _ := strings.Cut(line, "\t")
		if name == "local_storage_hit" {
			if hits, err = strconv.Atoi(number); err != nil {
				t.Fatal(err)
			}
		}
	}
	return hits
}

// ShaderProgram lays out, in dir, what compiles shaders at run time, and makes a program of native sources that uses it.
func ShaderProgram(ctx context.Context, root *Root, cache, dir string, sources fs.FS, paths ...string) (program, toolchain string, err error) {
	native := filepath.Join(dir, "native")
	if err := os.CopyFS(native, sources); err != nil {
		return "", "", err
	}
	h := builder{Options: Options{Root: root, Cache: dir, Native: sources}, compiler: compiler{root: root, cache: cache, jobs: 2, sink: events.Discard}}
	if err := h.shaderCompiler(ctx, native, dir); err != nil {
		return "", "", err
	}
	var units []unit
	for _, path := range paths {
		units = append(units, unit{dir: native, path: path, flags: []string{"-std=c++17", "-O1", "-I."}, object: filepath.Join(dir, filepath.Base(path)+".o")})
	}
	if err := h.compiler.compile(ctx, units); err != nil {
		return "", "", err
	}
	program = filepath.Join(dir, "program")
	err = h.compiler.link(ctx, program, objectsOf(units), []string{"-pthread", "-Wl,--disable-new-dtags", "-Wl,-rpath," + root.libraries()})
	return program, filepath.Join(dir, mslFolder, ToolchainFile), err
}
