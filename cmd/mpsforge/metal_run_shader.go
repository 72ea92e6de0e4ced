package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/msl"
	"mpsforge/native"
)

func metalRunShader(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "metal", name: "run-shader", usage: "run a Metal kernel on this machine's CPU", argument: "FILE",
		about: `FILE is in Metal's shading language. It is compiled for this machine with mpsforge's own headers, and the kernel runs once. Prints
what it wrote, and each access outside of its memory, race of two threads of the grid, barrier that not all threads reach, and
NaN that it wrote; exit code 4 if there is one, or if the kernel crashes or reaches its limit.

Every argument needs memory, by its name or buffer index. Memory without values is unset: of a floating-point type it is
NaN, so that results computed from it are visible. Textures and function constants are not supported.

The kernel is native code in a process with limits on time, memory, output and files. That is no sandbox: run only what you trust.
Linux only; the compiler is that of host builds, Debian's clang.

  mpsforge metal run-shader --list add.metal
  mpsforge metal run-shader --grid 64 --set a=0..63 --set b=1 --length b=64 --length out=64 add.metal
  mpsforge metal run-shader --kernel f_half --grid 16,4 --group 8,4 --file in=in.bin --length out=64 f.metal
  mpsforge metal run-shader --grid 64 --set n=64 --length out=64 --allow nan --limit 1m --json slow.metal`,
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "list", Usage: "list the file's kernels with their arguments, and run nothing"},
			&cli.StringFlag{Name: "kernel", Usage: "`KERNEL` to run, where the file has several"},
			&cli.StringFlag{Name: "grid", Usage: "`X[,Y[,Z]]` threads in all"},
			&cli.StringFlag{Name: "group", Usage: "`X[,Y[,Z]]` threads in a threadgroup (default: 32, or fewer if the grid has fewer)"},
			&cli.StringSliceFlag{Name: "set", Usage: "values of an argument, `NAME=LIST`, such as 1,2.5,nan or 0..63; they are repeated up to its length"},
			&cli.StringSliceFlag{Name: "length", Usage: "elements of an argument, `NAME=N`"},
			&cli.StringSliceFlag{Name: "file", Usage: "file with the bytes of an argument, `NAME=FILE`"},
			&cli.StringSliceFlag{Name: "type", Usage: "type of an argument's elements, where it is a struct or void, `NAME=TYPE`"},
			&cli.StringSliceFlag{Name: "define", Usage: "macro for the compiler, `NAME[=VALUE]`"},
			&cli.StringSliceFlag{Name: "allow", Usage: "do not look for `WHAT`: race or nan"},
			&cli.DurationFlag{Name: "limit", Value: 10 * time.Second, Usage: "`TIME` that the kernel may take"},
			&cli.IntFlag{Name: "values", Value: 16, Usage: "print `N` values of each argument, 0 for all; --json has all"},
			rootFlag(),
		},
		action: func(ctx context.Context, c call) (result, error) { return c.runShader(ctx) },
	})
}

func (c call) runShader(ctx context.Context) (result, error) {
	dispatch, err := c.dispatch()
	if err != nil {
		return result{}, err
	}
	cache, err := openCache()
	if err != nil {
		return result{}, err
	}
	root, err := host.OpenRoot(ctx, c.String("root"), cache, c.sink)
	if err != nil {
		return result{}, err
	}
	runner, err := msl.Open(ctx, root, cache, native.Sources, c.sink)
	if err != nil {
		return result{}, err
	}
	library, err := runner.Compile(ctx, c.Args().First(), c.StringSlice("define"), c.Duration("limit"))
	if err != nil {
		return result{}, err
	}
	if c.Bool("list") {
		return result{value: library.Kernels, message: fmt.Sprintf("kernels: %d", len(library.Kernels)),
			text: func(w io.Writer) { printKernels(w, library.Kernels) }}, nil
	}
	found, err := library.Run(ctx, dispatch)
	if err != nil {
		return result{}, err
	}
	message := fmt.Sprintf("findings: %d", len(found.Findings)+found.More)
	made := result{value: found, message: message, text: func(w io.Writer) { printShaderRun(w, found, c.Int("values"), message) }}
	if len(found.Findings) > 0 {
		return made, silentError{exitVerify, message}
	}
	return made, nil
}

// dispatch reads the flags.
func (c call) dispatch() (msl.Dispatch, error) {
	d := msl.Dispatch{Kernel: c.String("kernel"), Memory: map[string]msl.Memory{}}
	if c.Duration("limit") < time.Second {
		return d, usagef("--limit is at least 1s")
	}
	allowed := c.StringSlice("allow")
	for _, what := range allowed {
		if what != msl.KindRace && what != msl.KindNaN {
			return d, usagef("--allow takes %s and %s, not %q", msl.KindRace, msl.KindNaN, what)
		}
	}
	d.Races, d.NaN = !slices.Contains(allowed, msl.KindRace), !slices.Contains(allowed, msl.KindNaN)
	for _, flag := range []string{"set", "length", "file", "type"} {
		for _, given := range c.assignments(flag) {
			name, value, ok := strings.Cut(given, "=")
			if !ok || name == "" || value == "" {
				return d, usagef("--%s %q is not NAME=%s", flag, given, strings.ToUpper(flag))
			}
			m := d.Memory[name]
			switch flag {
			case "set":
				m.Values = value
			case "file":
				m.File = value
			case "type":
				m.Type = value
			case "length":
				length, err := strconv.Atoi(value)
				if err != nil || length < 1 {
					return d, usagef("--length %q: not a number of elements", given)
				}
				m.Length = length
			}
			d.Memory[name] = m
		}
	}
	var err error
	if d.Grid, err = c.dimensions("grid"); err != nil || c.Bool("list") {
		return d, err
	}
	if len(d.Grid) == 0 {
		return d, usagef("metal run-shader needs --grid, or --list")
	}
	if d.Group, err = c.dimensions("group"); err == nil && len(d.Group) == 0 {
		d.Group = []int{min(32, d.Grid[0])}
	}
	return d, err
}

// assignments gives a flag's NAME=VALUE, whose values may have commas, at which the flag was split.
func (c call) assignments(flag string) []string {
	var all []string
	for _, part := range c.StringSlice(flag) {
		if len(all) > 0 && !strings.Contains(part, "=") {
			all[len(all)-1] += "," + part
			continue
		}
		all = append(all, part)
	}
	return all
}

func (c call) dimensions(flag string) ([]int, error) {
	var all []int
	for _, word := range strings.FieldsFunc(c.String(flag), func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, usagef("--%s %q is not X[,Y[,Z]]", flag, c.String(flag))
		}
		all = append(all, n)
	}
	return all, nil
}

func printKernels(w io.Writer, kernels []msl.Kernel) {
	for _, kernel := range kernels {
		fmt.Fprintln(w, kernel.Name)
		for _, a := range kernel.Arguments {
			what, access := "buffer", "read"
			if a.Written {
				access = "written"
			}
			if a.Threadgroup {
				what, access = "threadgroup", "shared"
			}
			typeName := a.Type
			if typeName == "" {
				typeName = fmt.Sprintf("struct of %d bytes", a.Size)
			}
			fmt.Fprintf(w, "  %-11s %2d  %-14s %-8s %s\n", what, a.Index, a.Name, access, typeName)
		}
	}
}

func printShaderRun(w io.Writer, found *msl.Result, most int, message string) {
	for _, written := range found.Written {
		shown := written.Values
		if most > 0 && len(shown) > most {
			shown = shown[:most]
		}
		fmt.Fprintf(w, "%s = %s", written.Argument, strings.Trim(fmt.Sprint(shown), "[]"))
		if more := len(written.Values) - len(shown); more > 0 {
			fmt.Fprintf(w, " and %d more", more)
		}
		fmt.Fprintln(w)
	}
	for _, finding := range found.Findings {
		where := found.File
		if finding.Line > 0 {
			where = fmt.Sprintf("%s:%d", finding.File, finding.Line)
		}
		fmt.Fprintf(w, "%s: %s: kernel %s: %s\n", where, finding.Kind, found.Kernel, finding.Text)
	}
	fmt.Fprintf(w, "%s, %s\n", found.Kernel, message)
}
