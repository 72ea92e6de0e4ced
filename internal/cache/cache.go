// Package cache lists and cleans the folders in which mpsforge keeps what it fetched and made.
//
// Other packages write there, each to a folder of its own; this one has only the names of the folders. A folder that is not listed below
// is not removed.
package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mpsforge/internal/fault"
)

// Kind is one folder of the cache.
type Kind struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// Kinds lists the folders that mpsforge makes, in the order of their names.
func Kinds() []Kind {
	return []Kind{
		{"ccache", "compiled objects of host builds"},
		{"debian", "Debian's package lists and packages"},
		{"generated", "sources that PyTorch's torchgen has written"},
		{"header", "the precompiled header of PyTorch's sources that compilers see"},
		{"header-backend", "the same of the parts of the backend that they add"},
		{"header-glue", "the same of what host builds add to them"},
		{"header-glue-bare", "the same of what ThreadSanitizer is not to see"},
		{"headers", "precompiled headers of host builds"},
		{"hosts", "host builds"},
		{"logs", "logs of long commands"},
		{"mac", "headers and objects of stage mac"},
		{"msl", "Metal shaders that were compiled from source at run time"},
		{"mypy", "the cache of mypy"},
		{"native", "compiled engines of mpsforge"},
		{"operators", "results of unfinished long runs of the stage operators"},
		{"pycache", "compiled Python"},
		{"reports", "reports of verify"},
		{"roots", "Debian systems with the compilers of host builds"},
		{"runners", "the program that runs kernels of Metal source files"},
		{"runtime", "results of unfinished runs of the stage runtime that leave patches out"},
		{"shaders", "PyTorch's Metal kernels, translated for this machine"},
		{"snapshots", "PyTorch trees as git objects, for fetch"},
		{"sources", "source packages of PyTorch"},
		{"tools", "checkers of C++ and Python"},
		{"torch", "libtorchs that were built for CUDA, with stand-ins for it"},
		{"trees", "checkouts that make demo and the tests use"},
		{"unpacked", "embedded sources and scripts, unpacked"},
		{"upstream", "results of unfinished long runs of the stage upstream"},
		{"wheels", "parts of wheels: PyTorch's for macOS and Linux, and those that tests import"},
	}
}

// ErrNotOurs is returned, wrapped, for a folder without the mark that Mark leaves.
var ErrNotOurs = errors.New("not a cache of mpsforge")

// tag is the file that marks a cache folder for backup programs (https://bford.info/cachedir/), and for Clean.
const (
	tag       = "CACHEDIR.TAG"
	signature = "Signature: 8a477f597d28d172789f06886806bc55\n"
	owner     = "# This folder is the cache of mpsforge; mpsforge cache shows and cleans it.\n"
)

// Mark makes the folder if there is none and leaves a file in it by which Clean knows it. A folder that already holds something
// else gets no mark.
func Mark(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the cache folder: %w; set MPSFORGE_CACHE to a folder that can be written", err)
	}
	if marked(dir) {
		return nil
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the cache folder: %w", err)
	}
	path := filepath.Join(dir, tag)
	for _, entry := range found {
		name := entry.Name()
		if !known(name) && !strings.HasSuffix(name, ".lock") && !(name == tag && partOfMark(path)) {
			return nil
		}
	}
	if err := os.WriteFile(path, []byte(signature+owner), 0o644); err != nil {
		_ = os.Remove(path) // there may be none; a part of a mark would be no harm
		return fmt.Errorf("mark the cache folder: %w", err)
	}
	return nil
}

func marked(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, tag))
	return err == nil && string(text) == signature+owner
}

// partOfMark says whether the file is what a run that was killed may have left of the mark.
func partOfMark(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.HasPrefix(signature+owner, string(text))
}

// CheckOurs refuses a folder without the mark that Mark leaves.
func CheckOurs(dir string) error {
	if !marked(dir) {
		return fmt.Errorf("%w: %s has no %s from mpsforge; if it is one, mpsforge verify marks it", ErrNotOurs, dir, tag)
	}
	return nil
}

func known(name string) bool {
	return slices.ContainsFunc(Kinds(), func(k Kind) bool { return k.Name == name })
}

// Entry is one file or folder of a kind; Used is when it was last written to.
type Entry struct {
	Kind  string    `json:"kind"`
	Path  string    `json:"path"` // below the cache folder
	Bytes int64     `json:"bytes"`
	Used  time.Time `json:"used"`
}

// List measures what is in the cache, by kind and name. Links are counted as such and never followed. A cache that does not
// exist is empty.
func List(ctx context.Context, dir string) ([]Entry, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("open the cache folder: %w", err)
	}
	defer root.Close()
	var all []Entry
	for _, kind := range Kinds() {
		info, err := root.Lstat(kind.Name)
		if err != nil || !info.IsDir() { // a link is not ours
			continue
		}
		found, err := fs.ReadDir(root.FS(), kind.Name)
		if err != nil {
			return nil, fmt.Errorf("read the cache: %w", err)
		}
		for _, one := range found {
			entry := Entry{Kind: kind.Name, Path: kind.Name + "/" + one.Name()}
			if err := entry.measure(ctx, root.FS()); err != nil {
				return nil, err
			}
			all = append(all, entry)
		}
	}
	return all, nil
}

// measure sums up the files; what vanishes meanwhile counts nothing.
func (e *Entry) measure(ctx context.Context, files fs.FS) error {
	return fs.WalkDir(files, e.Path, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil //nolint:nilerr // it has gone, or may not be read: it is not counted
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // it has gone
		}
		e.Bytes += info.Size()
		if info.ModTime().After(e.Used) {
			e.Used = info.ModTime()
		}
		return nil
	})
}

// Unused gives those of the entries that are of one of the kinds, or of any if none is named, and have not been written to for
// so long; the largest come first.
func Unused(entries []Entry, kinds []string, age time.Duration) []Entry {
	before := time.Now().Add(-age)
	chosen := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
		return len(kinds) > 0 && !slices.Contains(kinds, e.Kind) || e.Used.After(before)
	})
	slices.SortStableFunc(chosen, func(a, b Entry) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return chosen
}

// Remove removes entries of a cache folder that carries its mark, one after another, and gives those that it removed. Nothing
// outside of the folder is reached, whatever links there are.
func Remove(ctx context.Context, dir string, entries []Entry) ([]Entry, error) {
	if err := CheckOurs(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cache folder: %w", err)
	}
	defer root.Close()
	for i, entry := range entries {
		if err := ctx.Err(); err != nil {
			return entries[:i], err
		}
		info, err := root.Lstat(entry.Kind)
		if err != nil || !info.IsDir() || !known(entry.Kind) {
			return entries[:i], fmt.Errorf("remove %s: %w: %s is not a folder of it", entry.Path, ErrNotOurs, entry.Kind)
		}
		if err := root.RemoveAll(entry.Path); err != nil {
			return entries[:i], fmt.Errorf("remove from the cache: %w", err)
		}
		fault.Point()
	}
	return entries, nil
}
