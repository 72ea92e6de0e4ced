// Package cxx compiles small C++ programs and libraries with this machine's compiler, into a cache named after all that goes in.
// It knows nothing of PyTorch or of what it compiles; host builds have a compiler of their own.
package cxx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"mpsforge/internal/run"
	"mpsforge/internal/words"
)

// compileTimeout only detects a compiler that hangs.
const compileTimeout = 5 * time.Minute

// Compiler is what Find found out.
type Compiler struct {
	path    string
	Version string // the first line of what it says about itself
	Err     error  // not nil: there is none that does
	Thread  error  // not nil: why ThreadSanitizer does not work
	Address error  // not nil: why AddressSanitizer does not work
}

// Find looks for $CXX, else for the first of c++, g++ and clang++, and tries what it can do. The probes are kept
// in the cache.
func Find(ctx context.Context, cache string) Compiler {
	names := []string{"c++", "g++", "clang++"}
	if named := os.Getenv("CXX"); named != "" {
		names = []string{named}
	}
	var c Compiler
	for _, name := range names {
		if c.path, c.Err = exec.LookPath(name); c.Err == nil {
			break
		}
	}
	if c.Err != nil {
		c.Err = fmt.Errorf("no C++ compiler: none of %s is there: %w", strings.Join(names, ", "), c.Err)
		return c
	}
	result, err := run.Command{Name: c.path, Args: []string{"--version"}}.Run(ctx)
	if err != nil {
		c.Err = err
		return c
	}
	c.Version = words.FirstLine(string(result.Stdout))
	builder := Builder{Cache: cache, Compiler: c}
	probe := func(kind Flavour) error {
		program, err := builder.Build(ctx, Target{Flavour: kind, Sources: []Source{{"probe.cc", []byte("#include <string_view>\nint main() { return 0; }\n")}}})
		if err != nil {
			return err
		}
		_, err = run.Command{Name: program}.Run(ctx)
		return err
	}
	if c.Err = probe(Program); c.Err == nil {
		c.Thread, c.Address = probe(threadProgram), probe(AddressProgram)
	}
	return c
}

// Flavour is a way to compile.
type Flavour struct {
	Name  string
	flags []string
}

var (
	Library        = Flavour{"subject.so", []string{"-O2", "-shared", "-fPIC"}}
	Program        = Flavour{"program", []string{"-O2"}}
	threadProgram  = Flavour{"thread-sanitizer", []string{"-O1", "-fsanitize=thread"}}
	AddressProgram = Flavour{"address-sanitizer", []string{"-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"}}
)

// Sanitizer is a flavour of program that reports what it finds by an exit code of its own.
type Sanitizer struct {
	Name, Finding string
	Flavour       Flavour
	Exit          int
	Environment   []string
}

var (
	ThreadSanitizer  = Sanitizer{"ThreadSanitizer", "data race", threadProgram, 66, []string{"TSAN_OPTIONS=halt_on_error=1 exitcode=66"}}
	AddressSanitizer = Sanitizer{"AddressSanitizer", "memory error or undefined behaviour", AddressProgram, 67, []string{"ASAN_OPTIONS=exitcode=67",
		"UBSAN_OPTIONS=print_stacktrace=1 exitcode=67"}}
)

// commonFlags come first for every flavour. Hidden visibility keeps the inline functions of several loaded subjects
// apart.
var commonFlags = []string{"-std=c++17", "-Wall", "-Wextra", "-g1", "-pthread", "-fvisibility=hidden", "-Isrc", "-Isrc/include"}

// Source is a file to compile, or a header, by its path below the source folder.
type Source struct {
	Path string
	Data []byte
}

// Target is something to build.
type Target struct {
	Flavour Flavour
	Sources []Source
	Flags   []string // besides those of the flavour
}

// Builder compiles into a cache whose folders are named after everything that the result depends on, so that
// nothing is compiled twice and nothing stale is ever used.
type Builder struct {
	Cache    string // folder
	Compiler Compiler
}

// Build returns the path of the compiled target. Sources are compiled one by one, so that a change of one leaves the
// others in the cache.
func (b *Builder) Build(ctx context.Context, t Target) (string, error) {
	flags := slices.Concat(commonFlags, t.Flavour.flags, t.Flags)
	var headers, sources []Source
	for _, file := range t.Sources {
		if strings.HasSuffix(file.Path, ".cc") {
			sources = append(sources, file)
		} else {
			headers = append(headers, file)
		}
	}
	var objects []string
	var units []Unit
	making := map[string]place{} // by temporary folder
	defer func() {
		for temporary := range making {
			os.RemoveAll(temporary)
		}
	}()
	for _, source := range sources {
		p, err := b.placeOf("object.o", append(slices.Clone(flags), source.Path), append(includedBy(source, headers), source))
		if p.temporary != "" {
			making[p.temporary] = p
		}
		if err != nil {
			return "", err
		}
		objects = append(objects, p.result)
		if p.temporary != "" {
			units = append(units, Unit{Dir: p.temporary, Path: "src/" + source.Path, Flags: flags, Object: "object.o"})
		}
	}
	toolchain := Toolchain{Compiler: b.Compiler.path, Limit: compileTimeout}
	var kept error
	err := toolchain.Compile(ctx, units, func(u Unit, _ int, err error) {
		if err == nil {
			kept = errors.Join(kept, making[u.Dir].keep())
		}
	})
	if err != nil {
		return "", fmt.Errorf("compile %w", err)
	}
	if kept != nil {
		return "", kept
	}
	args := slices.Concat(flags, objects, []string{"-o", t.Flavour.Name, "-ldl"})
	p, err := b.placeOf(t.Flavour.Name, args, nil)
	if err != nil {
		return "", err
	}
	if p.temporary == "" {
		return p.result, nil
	}
	making[p.temporary] = p
	if err := toolchain.Link(ctx, t.Flavour.Name, p.temporary, args); err != nil {
		return "", fmt.Errorf("link %w", err)
	}
	return p.result, p.keep()
}

var include = regexp.MustCompile(`(?m)^\s*#\s*include\s+["<]([^">]+)[">]`)

// includedBy are those of the headers that a source may include, itself or through others, by the last part of their paths: a change of
// another header leaves its object in the cache.
func includedBy(source Source, headers []Source) (included []Source) {
	named := map[string]bool{}
	look := func(s Source) {
		for _, match := range include.FindAllSubmatch(s.Data, -1) {
			named[path.Base(string(match[1]))] = true
		}
	}
	look(source)
	left := headers
	for found := true; found; {
		found = false
		var others []Source
		for _, header := range left {
			if !named[path.Base(header.Path)] {
				others = append(others, header)
				continue
			}
			found = true
			included = append(included, header)
			look(header)
		}
		left = others
	}
	return included
}

// place is where a file that the compiler writes is kept: a folder named after all that the file depends on. One that is not
// there yet is made in a folder of a temporary name and moved into place whole.
type place struct {
	folder, temporary string // temporary is empty for what is there
	result            string
}

// placeOf finds the place of the file that is written with these arguments from these sources, and lays the sources out where
// it is not there yet.
func (b *Builder) placeOf(name string, args []string, sources []Source) (place, error) {
	digest := sha256.New()
	add := func(data []byte) { fmt.Fprintf(digest, "%d:%s", len(data), data) }
	add([]byte(b.Compiler.path))
	add([]byte(b.Compiler.Version))
	for _, arg := range args {
		add([]byte(arg))
	}
	for _, file := range sources {
		add([]byte(file.Path))
		add(file.Data)
	}
	root, err := filepath.Abs(filepath.Join(b.Cache, "native"))
	if err != nil {
		return place{}, fmt.Errorf("cache folder: %w", err)
	}
	p := place{folder: filepath.Join(root, hex.EncodeToString(digest.Sum(nil)))}
	p.result = filepath.Join(p.folder, name)
	if _, err := os.Stat(p.result); err == nil {
		return p, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return p, fmt.Errorf("cache folder: %w", err)
	}
	if p.temporary, err = os.MkdirTemp(root, "building-"); err != nil {
		return p, fmt.Errorf("cache folder: %w", err)
	}
	for _, file := range sources {
		path := filepath.Join(p.temporary, "src", filepath.FromSlash(file.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return p, fmt.Errorf("cache folder: %w", err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			return p, fmt.Errorf("cache folder: %w", err)
		}
	}
	return p, nil
}

// keep moves what was made into place.
func (p place) keep() error {
	if err := os.Rename(p.temporary, p.folder); err != nil {
		// Another process may have been faster with the same content.
		if _, statErr := os.Stat(p.folder); statErr != nil {
			return fmt.Errorf("cache folder: %w", err)
		}
	}
	return nil
}
