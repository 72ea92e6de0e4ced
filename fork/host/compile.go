package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"

	"mpsforge/fork/builds"
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
	bare   bool // ThreadSanitizer is not to see it
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
}

func (c *compiler) sanitizer(bare bool) []string {
	if bare && c.flavour == builds.Thread {
		return nil
	}
	return flavourFlags[c.flavour]
}

// compile compiles all units. After the first error no further unit is started; it is the error returned.
func (c *compiler) compile(ctx context.Context, units []unit) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := c.jobs
	if jobs <= 0 {
		jobs = runtime.NumCPU()
	}
	work := make(chan unit)
	var done sync.WaitGroup
	var guard sync.Mutex
	var first error
	finished := 0
	for range min(jobs, len(units)) {
		done.Go(func() {
			for u := range work {
				err := c.compileOne(ctx, u)
				guard.Lock()
				if err != nil && first == nil {
					first = err
					cancel()
				}
				finished++
				c.sink.Emit(events.StepProgress{Step: c.step, Done: int64(finished), Total: int64(len(units)), Unit: "sources", Note: u.path})
				if err != nil && !errors.Is(err, context.Canceled) {
					c.sink.Emit(events.PartFinished{Part: events.Part{Step: c.step, Name: u.path}, Outcome: events.Failed, Detail: firstErrorLine.FindString(err.Error())})
				}
				guard.Unlock()
			}
		})
	}
feed:
	for _, u := range units {
		select {
		case work <- u:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	done.Wait()
	if first == nil {
		return ctx.Err()
	}
	return first
}

func (c *compiler) compileOne(ctx context.Context, u unit) error {
	if err := os.MkdirAll(filepath.Dir(u.object), 0o755); err != nil {
		return err
	}
	args := []string{c.root.Tool("clang")}
	args = append(args, u.flags...)
	args = append(args, c.sanitizer(u.bare)...)
	// Names of files in debug information and in messages are as seen from the folder, so that another checkout's
	// objects can be the same.
	args = append(args, "-ffile-compilation-dir=.", "-c", u.path, "-o", u.object)
	command := run.Command{Name: c.root.Tool("ccache"), Args: args, Dir: u.dir, Env: run.Environment([]string{
		"CCACHE_DIR=" + filepath.Join(c.cache, "ccache"), "CCACHE_COMPILERTYPE=clang", "CCACHE_COMPILERCHECK=content",
		"CCACHE_NOHASHDIR=1", "CCACHE_BASEDIR=" + u.dir, "CCACHE_MAXSIZE=5G", "LC_ALL=C"}, nil)}
	_, err := command.Run(ctx)
	return compileError(u.path, err)
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
	if _, err := (run.Command{Name: c.root.Tool("clang"), Args: args, Dir: filepath.Dir(output)}).Run(ctx); err != nil {
		return compileError(filepath.Base(output), err)
	}
	return errors.Join(os.Rename(output+".new", output), os.WriteFile(record, []byte(key), 0o644))
}

var firstErrorLine = regexp.MustCompile(`(?m)^.*(?:fatal )?error: .*$`)

// compileError puts the file and the first error before the compiler's command and last words.
func compileError(what string, err error) error {
	if err == nil {
		return nil
	}
	if failure := (*run.Error)(nil); errors.As(err, &failure) && !errors.Is(err, context.Canceled) {
		if line := firstErrorLine.FindString(failure.Stderr); line != "" {
			return fmt.Errorf("build %s: %w: %s: %w", what, builds.ErrSources, line, err)
		}
	}
	return fmt.Errorf("build %s: %w", what, err)
}
