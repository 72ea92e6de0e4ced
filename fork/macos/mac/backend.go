package mac

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

// backendMain is a program that has the backend and nothing else.
const backendMain = "#include \"metal.h\"\n#include <stdio.h>\nint main(void) { return puts(mpsforge_metal_framework()->identity()) < 0; }\n"

// LinkBackend compiles the backend on Apple's framework (native.Apple) for arm64 macOS, as package native/metal does, and links it with a
// program; it says what was looked at. Any warning is an error. The program is not run.
func LinkBackend(ctx context.Context, cache string, backend fs.FS, sink events.Sink) (detail string, err error) {
	unlock, err := host.Lock(ctx, Folder(cache), sink)
	if err != nil {
		return "", err
	}
	defer unlock()
	const arch = "arm64"
	compilers, err := Compilers(ctx, cache, arch, sink)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "mpsforge-backend-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.c"), []byte(backendMain), 0o644); err != nil {
		return "", err
	}
	files, err := fs.Glob(backend, "metal/*")
	if err != nil {
		return "", err
	}
	args := []string{"-Wall", "-Wextra", "-Werror", "-fobjc-arc", "-O1", "main.c"}
	for _, file := range files {
		text, err := fs.ReadFile(backend, file)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, path.Base(file)), text, 0o644); err != nil {
			return "", err
		}
		if strings.HasSuffix(file, ".m") {
			args = append(args, path.Base(file))
		}
	}
	sources := len(args) - slices.Index(args, "main.c") - 1
	for _, library := range programLibraries {
		if name, _, _ := strings.Cut(path.Base(library), "."); strings.HasSuffix(library, ".dylib") {
			args = append(args, "-l"+strings.TrimPrefix(name, "lib"))
		} else {
			args = append(args, "-framework", name)
		}
	}
	if _, err := (run.Command{Name: filepath.Join(compilers, "cc-"+arch), Args: append(args, "-o", "program"), Dir: dir}).Run(ctx); err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(dir, "program"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d sources for arm64-apple-macos%s", sources, oldestMacOS), checkLinked(data, arch)
}
