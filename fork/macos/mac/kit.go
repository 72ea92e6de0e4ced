package mac

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/native"
	"mpsforge/native/apple"
	"mpsforge/patches"
)

// ziglang is zig's wheel: of all that is in it only the headers and libSystem's stub are used, so that one file does for all machines.
// Its libc++ is of the root's clang.
var ziglang = wheels.Wheel{
	URL:    "https://files.pythonhosted.org/packages/16/a8/6989b2d0f61f6b33ec7f711b48089fc9d1a53787ce657e81b0b941d22f59/ziglang-0.14.1-py3-none-macosx_12_0_arm64.whl",
	SHA256: "eae7d46746b8e80a4d1a8369b09f7a6aace973ee39207b1b63cfb6bb086e84dc",
}

var (
	zigParts = []string{"ziglang/lib/libc/include/any-macos-any/", "ziglang/lib/libcxx/include/", "ziglang/lib/libcxxabi/include/",
		"ziglang/lib/libc/darwin/", "ziglang/LICENSE"}
)

// oldestMacOS is the one that PyTorch's MPS backend runs on at least (MPSDevice.mm asks for 13.0): what it has needs no question.
var oldestMacOS = apple.Version{Major: 13, Minor: 0}

// Kit is all that sources are compiled and linked with.
type Kit struct {
	// Root has the tools: on Linux a Debian system, but for its compiler and linker, which are Xcode's.
	Root  *host.Root
	Xcode Xcode
	// Libraries are those of PyTorch's wheel: libtorch_cpu, libtorch_python, libc10.
	Libraries []*Image
	// Minimum is the macOS that the wheel is made for, and SDK the one that it was made with.
	Minimum, SDK string
	// Plan, unless nil, is given the commands of Overlay and LinkOverlay in the place of running them.
	Plan func(command run.Command)

	cache, torch string // folders
	headers      []string
	files        []string               // the libraries' paths
	stock        *machineCode           // libtorch_cpu, once wheelCode was asked
	types        []map[string]*typeInfo // of Libraries, then
	unlock       func()
}

// Close lets others use the cache's Folder again.
func (k *Kit) Close() { k.unlock() }

// Stock is the path of the wheel's library with the backend.
func (k *Kit) Stock() string { return k.files[0] }

// Folder is the part of the cache that compilations for macOS have for themselves, with a lock of its own (host.Lock): host builds and
// they do not wait for each other.
func Folder(cache string) string { return filepath.Join(cache, "mac") }

// Have reports whether the cache has what is downloaded.
func Have(cache string, facts patches.MacFacts) bool {
	return ziglang.Have(cache, zigParts) && wheels.Wheel(facts.Wheel).Have(cache, wheels.TorchParts)
}

// Open waits for the lock of the cache's Folder, which the kit holds until Close, and gets the wheels. Without a root it uses Apple's
// command line tools, which are on a Mac alone.
func Open(ctx context.Context, root *host.Root, cache string, facts patches.MacFacts, sink events.Sink) (kit *Kit, err error) {
	if cache, err = filepath.Abs(cache); err != nil {
		return nil, err
	}
	k := &Kit{cache: cache}
	if k.unlock, err = host.Lock(ctx, Folder(cache), sink); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			k.Close()
		}
	}()
	if k.torch, err = wheels.Wheel(facts.Wheel).Get(ctx, cache, wheels.TorchParts, sink); err != nil {
		return nil, err
	}
	include := filepath.Join(k.torch, "torch/include")
	// fmt is PyTorch's submodule where its wheel brings none.
	k.headers = []string{"-isystem", include, "-isystem", filepath.Join(include, "torch/csrc/api/include"), "-idirafter", "third_party/fmt/include"}
	if root == nil {
		k.Root, err = k.openXcode(ctx, sink)
	} else {
		k.Root, err = k.takeRoot(ctx, root, sink)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"libtorch_cpu", "libtorch_python", "libc10"} {
		file := filepath.Join(k.torch, "torch/lib", name+".dylib")
		image, err := OpenImage(file)
		if err != nil {
			return nil, err
		}
		k.Libraries, k.files = append(k.Libraries, image), append(k.files, file)
	}
	if k.Minimum, k.SDK, err = k.Libraries[0].versions(); err != nil {
		return nil, err
	}
	if root != nil {
		err = k.layLibraries()
	}
	return k, err
}

// takeRoot compiles and links with a Debian system's tools.
func (k *Kit) takeRoot(ctx context.Context, root *host.Root, sink events.Sink) (_ *host.Root, err error) {
	if k.Xcode, err = k.layXcode(ctx, root, sink); err != nil {
		return nil, fmt.Errorf("headers for macOS: %w", err)
	}
	return root.With(filepath.Join(Folder(k.cache), "xcode/tools"), map[string]string{"clang": k.Xcode.Clang, "ld64": k.Xcode.Linker})
}

// openXcode compiles and links with Apple's tools.
func (k *Kit) openXcode(ctx context.Context, sink events.Sink) (root *host.Root, err error) {
	if k.Xcode, err = FindXcode(ctx); err != nil {
		return nil, err
	}
	return host.SystemRoot(ctx, k.Xcode.SDK, Folder(k.cache), map[string]string{"clang": k.Xcode.Clang, "ld64": k.Xcode.Linker}, sink)
}

// layOthers links those of Debian's headers that are the same on all systems, and no others: fmt's and Python's, the latter for libtorch_python.
// They are in folders whose paths stay the same, because ccache knows them by these.
func (k *Kit) layOthers(root *host.Root) (folders []string, err error) {
	python := filepath.Join(Folder(k.cache), "python")
	found, err := filepath.Glob(filepath.Join(root.Dir(), "usr/include/python3*/Python.h"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: no headers of Python in %s", builds.ErrEnvironment, root.Dir())
	}
	entries, err := os.ReadDir(filepath.Dir(found[0]))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Name() != "pyconfig.h" { // native/mac/include has it
			if err := link(filepath.Join(filepath.Dir(found[0]), entry.Name()), filepath.Join(python, entry.Name())); err != nil {
				return nil, err
			}
		}
	}
	others := filepath.Join(Folder(k.cache), "others")
	return []string{others, python}, link(filepath.Join(root.Dir(), "usr/include/fmt"), filepath.Join(others, "fmt"))
}

// layOwnHeaders writes those that the binary carries: native/mac's, which come first, and native/objc's.
func layOwnHeaders(dir string) (first, ours string, err error) {
	table, err := apple.Load()
	if err != nil {
		return "", "", err
	}
	first, ours = filepath.Join(dir, "first"), filepath.Join(dir, "objc")
	for _, part := range []struct {
		files    fs.FS
		from, to string
		marked   bool
	}{{native.Sources, "objc/include", ours, true}, {native.Mac, "mac/include", first, false}} {
		wanted := map[string]bool{}
		err := builds.EachFile(part.files, part.from, func(path string, text []byte) error {
			if part.marked {
				marked, _, err := table.MarkAvailability(string(text), oldestMacOS)
				if err != nil {
					return err
				}
				text = []byte(marked)
			}
			target := filepath.Join(part.to, strings.TrimPrefix(path, part.from))
			wanted[target] = true
			return builds.WriteChanged(target, text)
		})
		if err == nil {
			err = builds.RemoveOthers(part.to, wanted)
		}
		if err != nil {
			return "", "", err
		}
	}
	return first, ours, nil
}

func link(target, path string) error {
	if have, err := os.Readlink(path); err == nil && have == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}
