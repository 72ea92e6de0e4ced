package cxx

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mpsforge/internal/run"
)

// Unit is one source file to compile.
type Unit struct {
	Dir   string // the compiler runs there; path, flags and object may be relative to it
	Path  string
	Flags []string
	// Prefix are flags that bring in a precompiled header. They come before the others; a source that does not compile with them
	// is compiled without.
	Prefix []string
	Object string
}

// Toolchain is how a compiler is started.
type Toolchain struct {
	Compiler string
	Launcher string                    // what runs the compiler, such as ccache; empty for none
	Environ  func(dir string) []string // of a command that runs in a folder; nil: this process's
	Jobs     int                       // compilers at once; 0: one for each processor
	Limit    time.Duration             // of one command; 0: none
	// Written is given what the compiler wrote of a source that compiled, its warnings; may be nil. Calls overlap.
	Written func(u Unit, text string)
	// Plan, unless nil, is given each command in the place of running it, without the launcher and without precompiled headers.
	Plan func(command run.Command)
}

// Compile compiles the units. After the first error no further unit is started; it is the error returned. report, if it is not
// nil, hears of each unit that is done; its calls do not overlap.
func (t Toolchain) Compile(ctx context.Context, units []Unit, report func(u Unit, done int, err error)) error {
	jobs := t.Jobs
	if jobs <= 0 {
		jobs = runtime.NumCPU()
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	var guard sync.Mutex
	done := 0
	for _, u := range units {
		group.Go(func() error {
			if err := limited.Err(); err != nil {
				return err
			}
			err := t.compileOne(limited, u)
			guard.Lock()
			defer guard.Unlock()
			done++
			if report != nil {
				report(u, done, err)
			}
			return err
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

func (t Toolchain) compileOne(ctx context.Context, u Unit) error {
	args := append(append([]string{}, u.Flags...), "-c", u.Path, "-o", u.Object)
	if t.Plan != nil {
		t.Plan(run.Command{Name: t.Compiler, Args: args, Dir: u.Dir})
		return nil
	}
	object := u.Object
	if !filepath.IsAbs(object) {
		object = filepath.Join(u.Dir, object)
	}
	if err := os.MkdirAll(filepath.Dir(object), 0o755); err != nil {
		return err
	}
	if len(u.Prefix) > 0 {
		if text, err := t.start(ctx, u.Path, u.Dir, t.Launcher, append(slices.Clone(u.Prefix), args...)); err == nil || ctx.Err() != nil {
			t.written(u, text)
			return err
		}
	}
	text, err := t.start(ctx, u.Path, u.Dir, t.Launcher, args)
	t.written(u, text)
	return err
}

func (t Toolchain) written(u Unit, text string) {
	if t.Written != nil && text != "" {
		t.Written(u, text)
	}
}

// Link has the compiler link; args are its whole command line, and dir is where it runs.
func (t Toolchain) Link(ctx context.Context, what, dir string, args []string) error {
	_, err := t.start(ctx, what, dir, "", args)
	return err
}

// start gives what the program wrote to standard error, if it ended well.
func (t Toolchain) start(ctx context.Context, what, dir, launcher string, args []string) (string, error) {
	command := run.Command{Name: t.Compiler, Args: args, Dir: dir}
	if launcher != "" {
		command.Name, command.Args = launcher, append([]string{t.Compiler}, args...)
	}
	if t.Environ != nil {
		command.Env = t.Environ(dir)
	}
	if t.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, t.Limit)
		defer cancel()
		ctx = limited
	}
	result, err := command.Run(ctx)
	if err != nil {
		return "", Explain(what, err)
	}
	return string(result.Stderr), nil
}

// Error is a command of a compiler or linker that failed.
type Error struct {
	What  string // the source, or the output
	First string // the first error in the compiler's words, with its place; empty where it named none or was interrupted
	err   error
}

func (e *Error) Error() string {
	if e.First == "" {
		return e.What + ": " + e.err.Error()
	}
	return e.What + ": " + e.First + ": " + e.err.Error()
}

func (e *Error) Unwrap() error { return e.err }

var firstErrorLine = regexp.MustCompile(`(?m)^.*(?:fatal )?error: .*$`)

// Explain makes an Error of how a command ended.
func Explain(what string, err error) error {
	found := &Error{What: what, err: err}
	if failure := (*run.Error)(nil); errors.As(err, &failure) && !errors.Is(err, context.Canceled) {
		found.First = firstErrorLine.FindString(failure.Stderr)
	}
	return found
}
