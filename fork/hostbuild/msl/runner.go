package msl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

var (
	// ErrRequest is returned, wrapped, for a dispatch that the kernel or these checks do not allow.
	ErrRequest = errors.New("the kernel cannot be run this way")
	// ErrSource is returned, wrapped, for a file that does not compile; the text has its lines.
	ErrSource = errors.New("does not compile")
)

const (
	mostSource   = 4 << 20   // bytes of a file
	mostMemory   = 256 << 20 // bytes of all arguments
	mostWritten  = 1 << 20   // bytes that a kernel's process may print itself
	mostGroup    = 1024      // threads of a threadgroup
	compileLimit = 5 * time.Minute
	loadLimit    = 10 * time.Second
	graceAfter   = 3 * time.Second // that a process has to end by itself after its limit
)

// Runner runs kernels of files.
type Runner struct {
	root               *host.Root
	program, toolchain string
}

// Open makes what is needed, unless the cache has it.
func Open(ctx context.Context, root *host.Root, cache string, native fs.FS, sink events.Sink) (*Runner, error) {
	program, toolchain, err := host.ShaderRunner(ctx, root, cache, native, sink)
	if err != nil {
		return nil, err
	}
	return &Runner{root: root, program: program, toolchain: toolchain}, nil
}

// Library is a compiled file.
type Library struct {
	Kernels []Kernel
	runner  *Runner
	file    string
	path    string
	limit   time.Duration
}

// Kernel is one of a file.
type Kernel struct {
	Name      string     `json:"name"`
	Arguments []Argument `json:"arguments"` // without what each thread is given, such as its position
}

// Argument is memory of a kernel.
type Argument struct {
	Name        string `json:"name"`
	Index       int    `json:"index"` // of the buffer, or of the threadgroup's memory
	Threadgroup bool   `json:"threadgroup,omitempty"`
	Written     bool   `json:"written"`        // not const
	Type        string `json:"type,omitempty"` // of an element; empty for structs and void
	Size        int    `json:"size"`           // of an element, 0: not known
	place       int
}

// Compile compiles a file; defines are NAME or NAME=VALUE. Each process of its kernels may run for so long.
func (r *Runner) Compile(ctx context.Context, file string, defines []string, limit time.Duration) (*Library, error) {
	if info, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("read the shader: %w", err)
	} else if !info.Mode().IsRegular() || info.Size() > mostSource {
		return nil, fmt.Errorf("%w: %s is not a file of at most %d MiB", ErrRequest, file, mostSource>>20)
	}
	bounded, cancel := context.WithTimeout(ctx, compileLimit)
	defer cancel()
	result, err := run.Command{Name: r.program, Args: append([]string{"compile", r.toolchain, file}, defines...)}.Run(bounded)
	if failure := (*run.Error)(nil); errors.As(err, &failure) && failure.ExitCode == exitAnswered {
		return nil, fmt.Errorf("%s %w:\n%s", file, ErrSource, strings.TrimSpace(inFile(string(result.Stdout), file)))
	}
	if err != nil {
		return nil, err
	}
	l := &Library{runner: r, file: file, path: string(result.Stdout), limit: limit}
	ended, err := l.start(ctx, "list", nil, mostSource, max(limit, loadLimit))
	if err != nil {
		return nil, err
	}
	if ended.finding != nil {
		return nil, fmt.Errorf("%s: when its library is loaded: %s", file, ended.finding.Text)
	}
	l.Kernels, err = parseKernels(string(ended.answer))
	if err == nil && len(l.Kernels) == 0 {
		err = fmt.Errorf("%w: %s has no kernel", ErrRequest, file)
	}
	return l, err
}

// exitAnswered is the exit code of the program when it says what is wrong on standard output.
const exitAnswered = 3

// sourceName is what the compiler calls the file.
const sourceName = "program_source"

func inFile(text, file string) string {
	return regexp.MustCompile(`(?m)^`+sourceName+`:`).ReplaceAllLiteralString(text, file+":")
}

func parseKernels(text string) ([]Kernel, error) {
	var kernels []Kernel
	place := 0
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[0] == "kernel":
			kernels, place = append(kernels, Kernel{Name: fields[1]}), 0
		case len(fields) >= 6 && fields[0] == "argument" && len(kernels) > 0:
			numbers, err := atoi(fields[1:5])
			if err != nil {
				return nil, fmt.Errorf("read what the kernels are: %w", err)
			}
			const threadgroup, position = 1, 2 // mpsforge::shaders::ArgumentKind
			if numbers[0] != position {
				a := Argument{Index: numbers[1], Threadgroup: numbers[0] == threadgroup, Written: numbers[2]&accessWrite != 0, Size: numbers[3], place: place}
				if fields[5] != "-" {
					a.Type = fields[5]
				}
				a.Name = strconv.Itoa(a.Index)
				if len(fields) > 6 {
					a.Name = fields[6]
				}
				kernels[len(kernels)-1].Arguments = append(kernels[len(kernels)-1].Arguments, a)
			}
			place++
		default:
			return nil, fmt.Errorf("read what the kernels are: %q", line)
		}
	}
	return kernels, nil
}

func atoi(words []string) ([]int, error) {
	var numbers []int
	for _, word := range words {
		number, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, int(number))
	}
	return numbers, nil
}

// ended is what a process of the library's code left: its answer, and what ended it early, if something did.
type ended struct {
	answer  []byte
	finding *Finding
}

// capped keeps what is written, and calls full when that is more than most.
type capped struct {
	bytes.Buffer
	most int
	full func()
}

func (c *capped) Write(data []byte) (int, error) {
	if c.Len()+len(data) > c.most {
		c.full()
		return len(data), nil
	}
	return c.Buffer.Write(data)
}

var errFlood = errors.New("the process writes too much")

// start runs the library's code in a process with limits.
func (l *Library) start(ctx context.Context, what string, request []byte, most int, limit time.Duration) (ended, error) {
	flooded, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	bounded, cancel := context.WithTimeout(flooded, limit+graceAfter)
	defer cancel()
	full := func() { stop(errFlood) }
	answer, said := &capped{most: most, full: full}, &capped{most: mostWritten, full: full}
	seconds := strconv.Itoa(max(1, int(limit.Seconds())))
	_, err := run.Command{Name: l.runner.program, Args: []string{what, seconds, l.path}, Env: []string{}, Stdin: bytes.NewReader(request),
		Stdout: answer, Stderr: said}.Run(bounded)
	if ctx.Err() != nil {
		return ended{}, ctx.Err()
	}
	result := ended{answer: answer.Bytes()}
	failure := (*run.Error)(nil)
	switch {
	case err == nil:
	case errors.Is(context.Cause(flooded), errFlood):
		result.finding = &Finding{Kind: KindOutput, Text: fmt.Sprintf("the kernel's process wrote more than %d MiB, and was stopped", mostWritten>>20)}
	case bounded.Err() != nil:
		result.finding = &Finding{Kind: KindTime, Text: timeText(limit)}
	case errors.As(err, &failure) && failure.ExitCode == exitAnswered: // the answer ends with the signal
	case errors.As(err, &failure) && failure.ExitCode < 0:
		result.finding = &Finding{Kind: KindCrash, Text: fmt.Sprintf("the kernel's process ended by %v", failure.Err)}
	default:
		return ended{}, err
	}
	return result, nil
}

func timeText(limit time.Duration) string {
	return fmt.Sprintf("the kernel ran for %v, its limit", limit)
}
