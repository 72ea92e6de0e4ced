package validate

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
)

// compileTimeout only detects a compiler that hangs.
const compileTimeout = 5 * time.Minute

// compiler is what findCompiler found out.
type compiler struct {
	path    string
	version string // the first line of what it says about itself
	err     error  // not nil: there is none that does
	thread  error  // not nil: why ThreadSanitizer does not work
	address error  // not nil: why AddressSanitizer does not work
}

// findCompiler looks for $CXX, else for the first of c++, g++ and clang++, and tries what it can do. The probes are kept
// in the cache.
func findCompiler(ctx context.Context, cache string) compiler {
	names := []string{"c++", "g++", "clang++"}
	if named := os.Getenv("CXX"); named != "" {
		names = []string{named}
	}
	var c compiler
	for _, name := range names {
		if c.path, c.err = exec.LookPath(name); c.err == nil {
			break
		}
	}
	if c.err != nil {
		c.err = fmt.Errorf("no C++ compiler: none of %s is there: %w", strings.Join(names, ", "), c.err)
		return c
	}
	result, err := run.Command{Name: c.path, Args: []string{"--version"}}.Run(ctx)
	if err != nil {
		c.err = err
		return c
	}
	c.version, _, _ = strings.Cut(string(result.Stdout), "\n")
	builder := subjectBuilder{cache: cache, compiler: c}
	probe := func(kind flavour) error {
		program, err := builder.build(ctx, target{kind, []source{{"probe.cc", []byte("#include <string_view>\nint main() { return 0; }\n")}}, nil})
		if err != nil {
			return err
		}
		_, err = run.Command{Name: program}.Run(ctx)
		return err
	}
	if c.err = probe(program); c.err == nil {
		c.thread, c.address = probe(threadProgram), probe(addressProgram)
	}
	return c
}

// flavour is a way to compile.
type flavour struct {
	name  string
	flags []string
}

var (
	library        = flavour{"subject.so", []string{"-O2", "-shared", "-fPIC"}}
	program        = flavour{"program", []string{"-O2"}}
	threadProgram  = flavour{"thread-sanitizer", []string{"-O1", "-fsanitize=thread"}}
	addressProgram = flavour{"address-sanitizer", []string{"-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"}}
)

// sanitizer is a flavour of program that reports what it finds by an exit code of its own.
type sanitizer struct {
	name, finding string
	flavour       flavour
	exit          int
	environment   []string
}

var (
	threadSanitizer  = sanitizer{"ThreadSanitizer", "data race", threadProgram, 66, []string{"TSAN_OPTIONS=halt_on_error=1 exitcode=66"}}
	addressSanitizer = sanitizer{"AddressSanitizer", "memory error or undefined behaviour", addressProgram, 67, []string{"ASAN_OPTIONS=exitcode=67", "UBSAN_OPTIONS=print_stacktrace=1 exitcode=67"}}
)

// commonFlags come first for every flavour. Hidden visibility keeps the inline functions of several loaded subjects
// apart.
var commonFlags = []string{"-std=c++17", "-Wall", "-Wextra", "-g", "-pthread", "-fvisibility=hidden", "-Isrc", "-Isrc/include"}

// source is a file to compile, or a header, by its path below the source folder.
type source struct {
	path string
	data []byte
}

// target is something to build.
type target struct {
	flavour flavour
	sources []source
	flags   []string // besides those of the flavour
}

// subjectBuilder compiles into a cache whose folders are named after everything that the result depends on, so that
// nothing is compiled twice and nothing stale is ever used.
type subjectBuilder struct {
	cache    string
	compiler compiler
}

// build returns the path of the compiled target. Sources are compiled one by one, so that a change of one leaves the
// others in the cache.
func (b *subjectBuilder) build(ctx context.Context, t target) (string, error) {
	flags := append(append(append([]string{}, commonFlags...), t.flavour.flags...), t.flags...)
	var headers, units []source
	for _, file := range t.sources {
		if strings.HasSuffix(file.path, ".cc") {
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
			args := append(append([]string{}, flags...), "-c", "src/"+unit.path, "-o", "object.o")
			objects[i], problems[i] = b.cached(ctx, "object.o", args, append(slices.Clone(headers), unit))
		})
	}
	done.Wait()
	if err := errors.Join(problems...); err != nil {
		return "", err
	}
	return b.cached(ctx, t.flavour.name, append(append(flags, objects...), "-o", t.flavour.name, "-ldl"), nil)
}

// cached returns the path of the file that the compiler writes with these arguments from these sources.
func (b *subjectBuilder) cached(ctx context.Context, name string, args []string, sources []source) (string, error) {
	digest := sha256.New()
	add := func(data []byte) { fmt.Fprintf(digest, "%d:%s", len(data), data) }
	add([]byte(b.compiler.path))
	add([]byte(b.compiler.version))
	for _, arg := range args {
		add([]byte(arg))
	}
	for _, file := range sources {
		add([]byte(file.path))
		add(file.data)
	}
	root, err := filepath.Abs(filepath.Join(b.cache, "native"))
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
func (b *subjectBuilder) compile(ctx context.Context, root, folder string, args []string, sources []source) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	temporary, err := os.MkdirTemp(root, "building-")
	if err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	defer os.RemoveAll(temporary)
	for _, file := range sources {
		path := filepath.Join(temporary, "src", filepath.FromSlash(file.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("cache folder: %w", err)
		}
		if err := os.WriteFile(path, file.data, 0o644); err != nil {
			return fmt.Errorf("cache folder: %w", err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	command := run.Command{Name: b.compiler.path, Args: args, Dir: temporary}
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
