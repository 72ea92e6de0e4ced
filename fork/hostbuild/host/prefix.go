package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"mpsforge/fork/builds"
	"mpsforge/internal/cxx"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

// keptHeaders is how many precompiled headers stay in the cache, some 45 MB each. Stock and patched sources, plain and with a sanitizer,
// need 11 of them.
const keptHeaders = 24

// header is one to be compiled once for all the sources of a folder that are compiled with these flags.
type header struct {
	link   string // in the cache, the path under which compilers see it
	path   string
	folder string
	flags  []string
	bare   bool // for sources that ThreadSanitizer is not to see
}

// precompile compiles headers, several at once, and gives for each the flags that bring it in. The sources themselves include
// what is in it; parsing it is two thirds of their compilation, and more.
//
// It hides an include that a source lacks. What it makes depends on where the folder is, so that ccache is given the digest
// of the header's preprocessed text in its place, and always the same path, that of the link: objects of two checkouts are the same if
// that and the rest is. The caller holds the cache's lock, and compiles before a link is made to lead elsewhere.
func (c *compiler) precompile(ctx context.Context, headers []header) ([][]string, error) {
	c.sink.Emit(events.StepProgress{Step: c.step, Note: "precompiled headers"})
	prefixes := make([][]string, len(headers))
	group, ctx := errgroup.WithContext(ctx)
	for i, h := range headers {
		group.Go(func() (err error) {
			prefixes[i], err = c.precompileOne(ctx, h)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	// Not by each of them: one that has looked already would remove an old folder that another has just come back to.
	return prefixes, dropOld(filepath.Join(c.cache, "headers"), keptHeaders)
}

func (c *compiler) precompileOne(ctx context.Context, h header) ([]string, error) {
	flags := append(slices.Clone(h.flags), c.sanitizer(h.bare)...)
	flags = append(flags, "-ffile-compilation-dir=.")
	clang := func(more ...string) (run.Result, error) {
		found, err := run.Command{Name: c.root.Tool("clang"), Args: slices.Concat(flags, more), Dir: h.folder}.Run(ctx)
		if err != nil {
			return found, compileError(cxx.Explain(h.path, err))
		}
		return found, nil
	}
	text, err := clang("-E", h.path)
	if err != nil {
		return nil, err
	}
	inputs := append(flags, string(text.Stdout))
	if c.root.bare { // an update of a Mac's compiler, which takes its own precompiled headers alone; a root's stays as it is
		version, err := clang("--version")
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, string(version.Stdout))
	}
	sum := builds.Digest(inputs...)
	dir := filepath.Join(c.cache, "headers", builds.Digest(sum, h.folder)[:24])
	if err := makeMarked(dir); err != nil {
		return nil, err
	}
	if made := filepath.Join(dir, "prefix.pch"); !builds.Exists(made) {
		// Without times: a snapshot that is made again is the same one.
		if _, err := clang("-x", "objective-c++-header", "-fpch-instantiate-templates", "-Xclang", "-fno-pch-timestamp", h.path, "-o",
			made+".new"); err != nil {
			return nil, err
		}
		if err := errors.Join(os.WriteFile(made+".sum", []byte(sum), 0o644), os.Rename(made+".new", made)); err != nil {
			return nil, fmt.Errorf("keep a precompiled header: %w", err)
		}
	}
	current := filepath.Join(c.cache, h.link)
	if err := os.Remove(current); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.Symlink(dir, current); err != nil {
		return nil, err
	}
	return []string{"-include-pch", filepath.Join(current, "prefix.pch"), "-Xclang", "-fno-pch-timestamp"}, nil
}
