package reference

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mpsforge/internal/cxx"
	"mpsforge/internal/run"
	"mpsforge/internal/words"
	"mpsforge/native"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/allocator"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/programs"
	"mpsforge/validate/stage"
)

// engineSources are all sources of the software Metal, the reference pool and the program that runs scripts on them.
func engineSources() ([]cxx.Source, error) {
	return native.Files("schedule/", "metal/", "pool/", "script/", "programs/script.cc")
}

// sanitizedProgram is a program that a sanitizer watches: race-free, so that whatever it reports is the engine's, the
// pool's or the interpreter's fault.
type sanitizedProgram struct {
	name, text string
}

func sanitizedPrograms(from []corpus.Program, seed uint64) []sanitizedProgram {
	var all []sanitizedProgram
	for _, program := range from {
		if program.Expect == corpus.Clean && program.Group != corpus.Schedules {
			all = append(all, sanitizedProgram{program.Name, program.Text})
		}
	}
	for _, shape := range programs.Shapes {
		all = append(all, sanitizedProgram{shape.Name, shape.Build(seed, 6)})
	}
	return all
}

// engineSanitizers are the checks of checkEngineSanitizers.
const engineSanitizers = 2

// checkEngineSanitizers runs programs on builds of the engine and the reference with each sanitizer that works here.
func checkEngineSanitizers(ctx context.Context, c *stage.Checker, tools cxx.Compiler, programs []corpus.Program) []reports.Check {
	return c.Sanitizers(ctx, tools, " over engine and pool", "all", func(s cxx.Sanitizer) (verdict reports.Verdict, detail, output string) {
		return runSanitized(ctx, c, tools, s, sanitizedPrograms(programs, c.Seed))
	})
}

func runSanitized(ctx context.Context, c *stage.Checker, tools cxx.Compiler, s cxx.Sanitizer, programs []sanitizedProgram) (verdict reports.Verdict,
	detail, output string) {
	sources, err := engineSources()
	if err != nil {
		return reports.Failed, err.Error(), ""
	}
	builder := cxx.Builder{Cache: c.Cache, Compiler: tools}
	program, err := builder.Build(ctx, cxx.Target{Flavour: s.Flavour, Sources: sources})
	if err != nil {
		return reports.Failed, words.FirstLine(err.Error()), err.Error()
	}
	folder, err := os.MkdirTemp("", "mpsforge-programs-")
	if err != nil {
		return reports.Failed, err.Error(), ""
	}
	defer os.RemoveAll(folder)
	runs := "20"
	if c.Quick {
		runs = "2"
	}
	args := []string{"free", fmt.Sprint(c.Seed), runs, "0", fmt.Sprint(freeDelay.Microseconds()), fmt.Sprint(c.Patience.Milliseconds())}
	for i, each := range programs {
		path := filepath.Join(folder, fmt.Sprintf("%03d.txt", i))
		if err := os.WriteFile(path, []byte(each.text), 0o644); err != nil {
			return reports.Failed, err.Error(), ""
		}
		args = append(args, path)
	}
	limited, cancel := context.WithTimeout(ctx, allocator.ProgramTimeout)
	defer cancel()
	result, err := run.Command{Name: program, Args: args, Env: run.Environment(s.Environment, nil)}.Run(limited)
	lines := strings.Split(strings.TrimSpace(string(result.Stdout)), "\n")
	if err != nil {
		name := "the first program"
		if n := len(lines); lines[0] != "" && n < len(programs) {
			name = fmt.Sprintf("program %q", programs[n].name)
		}
		if run.ExitCode(err) == s.Exit {
			return reports.Failed, s.Finding + " reported in " + name, process.LastLines(result.Stderr)
		}
		return reports.Failed, words.FirstLine(err.Error()) + " in " + name, process.LastLines(result.Stderr)
	}
	if len(lines) != len(programs) {
		return reports.Failed, fmt.Sprintf("%d results of %d programs", len(lines), len(programs)), ""
	}
	done := uint64(0)
	for i, line := range lines {
		var found struct {
			Error string
			script.Result
		}
		if err := json.Unmarshal([]byte(line), &found); err != nil || found.Error != "" {
			return reports.Failed, fmt.Sprintf("program %q: %v %s", programs[i].name, err, found.Error), ""
		}
		if problem := corpus.Clean.Problem(&found.Result); problem != "" {
			return reports.Failed, fmt.Sprintf("program %q: %s", programs[i].name, problem), programs[i].text
		}
		done += found.Runs
	}
	c.Count("sanitizer runs", int64(done))
	return reports.Passed, fmt.Sprintf("%d programs, %d runs, nothing reported", len(programs), done), ""
}
