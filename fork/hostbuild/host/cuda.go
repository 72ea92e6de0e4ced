package host

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/native"
)

// cudaLibraries are the beginnings of the names of libraries that are CUDA code: libtorch's own, and NVIDIA's.
var cudaLibraries = []string{"libtorch_cuda", "libc10_cuda", "libcaffe2_nvrtc", "libtorch_nvshmem",
	"libcublas", "libcudart", "libcudnn", "libcufft", "libcufile", "libcupti", "libcurand", "libcusolver", "libcusparse", "libnccl", "libnv"}

// torchCUDA is the library whose place the symbols without a version take: all but those of NVIDIA's own libraries.
const torchCUDA = "libtorch_cuda.so"

func isCUDA(library string) bool {
	return slices.ContainsFunc(cudaLibraries, func(beginning string) bool { return strings.HasPrefix(library, beginning) })
}

// builtForCUDA finds the version of CUDA that a libtorch was built for in its version.py; without CUDA it is None.
var builtForCUDA = regexp.MustCompile(`(?m)^cuda\b.*= *['"]`)

// withoutCUDA gives a folder with the same torch as dir that loads no CUDA code: links to what is in dir, but for the libraries
// of CUDA and of NVIDIA, for which there are stand-ins (native/cuda). A torch that was built without CUDA is used as it is.
//
// With CUDA loaded PyTorch has two accelerators, and the first backward pass ends with "Cannot have both MPS and cuda".
func withoutCUDA(ctx context.Context, root *Root, dir, cache string, sink events.Sink) (string, error) {
	lib, version := filepath.Join(dir, "torch/lib"), filepath.Join(dir, "torch/version.py")
	text, err := builds.ReadText(version)
	if err != nil {
		return "", err
	}
	if !builtForCUDA.MatchString(text) {
		return dir, nil
	}
	wanted, err := cudaSymbols(lib, root.libraryPath())
	if err != nil {
		return "", err
	}
	sources := map[string]string{"symbols.cc": wanted.source()}
	for _, name := range []string{"standin.h", "answers.cc"} {
		text, err := native.CUDA.ReadFile("cuda/" + name)
		if err != nil {
			return "", err
		}
		sources[name] = string(text)
	}
	installed, err := os.Stat(version)
	if err != nil {
		return "", err
	}
	view := filepath.Join(cache, "torch", builds.Digest(dir, installed.ModTime().String(), root.Dir(), fmt.Sprint(sources), fmt.Sprint(wanted.libraries))[:24])
	if builds.Exists(view) {
		return view, nil
	}
	unlock, err := Lock(ctx, cache, sink)
	if err != nil {
		return "", err
	}
	defer unlock()
	if builds.Exists(view) { // made while this one waited
		return view, nil
	}
	const step = "stand-ins for CUDA"
	finish := events.Step(sink, step)
	defer finish(events.Failed, "")
	err = builds.MakeFolder(view, func(tree string) error {
		if err := linkTorch(dir, tree); err != nil {
			return err
		}
		c := compiler{root: root, cache: cache, flavour: builds.Plain, sink: sink, step: step}
		return c.linkStandIns(ctx, wanted, sources, filepath.Join(filepath.Dir(tree), "objects"), tree)
	})
	if err != nil {
		return "", err
	}
	finish(events.OK, fmt.Sprintf("%d symbols of %d libraries", len(wanted.symbols), len(wanted.libraries)))
	return view, nil
}

// linkStandIns compiles the sources and links each library that is wanted into the tree.
func (c *compiler) linkStandIns(ctx context.Context, wanted *standIns, sources map[string]string, objects, tree string) error {
	if err := os.Mkdir(objects, 0o755); err != nil {
		return err
	}
	var units []unit
	for name, text := range sources {
		if err := os.WriteFile(filepath.Join(objects, name), []byte(text), 0o644); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".cc") {
			units = append(units, unit{dir: objects, path: name, flags: []string{"-std=c++17", "-O2", "-fPIC", "-Wall"},
				object: filepath.Join(objects, name+".o")})
		}
	}
	if err := c.compile(ctx, units); err != nil {
		return err
	}
	for _, library := range wanted.libraries {
		script := filepath.Join(objects, library.name+".version")
		if err := os.WriteFile(script, []byte(library.versionScript()), 0o644); err != nil {
			return err
		}
		flags := []string{"-shared", "-Wl,-soname," + library.name, "-Wl,--version-script=" + script}
		if err := c.link(ctx, filepath.Join(objects, library.name), objectsOf(units), flags); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(objects, library.name), filepath.Join(tree, "torch/lib", library.name)); err != nil {
			return err
		}
	}
	return nil
}

// linkTorch fills tree with links to what is in dir, CUDA's libraries left out. Libraries look for each other where they were
// loaded from, which is the link; programs in torch/bin look where they are, so those are copied.
func linkTorch(dir, tree string) error {
	for _, folder := range []struct {
		path string
		keep func(name string) bool // nil: all
	}{
		{".", func(name string) bool { return name != "torch" && name != "nvidia" }},
		{"torch", func(name string) bool { return name != "lib" && name != "bin" }},
		{"torch/lib", func(name string) bool { return !isCUDA(name) }},
	} {
		if err := os.MkdirAll(filepath.Join(tree, folder.path), 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.Join(dir, folder.path))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if !folder.keep(entry.Name()) {
				continue
			}
			if err := os.Symlink(filepath.Join(dir, folder.path, entry.Name()), filepath.Join(tree, folder.path, entry.Name())); err != nil {
				return err
			}
		}
	}
	manager := filepath.Join("torch/bin/torch_shm_manager") // torch.multiprocessing starts it
	program, err := os.ReadFile(filepath.Join(dir, manager))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Join(tree, "torch/bin"), 0o755), os.WriteFile(filepath.Join(tree, manager), program, 0o755))
}

// standIns are the symbols of CUDA's libraries that a libtorch wants.
type standIns struct {
	symbols   []standInSymbol
	libraries []standInLibrary
}

type standInSymbol struct {
	name string
	kind elf.SymType
}

type standInLibrary struct {
	name     string
	versions map[string][]string // symbols by version; "" is none
}

// cudaSymbols reads what the libraries of a libtorch, but for CUDA's own, want of libraries that are not there: neither in lib,
// without those of CUDA, nor in the folders of the system.
func cudaSymbols(lib string, system []string) (*standIns, error) {
	entries, err := filepath.Glob(filepath.Join(lib, "*.so*"))
	if err != nil {
		return nil, err
	}
	find := func(name string) string {
		for _, folder := range append([]string{lib}, system...) {
			if path := filepath.Join(folder, name); !isCUDA(name) && builds.Exists(path) {
				return path
			}
		}
		return ""
	}
	defined, wanted := map[string]bool{}, map[string]elf.Symbol{}
	libraries := map[string]map[string][]string{torchCUDA: {}}
	paths := slices.DeleteFunc(entries, func(path string) bool { return isCUDA(filepath.Base(path)) })
	for i := 0; i < len(paths); i++ { // it grows by the system's libraries, which define and want nothing of CUDA's
		needed, symbols, err := dynamic(paths[i])
		if err != nil {
			return nil, err
		}
		own := filepath.Dir(paths[i]) == lib
		for _, name := range needed {
			switch path := find(name); {
			case !own:
			case path == "" && libraries[name] == nil:
				libraries[name] = map[string][]string{}
			case path != "" && !slices.Contains(paths, path):
				paths = append(paths, path)
			}
		}
		for _, symbol := range symbols {
			switch {
			case symbol.Section != elf.SHN_UNDEF:
				defined[symbol.Name] = true
			case own && elf.ST_BIND(symbol.Info) == elf.STB_GLOBAL:
				wanted[symbol.Name] = symbol
			}
		}
	}
	result := &standIns{}
	for name, symbol := range wanted {
		library := symbol.Library
		switch {
		case library == "" && (defined[name] || strings.HasPrefix(name, "Py") || strings.HasPrefix(name, "_Py")): // the interpreter has these
			continue
		case library == "":
			library = torchCUDA
		case libraries[library] == nil:
			continue // a library that is there
		}
		libraries[library][symbol.Version] = append(libraries[library][symbol.Version], name)
		result.symbols = append(result.symbols, standInSymbol{name, elf.ST_TYPE(symbol.Info)})
	}
	slices.SortFunc(result.symbols, func(a, b standInSymbol) int { return strings.Compare(a.name, b.name) })
	for name, versions := range libraries {
		for _, names := range versions {
			slices.Sort(names)
		}
		result.libraries = append(result.libraries, standInLibrary{name, versions})
	}
	slices.SortFunc(result.libraries, func(a, b standInLibrary) int { return strings.Compare(a.name, b.name) })
	return result, nil
}

// dynamic reads which libraries a library needs, and its dynamic symbols.
func dynamic(path string) (needed []string, symbols []elf.Symbol, err error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the library %s: %w", path, err)
	}
	needed, err = file.ImportedLibraries()
	symbols, symbolsErr := file.DynamicSymbols()
	if err := errors.Join(err, symbolsErr, file.Close()); err != nil {
		return nil, nil, fmt.Errorf("read the library %s: %w", path, err)
	}
	return needed, symbols, nil
}

// source is a C++ source that defines all the symbols.
func (s *standIns) source() string {
	var text strings.Builder
	text.WriteString("#include \"standin.h\"\n")
	for i, symbol := range s.symbols {
		switch {
		case strings.HasPrefix(symbol.name, "_ZTI"):
			fmt.Fprintf(&text, "MPSFORGE_ABSENT_TYPE(s%d, %q, %q)\n", i, symbol.name, strings.TrimPrefix(symbol.name, "_ZTI"))
		case strings.HasPrefix(symbol.name, "_ZTV"):
			fmt.Fprintf(&text, "MPSFORGE_ABSENT_VTABLE(s%d, %q)\n", i, symbol.name)
		case symbol.kind == elf.STT_OBJECT:
			fmt.Fprintf(&text, "MPSFORGE_ABSENT_VARIABLE(s%d, %q)\n", i, symbol.name)
		default:
			fmt.Fprintf(&text, "MPSFORGE_ABSENT_FUNCTION(s%d, %q)\n", i, symbol.name)
		}
	}
	return text.String()
}

// versionScript gives the symbols their versions, and hides those of other libraries.
func (l standInLibrary) versionScript() string {
	text, hidden := "", "local: *;"
	for _, version := range slices.Sorted(maps.Keys(l.versions)) {
		text += fmt.Sprintf("%s { global: %s; %s };\n", version, strings.Join(l.versions[version], "; "), hidden)
		hidden = ""
	}
	return cmp.Or(text, "{ local: *; };\n")
}
