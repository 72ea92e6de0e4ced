package cxx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"mpsforge/internal/run"
	"mpsforge/internal/words"
)

// compileTimeout only detects a compiler that hangs.
const compileTimeout = 5 * time.Minute

// Compiler is what findCompiler found out.
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
	AddressSanitizer = Sanitizer{"AddressSanitizer", "memory error or undefined behaviour", AddressProgram, 67, []string{"ASAN_OPTIONS=exitcode=67", "UBSAN_OPTIONS=print_stacktrace=1 exitcode=67"}}
)

// commonFlags come first for every flavour. Hidden visibility keeps the inline functions of several loaded subjects
// apart.
var commonFlags = []string{"-std=c++17", "-Wall", "-Wextra", "-g", "-pthread", "-fvisibility=hidden", "-Isrc", "-Isrc/include"}

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
	flags := append(append(append([]string{}, commonFlags...), t.Flavour.flags...), t.Flags...)
	var headers, units []Source
	for _, file := range t.Sources {
		if strings.HasSuffix(file.Path, ".cc") {
			units = append(units, file)
		} else {
			headers = append(headers, file)
		}
	}
	objects := make([]string, len(units))
	problems := make([]error, len(units))
	var done sync.WaitGroup
	processors := make(chan struct{}, runtime.NumCPU())
	for i, unit := range units {
		done.Go(func() {
			processors <- struct{}{}
			defer func() { <-processors }()
			args := append(append([]string{}, flags...), "-c", "src/"+unit.Path, "-o", "object.o")
			objects[i], problems[i] = b.cached(ctx, "object.o", args, append(slices.Clone(headers), unit))
		})
	}
	done.Wait()
	if err := errors.Join(problems...); err != nil {
		return "", err
	}
	return b.cached(ctx, t.Flavour.Name, append(append(flags, objects...), "-o", t.Flavour.Name, "-ldl"), nil)
}

// cached returns the path of the file that the compiler writes with these arguments from these sources.
func (b *Builder) cached(ctx context.Context, name string, args []string, sources []Source) (string, error) {
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
		return "", fmt.Errorf("cache folder: %w", err)
	}
	folder := filepath.Join(root, hex.EncodeToString(digest.Sum(nil)))
	result := filepath.Join(folder, name)
	if _, err := os.Stat(result); err == nil {
		return result, nil
	}
	if err := b.compile(ctx, root, folder, args, sources); err != nil {
		return "", err
	}
	return result, nil
}

// compile builds in a folder of a temporary name and moves it into place whole.
func (b *Builder) compile(ctx context.Context, root, folder string, args []string, sources []Source) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	temporary, err := os.MkdirTemp(root, "building-")
	if err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	defer os.RemoveAll(temporary)
	for _, file := range sources {
		path := filepath.Join(temporary, "src", filepath.FromSlash(file.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("cache folder: %w", err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			return fmt.Errorf("cache folder: %w", err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	command := run.Command{Name: b.Compiler.path, Args: args, Dir: temporary}
	if _, err := command.Run(limited); err != nil {
		return compileError(err)
	}
	if err := os.Rename(temporary, folder); err != nil {
		// Another process may have been faster with the same content.
		if _, statErr := os.Stat(folder); statErr != nil {
			return fmt.Errorf("cache folder: %w", err)
		}
	}
	return nil
}

var firstErrorLine = regexp.MustCompile(`(?m)^.*: (?:fatal )?error: .*$`)

// compileError puts the first error, with its file and line, before the compiler's command and last words.
func compileError(err error) error {
	if failure := (*run.Error)(nil); errors.As(err, &failure) {
		if line := firstErrorLine.FindString(failure.Stderr); line != "" {
			return fmt.Errorf("compile: %s: %w", line, err)
		}
	}
	return fmt.Errorf("compile: %w", err)
}
