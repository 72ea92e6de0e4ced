package host

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/shaders"
)

// mslSources compile shaders that are source at run time, as part of the software Metal.
var mslSources = []string{"msl/rewrite.cc", "msl/compile.cc"}

// mslObjects are linked into each library that comes of it.
var mslObjects = []string{"msl/hooks.cc", "shaders/fibers.cc", "shaders/races.cc", "shaders/runtime.cc"}

// mslFolder is the part of a host build where the software Metal finds what it compiles shaders with, and ToolchainFile the file
// there that says what that is (native/msl/compile.h).
const (
	mslFolder     = "msl"
	ToolchainFile = "toolchain"
)

// shaderCompiler lays out in the build what compiles shaders that are source at run time.
func (h *builder) shaderCompiler(ctx context.Context, native, dir string) error {
	march := shaders.Processor()
	var units []unit
	lines := []string{"clang " + h.Root.Tool("clang"), "linker " + h.Root.Tool("ld.lld")}
	// The checks of other flavours would look for what only a program of that flavour has.
	plain := h.compiler
	plain.flavour = builds.Plain
	for _, path := range mslObjects {
		object := filepath.Join(dir, mslFolder, filepath.Base(path)+".o")
		flags := slices.Concat([]string{"-std=c++17", "-O2", "-g0", "-fPIC", "-pthread", "-fvisibility=hidden", "-I."}, march)
		units = append(units, unit{dir: native, path: path, flags: flags, object: object})
		lines = append(lines, "object "+object)
	}
	if err := plain.compile(ctx, units); err != nil {
		return err
	}
	packages, err := builds.ReadText(filepath.Join(h.Root.Dir(), packageList))
	if err != nil {
		return err
	}
	parts := []string{packages, strings.Join(march, " ")}
	for _, folder := range []string{"msl", "shaders"} {
		err := fs.WalkDir(h.Native, folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := fs.ReadFile(h.Native, path)
			if err != nil {
				return err
			}
			parts = append(parts, path, string(data))
			if !strings.HasPrefix(path, "msl/include/") && path != "shaders/run.h" {
				return nil
			}
			target := filepath.Join(dir, mslFolder, path)
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				return err
			}
			return os.WriteFile(target, data, 0o644)
		})
		if err != nil {
			return fmt.Errorf("lay out the headers of Metal's language: %w", err)
		}
	}
	for _, flag := range march {
		lines = append(lines, "flag "+flag)
	}
	lines = append(lines, "headers "+filepath.Join(dir, mslFolder, "msl/include"), "cache "+filepath.Join(h.Cache, "msl"), "identity "+builds.Digest(parts...))
	return os.WriteFile(filepath.Join(dir, mslFolder, ToolchainFile), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
