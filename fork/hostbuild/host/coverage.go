package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
)

// profilesFolder of a build with builds.Coverage holds what its processes have counted, as *.profraw.
const profilesFolder = "profiles"

// coverageFlags count in PyTorch's sources. Threads that count at once must not lose a count, and a process that dies must not lose all
// of its own: the counters are in the file itself, for which code has to find them at run time.
var coverageFlags = []string{"-fprofile-instr-generate", "-fcoverage-mapping", "-fprofile-update=atomic", "-mllvm", "-runtime-counter-relocation"}

// counted are flags of a source of PyTorch's, or of what it is linked into.
func (h *builder) counted(flags []string) []string {
	if h.Flavour != builds.Coverage {
		return flags
	}
	return slices.Concat(flags, coverageFlags)
}

// listCounting makes the source that says where counts are kept: in the build's own folder, for each library a file that all processes
// share (%m and %c, https://clang.llvm.org/docs/SourceBasedCodeCoverage.html).
func (b *building) listCounting() error {
	u := unit{dir: b.objects, path: "profiles.cc", flags: commonFlags, object: filepath.Join(b.objects, "profiles.o")}
	b.units.counting = []unit{u}
	name := filepath.Join(b.built.Dir, profilesFolder, "%m%c.profraw")
	text := fmt.Sprintf("extern \"C\" __attribute__((visibility(\"hidden\"))) const char __llvm_profile_filename[] = %q;\n", name)
	return os.WriteFile(filepath.Join(b.objects, u.path), []byte(text), 0o644)
}

// ForgetCounts forgets what processes of a build with builds.Coverage have counted. None may run.
func (b *Build) ForgetCounts() error { return os.RemoveAll(filepath.Join(b.Dir, profilesFolder)) }

// Counts gives how often lines of PyTorch's sources have run since ForgetCounts, in all processes of a build with builds.Coverage: by the
// file's path in the checkout and the line, from 1. Lines without code are not in it.
func (b *Build) Counts(ctx context.Context, root *Root) (map[string]map[int]uint64, error) {
	profiles, err := filepath.Glob(filepath.Join(b.Dir, profilesFolder, "*.profraw"))
	if err == nil && len(profiles) == 0 {
		err = errors.New("no process of the build has counted anything")
	}
	if err != nil {
		return nil, fmt.Errorf("read what ran in %s: %w", b.Dir, err)
	}
	merged := filepath.Join(b.Dir, profilesFolder, "merged.profdata")
	extensions, err := filepath.Glob(filepath.Join(b.Dir, "python", "*.so"))
	if err != nil {
		return nil, err
	}
	merge := run.Command{Name: root.Tool("llvm-profdata"), Args: append([]string{"merge", "-o", merged}, profiles...)}
	if _, err := merge.Run(ctx); err != nil {
		return nil, fmt.Errorf("merge what ran: %w", err)
	}
	// The checkout's files have relative names; others are libtorch's headers and what is generated.
	args := []string{"export", "-skip-functions", "-skip-expansions", "-ignore-filename-regex=^/", "-instr-profile=" + merged, b.Library}
	for _, object := range append(extensions, b.Driver) {
		if builds.Exists(object) {
			args = append(args, "-object="+object)
		}
	}
	exported, err := run.Command{Name: root.Tool("llvm-cov"), Args: args, Dir: b.Dir}.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the lines that ran: %w", err)
	}
	var export struct {
		Data []struct {
			Files []struct {
				Filename string
				Segments []segment
			}
		}
	}
	if err := json.Unmarshal(exported.Stdout, &export); err != nil {
		return nil, fmt.Errorf("read what llvm-cov wrote: %w", err)
	}
	counts := map[string]map[int]uint64{}
	for _, data := range export.Data {
		for _, file := range data.Files {
			counts[filepath.Clean(file.Filename)] = linesOf(file.Segments)
		}
	}
	return counts, nil
}

// segment is where in a file the count changes: its text from here to the next one ran so often. It is written as
// [line, column, count, has count, is region entry, is gap].
type segment struct {
	line            int
	count           uint64
	has, entry, gap bool
}

func (s *segment) UnmarshalJSON(text []byte) error {
	var column int
	parts := []any{&s.line, &column, &s.count, &s.has, &s.entry, &s.gap}
	return json.Unmarshal(text, &parts)
}

// linesOf gives how often each line with code ran, as llvm-cov counts: as the one of the regions that begin in it that ran most often, or
// else that it is in. But a gap, where there is no code, counts for nothing: clang 19 writes one that never ran before what follows a
// block from which a statement returns.
func linesOf(segments []segment) map[int]uint64 {
	lines := map[int]uint64{}
	var before segment // that the line begins in
	for i := 0; i < len(segments); {
		line := segments[i].line
		var most uint64
		code := before.has && !before.gap
		if code {
			most = before.count
		}
		on := i
		for ; i < len(segments) && segments[i].line == line; i++ {
			if s := segments[i]; s.has && s.entry && !s.gap {
				most, code = max(most, s.count), true
			}
		}
		for _, s := range segments[on:i] { // what follows a gap
			if !code && s.has && !s.gap {
				most, code = s.count, true
			}
		}
		if code {
			lines[line] = most
		}
		before = segments[i-1]
		if i < len(segments) && before.has && !before.gap {
			for between := line + 1; between < segments[i].line; between++ {
				lines[between] = before.count
			}
		}
	}
	return lines
}
