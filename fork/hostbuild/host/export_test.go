package host

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// Generate runs torchgen and gives the folders with the headers and the registration, for tests outside this package.
func Generate(ctx context.Context, root *Root, torch *Torch, checkout, cache string, sink events.Sink) (include, registration string, err error) {
	made, err := generate(ctx, root, torch, checkout, cache, sink)
	if err != nil {
		return "", "", err
	}
	return made.include, made.registration, nil
}

// CompileWithPrefix compiles a source of a checkout with a precompiled header and gives the object's bytes.
func CompileWithPrefix(ctx context.Context, root *Root, cache, checkout, path, source string, flags []string) ([]byte, error) {
	c := compiler{root: root, cache: cache, jobs: 1, sink: events.Discard}
	prefixes, err := c.precompile(ctx, []header{{"header", path, checkout, flags, false}})
	if err != nil {
		return nil, err
	}
	object := filepath.Join(checkout, source+".o")
	if err := c.compile(ctx, []unit{{dir: checkout, path: source, flags: flags, prefix: prefixes[0], object: object}}); err != nil {
		return nil, err
	}
	return os.ReadFile(object)
}

// CacheHits is how many objects ccache has given from a cache.
func CacheHits(t testing.TB, root *Root, cache string) int {
	t.Helper()
	found := require.One(run.Command{Name: root.Tool("ccache"), Args: []string{"--print-stats"},
		Env: run.Environment([]string{"CCACHE_DIR=" + filepath.Join(cache, "ccache")}, nil)}.Run(t.Context()))(t)
	hits := 0
	for _, line := range strings.Split(string(found.Stdout), "\n") {
		name, number, _ := strings.Cut(line, "\t")
		if name == "direct_cache_hit" || name == "preprocessed_cache_hit" { // wherever the object came from
			count := require.One(strconv.Atoi(number))(t)
			hits += count
		}
	}
	return hits
}

// ShaderProgram lays out, in dir, what compiles shaders at run time, and makes a program of a native source that uses it.
func ShaderProgram(ctx context.Context, root *Root, cache, dir string, sources fs.FS, main string) (program, toolchain string, err error) {
	native := filepath.Join(dir, "native")
	if err := os.CopyFS(native, sources); err != nil {
		return "", "", err
	}
	h := builder{Options: Options{Root: root, Cache: dir, Native: sources}, compiler: compiler{root: root, cache: cache, jobs: 2, sink: events.Discard}}
	if err := h.shaderCompiler(ctx, native, dir); err != nil {
		return "", "", err
	}
	return filepath.Join(dir, shaderProgramName), filepath.Join(dir, mslFolder, ToolchainFile), h.shaderProgram(ctx, native, dir, main)
}

// Libraries are the folders with the libtorch's libraries.
func (t *Torch) Libraries() []string { return t.libraries }

// Loader is the root's dynamic loader.
func (r *Root) Loader() string { return r.loader() }

// FetchLibtorch gives the folder of the first wheel that can be had.
func FetchLibtorch(ctx context.Context, choices []patches.Wheel, cache string) (string, error) {
	return fetchLibtorch(ctx, choices, cache, events.Discard)
}

// SeriesDrivers are the scenarios' sources that see the headers of the series.
func SeriesDrivers() []string { return seriesDrivers }

// HeadersFlag shows ccache which headers there are.
var HeadersFlag = headersFlag

// PrecompileAtOnce precompiles a header with so many sets of flags.
func PrecompileAtOnce(ctx context.Context, root *Root, cache, checkout, path string, count int) error {
	c := compiler{root: root, cache: cache, jobs: 2, sink: events.Discard}
	var headers []header
	for i := range count {
		headers = append(headers, header{fmt.Sprint("header-", i), path, checkout, []string{"-x", "objective-c++", fmt.Sprint("-DNUMBER=", i)}, false})
	}
	_, err := c.precompile(ctx, headers)
	return err
}

// MakeCounting makes a program of one source below dir, as PyTorch's sources are made with builds.Coverage.
func MakeCounting(ctx context.Context, root *Root, cache, dir, source string) (*Build, error) {
	b := building{builder: &builder{Options: Options{Flavour: builds.Coverage}}, built: &Build{Dir: dir, Library: filepath.Join(dir, "program")},
		objects: dir}
	b.compiler = compiler{root: root, cache: cache, flavour: builds.Coverage, sink: events.Discard}
	if err := b.listCounting(); err != nil {
		return nil, err
	}
	units := append(b.units.counting, unit{dir: dir, path: source, flags: b.counted(commonFlags), object: filepath.Join(dir, "program.o")})
	if err := b.compiler.compile(ctx, units); err != nil {
		return nil, err
	}
	flags := []string{"-Wl,--disable-new-dtags", "-Wl,-rpath," + root.libraries()}
	return b.built, b.compiler.link(ctx, b.built.Library, objectsOf(units), b.counted(flags))
}
