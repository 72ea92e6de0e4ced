package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/events"
	"mpsforge/validate/judge/trace"
)

func metalOrder(std streams) *cli.Command {
	return newCommand(std, spec{
		parent: "metal", name: "order", usage: "judge the order of memory accesses in traces", argument: "FILE...",
		about: `A second opinion on the software Metal's checker: a program that runs with MPSFORGE_METAL_TRACE=FOLDER in its environment,
on a host build, writes what it does to PID.trace there (docs/dev/trace.md). Each trace is judged by the rules of
docs/dev/spec/metal.md alone, and the result is compared with what the software Metal found by itself. FILE may be a
folder: then all its files *.trace are read. Exit code 4 if a race is found, or if the two differ.

  mkdir traces
  MPSFORGE_METAL_TRACE=$PWD/traces mpsforge verify --stages operators --quick
  mpsforge metal order traces
  mpsforge metal order --json traces/4711.trace`,
		action: func(ctx context.Context, c call) (result, error) {
			paths, err := tracesIn(c.Args().Slice())
			if err != nil {
				return result{}, err
			}
			const step = "judge"
			var all []judgedTrace
			counts := map[trace.Verdict]int{}
			accesses, races := 0, 0
			finish := events.Step(c.sink, step)
			for i, path := range paths {
				c.sink.Emit(events.StepProgress{Step: step, Done: int64(i), Total: int64(len(paths)), Unit: "traces", Note: filepath.Base(path)})
				judged, err := judgeTrace(path)
				if err := cmp.Or(ctx.Err(), err); err != nil {
					finish(events.Failed, "")
					return result{}, err
				}
				all = append(all, judged)
				for _, run := range judged.Runs {
					counts[run.Verdict()]++
					accesses += run.Accesses
					races += len(run.Races)
				}
			}
			finish(events.OK, "")
			summary := fmt.Sprintf("traces: %d, accesses: %d, races: %d; runs judged as by the software Metal: %d, otherwise: %d, not compared: %d",
				len(paths), accesses, races, counts[trace.Agree], counts[trace.Differ], counts[trace.NotJudged])
			found := result{value: all, message: summary, text: func(w io.Writer) {
				printTraces(w, all)
				fmt.Fprintln(w, summary)
			}}
			if races > 0 || counts[trace.Differ] > 0 {
				return found, silentError{exitVerify, found.message}
			}
			if accesses == 0 {
				return found, silentError{exitEnvironment,
					"nothing was judged: the traces have no access to memory; was the program run to its end with MPSFORGE_METAL_TRACE?"}
			}
			return found, nil
		},
	})
}

// judgedTrace is the value of --json for one file.
type judgedTrace struct {
	File string      `json:"file"`
	Runs []trace.Run `json:"runs"`
}

// tracesIn are the files named, and those of folders that are traces.
func tracesIn(named []string) ([]string, error) {
	var paths []string
	for _, path := range named {
		if err := checkInput("metal order", path); err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read traces: %w", err)
		}
		if !info.IsDir() {
			paths = append(paths, path)
			continue
		}
		inside, err := fs.Glob(os.DirFS(path), "*.trace")
		if err != nil {
			return nil, fmt.Errorf("read traces: %w", err)
		}
		if len(inside) == 0 {
			return nil, fmt.Errorf("read traces: %w: no file *.trace in %s", fs.ErrNotExist, path)
		}
		for _, name := range inside {
			paths = append(paths, filepath.Join(path, name))
		}
	}
	return paths, nil
}

func judgeTrace(path string) (judgedTrace, error) {
	file, err := os.Open(path)
	if err != nil {
		return judgedTrace{}, fmt.Errorf("read trace: %w", err)
	}
	runs, err := trace.Judge(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return judgedTrace{}, fmt.Errorf("%s: %w", path, err)
	}
	return judgedTrace{path, runs}, nil
}

func printTraces(w io.Writer, all []judgedTrace) {
	for _, judged := range all {
		for _, run := range judged.Runs {
			for _, race := range run.Races {
				fmt.Fprintf(w, "%s: race: %s\n", judged.File, race)
			}
			switch {
			case run.Problem != "":
				fmt.Fprintf(w, "%s: not judged: %s\n", judged.File, run.Problem)
			case run.Engine == nil:
				fmt.Fprintf(w, "%s: it breaks off: what the software Metal found is not known\n", judged.File)
			case run.Engine.Undone > 0:
				fmt.Fprintf(w, "%s: not compared: calls that the software Metal refused or gave up: %d\n", judged.File, run.Engine.Undone)
			case run.Verdict() == trace.Differ:
				fmt.Fprintf(w, "%s: differs: the software Metal found %d races, and the trace has %d\n", judged.File, run.Engine.Races, len(run.Races))
			}
		}
	}
}
