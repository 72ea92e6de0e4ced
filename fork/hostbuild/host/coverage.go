package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
)

// profilesFolder of a build with builds.Coverage holds what its processes have counted, as *.profraw.
const profilesFolder = "profiles"

// coverageFlags count in PyTorch's sources. Threads that count at once must not lose a count, and a process that dies must not lose all
// of its own: the counters are in the file itself, for which code has to find them at run time.
var coverageFlags = []string{"-fprofile-instr-generate", "-fcoverage-mapping", "-fprofile-update=atomic", "-mllvm", "-runtime-counter-relocation"}

// counted are flags of a source of PyTorch's.
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
	b.units.counting, b.units.backend = []unit{u}, append(b.units.backend, u)
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
	args := []string{"export", "-format=lcov", "-instr-profile=" + merged, b.Library}
	for _, extension := range extensions {
		args = append(args, "-object="+extension)
	}
	exported, err := run.Command{Name: root.Tool("llvm-cov"), Args: args, Dir: b.Dir}.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the lines that ran: %w", err)
	}
	return parseLCOV(exported.Stdout)
}

// parseLCOV reads a tracefile (geninfo(1)) whose paths begin with the compiler's folder, which is the checkout.
func parseLCOV(text []byte) (map[string]map[int]uint64, error) {
	counts := map[string]map[int]uint64{}
	var lines map[int]uint64
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		kind, rest, _ := strings.Cut(scanner.Text(), ":")
		switch kind {
		case "SF":
			path := filepath.Clean(rest)
			if lines = counts[path]; lines == nil {
				lines = map[int]uint64{}
				counts[path] = lines
			}
		case "DA":
			number, count, _ := strings.Cut(rest, ",")
			line, err := strconv.Atoi(number)
			times, bad := strconv.ParseUint(count, 10, 64)
			if err = errors.Join(err, bad); err != nil || lines == nil {
				return nil, fmt.Errorf("llvm-cov wrote the line %q: %w", scanner.Text(), err)
			}
			lines[line] += times
		}
	}
	return counts, scanner.Err()
}
