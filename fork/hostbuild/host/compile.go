package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"mpsforge/fork/builds"
	"mpsforge/internal/cxx"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

var flavourFlags = map[builds.Flavour][]string{
	builds.Plain:   nil,
	builds.Thread:  {"-fsanitize=thread"},
	builds.Address: {"-fsanitize=address", "-fno-omit-frame-pointer"},
}

// unit is one source file to compile.
type unit struct {
	dir    string // the compiler runs there and writes only the object; path and relative flags are seen from it
	path   string
	flags  []string
	prefix []string // flags of a precompiled header, if it has one
	bare   bool     // ThreadSanitizer is not to see it
	object string
}

// compiler compiles units through ccache, whose cache is named by content: what was compiled once, in whatever folder, is
// not compiled again.
type compiler struct {
	root    *Root
	cache   string
	flavour builds.Flavour
	jobs    int
	sink    events.Sink
	step    string
	written func(u cxx.Unit, text string) // as cxx.Toolchain's
	plan    func(command run.Command)     // as cxx.Toolchain's
}

func (c *compiler) sanitizer(bare bool) []string {
	if bare && c.flavour == builds.Thread {
		return nil
	}
	return flavourFlags[c.flavour]
}

// toolchain is the root's clang behind ccache.
func (c *compiler) toolchain() cxx.Toolchain {
	check := "content"
	if c.root.bare {
		check = "%compiler% --version" // the program is a script, which an update of Apple's compiler does not change
	}
	tools := cxx.Toolchain{Compiler: c.root.Tool("clang"), Launcher: c.root.Tool("ccache"), Jobs: c.jobs, Written: c.written, Plan: c.plan}
	tools.Environ = func(dir string) []string {
		return run.Environment([]string{
			"CCACHE_DIR=" + filepath.Join(c.cache, "ccache"), "CCACHE_COMPILERTYPE=clang", "CCACHE_COMPILERCHECK=" + check,
			"CCACHE_NOHASHDIR=1", "CCACHE_BASEDIR=" + dir, "CCACHE_MAXSIZE=5G", "LC_ALL=C",
			// A precompiled header counts as the digest beside it says (prefix.go), not as its bytes, which hold paths.
			"CCACHE_SLOPPINESS=pch_defines,time_macros", "CCACHE_PCH_EXTSUM=1"}, nil)
	}
	return tools
}

// compile compiles all units. After the first error no further unit is started; it is the error returned.
func (c *compiler) compile(ctx context.Context, units []unit) error {
	var all []cxx.Unit
	for _, u := range units {
		// Names of files in debug information and in messages are as seen from the folder, so that another checkout's
		// objects can be the same.
		flags := slices.Concat(u.flags, c.sanitizer(u.bare), []string{"-ffile-compilation-dir=."})
		all = append(all, cxx.Unit{Dir: u.dir, Path: u.path, Flags: flags, Prefix: u.prefix, Object: u.object})
	}
	return compileError(c.toolchain().Compile(ctx, all, func(u cxx.Unit, done int, err error) {
		name := u.Path
		if filepath.IsAbs(name) { // made by mpsforge: its folder says nothing
			name = filepath.Base(name)
		}
		c.sink.Emit(events.StepProgress{Step: c.step, Done: int64(done), Total: int64(len(units)), Unit: "sources", Note: name})
		if failed := (*cxx.Error)(nil); errors.As(err, &failed) && !errors.Is(err, context.Canceled) {
			c.sink.Emit(events.PartFinished{Part: events.Part{Step: c.step, Name: name}, Outcome: events.Failed, Detail: failed.First})
		}
	}))
}

// link links objects, unless the output was linked from the same ones. The file changes all at once, as another process may
// have it loaded. The caller holds the cache's lock.
func (c *compiler) link(ctx context.Context, output string, objects, flags []string) error {
	args := append([]string{"--driver-mode=g++", "--ld-path=" + c.root.Tool("ld.lld"), "-o", output + ".new"}, objects...)
	args = append(append(args, c.sanitizer(false)...), flags...)
	if c.root.Dir() != "/" {
		args = append(args, "-Wl,--dynamic-linker="+c.root.loader())
	}
	key, err := builds.FilesDigest(args, objects...)
	if err != nil {
		return err
	}
	record := output + ".linked"
	if have, err := builds.ReadText(record); err != nil || have == key && builds.Exists(output) {
		return err
	}
	c.sink.Emit(events.StepProgress{Step: c.step, Note: "link " + filepath.Base(output)})
	if err := c.toolchain().Link(ctx, filepath.Base(output), filepath.Dir(output), args); err != nil {
		return compileError(err)
	}
	return errors.Join(os.Rename(output+".new", output), os.WriteFile(record, []byte(key), 0o644))
}

// compileError says that it is the sources that a compiler or linker refuses, where it named an error in them.
func compileError(err error) error {
	failed := (*cxx.Error)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && failed.First != "":
		return fmt.Errorf("build %s: %w: %s: %w", failed.What, builds.ErrSources, failed.First, failed.Unwrap())
	}
	return fmt.Errorf("build %w", err)
}
