package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// Torch is a libtorch to build against: its headers, its libraries and its code generator.
type Torch struct {
	Version     string   // 2.6.0, without local parts such as +cu128
	include     []string // folders, searched after the checkout's
	libraries   []string // folders
	flags       []string // of the compiler
	pythonPath  string   // holds package torchgen
	description string
}

var versionMacro = regexp.MustCompile(`#define TORCH_VERSION \\\n *"([0-9]+\.[0-9]+\.[0-9]+)([^"]*)"`)

// OpenTorch finds the libtorch in dir, which is a folder that pip installed torch into, or the torch folder in it. An empty dir means
// the first of wheels that can be had, which is kept in the cache; without wheels, the root's libtorch-dev. One that was built for
// CUDA is used without it (withoutCUDA).
func OpenTorch(ctx context.Context, root *Root, dir string, wheels []patches.Wheel, cache string, sink events.Sink) (*Torch, error) {
	if dir == "" && len(wheels) > 0 {
		var err error
		if dir, err = fetchLibtorch(ctx, wheels, cache, events.OrDiscard(sink)); err != nil {
			return nil, err
		}
	}
	var t *Torch
	header := ""
	if dir == "" {
		t = &Torch{libraries: root.libraryPath(), description: "libtorch-dev of " + root.Dir()}
		t.pythonPath = filepath.Join(root.Dir(), "usr/lib/python3/dist-packages")
		api := filepath.Join(root.Dir(), "usr/include/torch/csrc/api/include")
		t.include = []string{api} // the rest is on the compiler's own path
		header = filepath.Join(api, "torch/version.h")
	} else {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if filepath.Base(dir) == "torch" {
			dir = filepath.Dir(dir)
		}
		api := filepath.Join(dir, "torch/include/torch/csrc/api/include")
		t = &Torch{include: []string{filepath.Join(dir, "torch/include"), api}, description: dir}
		if t.pythonPath, err = withoutCUDA(ctx, root, dir, cache, events.OrDiscard(sink)); err != nil {
			return nil, fmt.Errorf("libtorch in %s: %w", dir, err)
		}
		t.libraries = append([]string{filepath.Join(t.pythonPath, "torch/lib")}, root.libraryPath()...)
		header = filepath.Join(api, "torch/version.h")
	}
	text, err := os.ReadFile(header)
	if err != nil {
		return nil, fmt.Errorf("%w: no libtorch in %s: %w; name a folder that holds torch/ with --torch", builds.ErrEnvironment, t.description, err)
	}
	match := versionMacro.FindSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf("%s: no TORCH_VERSION in it", header)
	}
	t.Version = string(match[1])
	t.description = fmt.Sprintf("%s%s (%s)", match[1], match[2], t.description)
	return t, nil
}

// checkVersion refuses a libtorch of another version than the checkout's: their headers would not agree.
func (t *Torch) checkVersion(checkout string) error {
	text, err := os.ReadFile(filepath.Join(checkout, "version.txt"))
	if err != nil {
		return fmt.Errorf("the checkout's version: %w", err)
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(text)), "a")
	if version != t.Version {
		return fmt.Errorf("%w: %s is PyTorch %s, the libtorch is %s; name a libtorch of that version with --torch", builds.ErrEnvironment, checkout,
			version, t.description)
	}
	return nil
}

// VersionFile is the libtorch's torch/version.py.
func (t *Torch) VersionFile() string { return filepath.Join(t.pythonPath, "torch/version.py") }
