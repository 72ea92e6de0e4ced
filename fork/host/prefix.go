package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mpsforge/fork/builds"
	"mpsforge/internal/cxx"
	"mpsforge/internal/run"
)

// keptHeaders is how many precompiled headers stay in the cache, some 45 MB each.
const keptHeaders = 8

// precompile compiles a header once for all the sources of a checkout that are compiled with these flags, and gives the flags
// that bring it in. The sources themselves include what is in it; parsing it is two thirds of their compilation.
//
// It hides an include that a source lacks. What it makes depends on where the checkout is, so that ccache is given the digest
// of the header's preprocessed text in its place, and always the same path: objects of two checkouts are the same if that
// and the rest is. The caller holds the cache's lock, and compiles before another header is made.
func (c *compiler) precompile(ctx context.Context, header, checkout string, flags []string) ([]string, error) {
	flags = append(slices.Clone(flags), c.sanitizer(false)...)
	flags = append(flags, "-ffile-compilation-dir=.")
	clang := func(more ...string) (run.Result, error) {
		found, err := run.Command{Name: c.root.Tool("clang"), Args: slices.Concat(flags, more), Dir: checkout}.Run(ctx)
		if err != nil {
			return found, compileError(cxx.Explain(header, err))
		}
		return found, nil
	}
	text, err := clang("-E", header)
	if err != nil {
		return nil, err
	}
	sum := builds.Digest(append(flags, string(text.Stdout))...)
	dir := filepath.Join(c.cache, "headers", builds.Digest(sum, checkout)[:24])
	if err := makeAndDropOld(dir, keptHeaders); err != nil {
		return nil, err
	}
	if made := filepath.Join(dir, "prefix.pch"); !builds.Exists(made) {
		// Without times: a snapshot that is made again is the same one.
		if _, err := clang("-x", "objective-c++-header", "-fpch-instantiate-templates", "-Xclang", "-fno-pch-timestamp", header, "-o", made+".new"); err != nil {
			return nil, err
		}
		if err := errors.Join(os.WriteFile(made+".sum", []byte(sum), 0o644), os.Rename(made+".new", made)); err != nil {
			return nil, fmt.Errorf("keep a precompiled header: %w", err)
		}
	}
	current := filepath.Join(c.cache, "header")
	if err := os.Remove(current); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.Symlink(dir, current); err != nil {
		return nil, err
	}
	return []string{"-include-pch", filepath.Join(current, "prefix.pch"), "-Xclang", "-fno-pch-timestamp"}, nil
}
