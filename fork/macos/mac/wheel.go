package mac

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/shaders"
	"mpsforge/fork/macos/wheels"
)

// WheelFacts are what PyTorch's wheel for macOS says of its MPS backend without any sources. Names are as the libraries have them, in order,
// so that a diff of two versions says what changed.
type WheelFacts struct {
	Schema  int    `json:"schema"` // always 1
	File    string `json:"file"`
	SHA256  string `json:"sha256"`
	Minimum string `json:"minimum"` // the oldest macOS that it is for
	SDK     string `json:"sdk"`     // that it was made with
	// Exports are the names of the backend that others can bind to, by library.
	Exports map[string][]string `json:"exports"`
	// Vtables has the tables of the backend's virtual functions: of each slot its names, of which there are several where equal functions
	// were put together.
	Vtables map[string][][]string `json:"vtables"`
	// Classes and Selectors are Objective-C's, as libtorch_cpu uses them.
	Classes   []string `json:"classes"`
	Selectors []string `json:"selectors"`
	// Kernels are the precompiled ones of Metal, by section.
	Kernels map[string][]string `json:"kernels"`
	// Bindings are what torch._C has of the backend.
	Bindings []string `json:"bindings"`
}

// ErrWheel is returned, wrapped, for a file that is not a complete wheel of torch for macOS.
var ErrWheel = errors.New("not a complete wheel of torch for macOS")

const libtorchPython = "torch/lib/libtorch_python.dylib"

// ReadWheel reads a wheel's facts.
func ReadWheel(file string) (*WheelFacts, error) {
	sum, err := builds.FileSHA256(file)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mpsforge-wheel-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := wheels.Unpack(file, dir, []string{wheels.LibtorchCPU, libtorchPython}); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", file, ErrWheel, err)
	}
	facts, err := readLibraries(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", file, ErrWheel, err)
	}
	facts.File, facts.SHA256 = filepath.Base(file), sum
	return facts, nil
}

var (
	ofBackend   = regexp.MustCompile(`(?i)mps`)
	bindingName = regexp.MustCompile(`\x00(_mps_\w+)`)
)

// readLibraries reads those of a wheel that is unpacked in dir.
func readLibraries(dir string) (*WheelFacts, error) {
	facts := &WheelFacts{Schema: 1, Exports: map[string][]string{}, Vtables: map[string][][]string{}}
	for _, library := range []string{wheels.LibtorchCPU, libtorchPython} {
		image, err := OpenImage(filepath.Join(dir, library))
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(image.Defined)) {
			if ofBackend.MatchString(name) {
				facts.Exports[library] = append(facts.Exports[library], name)
			}
		}
		if library != wheels.LibtorchCPU {
			continue
		}
		if facts.Minimum, facts.SDK, err = image.versions(); err != nil {
			return nil, err
		}
		for name := range image.Vtables() {
			if !strings.HasPrefix(name, "__ZTVN2at") || !ofBackend.MatchString(name) || strings.Contains(name, "_GLOBAL__N_1") {
				continue
			}
			if facts.Vtables[name], err = image.Vtable(name); err != nil {
				return nil, err
			}
		}
		for name := range image.Undefined {
			if class, is := strings.CutPrefix(name, classPrefix); is {
				facts.Classes = append(facts.Classes, class)
			}
		}
		slices.Sort(facts.Classes)
		facts.Selectors = slices.Sorted(slices.Values(image.Selectors))
	}
	file, err := os.Open(filepath.Join(dir, wheels.LibtorchCPU))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if facts.Kernels, err = shaders.Kernels(file); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, libtorchPython))
	if err != nil {
		return nil, err
	}
	for _, match := range bindingName.FindAllSubmatch(text, -1) {
		facts.Bindings = append(facts.Bindings, string(match[1]))
	}
	slices.Sort(facts.Bindings)
	facts.Bindings = slices.Compact(facts.Bindings)
	if len(facts.Vtables) == 0 || len(facts.Kernels) == 0 || len(facts.Bindings) == 0 {
		return nil, fmt.Errorf("no MPS backend: %d tables of virtual functions, %d sections of kernels, %d bindings", len(facts.Vtables),
			len(facts.Kernels), len(facts.Bindings))
	}
	return facts, nil
}

// WheelSources are the files of PyTorch's sources that a wheel holds: headers, and the Python files of torch and torchgen.
type WheelSources struct{ archive *zip.ReadCloser }

// OpenSources opens a wheel for its sources.
func OpenSources(file string) (*WheelSources, error) {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", file, ErrWheel, err)
	}
	if _, err := fs.Stat(archive, "torch/include/ATen"); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w: it has no torch/include/ATen/", file, ErrWheel), archive.Close())
	}
	return &WheelSources{archive}, nil
}

// Close closes the wheel's file.
func (w *WheelSources) Close() error { return w.archive.Close() }

// Read gives a file's text by its path in PyTorch's tree; nil if the wheel lacks it. seen is false for a file of a kind that no wheel holds.
func (w *WheelSources) Read(name string) (text []byte, seen bool, err error) {
	place := ""
	switch {
	case path.Ext(name) == ".h":
		place = "torch/include/" + strings.TrimPrefix(name, "aten/src/")
	case path.Ext(name) == ".py" && (strings.HasPrefix(name, "torch/") || strings.HasPrefix(name, "torchgen/")):
		place = name
	default:
		return nil, false, nil
	}
	text, err = fs.ReadFile(w.archive, place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("%w: %s: %w", ErrWheel, place, err)
	}
	return unwrapped(text), true, nil
}

// PyTorch 2.10 and later put these around each header when they install it (tools/wrap_headers.py); the sources do not have them.
const (
	wrapFirst = "#if !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)\n"
	wrapLast  = "\n#else\n#error \"This file should not be included when either TORCH_STABLE_ONLY or TORCH_TARGET_VERSION is defined.\"\n" +
		"#endif  // !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)\n"
)

func unwrapped(text []byte) []byte {
	inner, first := strings.CutPrefix(string(text), wrapFirst)
	inner, last := strings.CutSuffix(inner, wrapLast)
	if !first || !last {
		return text
	}
	return []byte(inner)
}
