package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"mpsforge/fork/builds"
)

var (
	extensionSuffix = regexp.MustCompile(`^_C(\.cpython-(\d)(\d+)-.*\.so)$`)
	// pybind11Internals is the name under which extensions share pybind11's types and thread states.
	pybind11Internals = regexp.MustCompile(`__pybind11_internals_v\d+_\w+?__`)
	// pybind11Parts are the parts of that name that pybind11 2 is given by the compiler's flags. Version 3 finds its own.
	pybind11Parts = regexp.MustCompile(`_v\d+(_[a-z]+)(_[a-z]+)(_cxxabi\d+)__$`)
)

// pythonOf is the Python that the libtorch's front end was built for.
type pythonOf struct {
	interpreter string
	suffix      string // of extension modules' files
	flags       []string
	internals   string // pybind11's name of what its extensions share
}

// findPython looks for the Python of the libtorch in the root, and says what is missing where there is none.
func (h *builder) findPython() (p pythonOf, missing string, err error) {
	for _, path := range []string{builds.PythonBindings, builds.PythonPackage + "/__init__.py"} {
		if !builds.Exists(filepath.Join(h.Checkout, path)) {
			return p, "the checkout has no " + path, nil
		}
	}
	extensions, err := filepath.Glob(filepath.Join(h.Torch.pythonPath, "torch", "_C.*.so"))
	if err != nil {
		return p, "", err
	}
	version := ""
	for _, path := range extensions {
		if match := extensionSuffix.FindStringSubmatch(filepath.Base(path)); match != nil {
			p.suffix, version = match[1], match[2]+"."+match[3]
		}
	}
	if version == "" {
		return p, "no torch/_C of CPython in " + h.Torch.pythonPath, nil
	}
	p.interpreter = filepath.Join(h.Root.Dir(), "usr/bin/python"+version)
	headers := filepath.Join(h.Root.Dir(), "usr/include/python"+version)
	for _, path := range []string{p.interpreter, filepath.Join(headers, "Python.h")} {
		if !builds.Exists(path) {
			return p, fmt.Sprintf("%s is for CPython %s, and there is no %s", h.Torch.pythonPath, version, path), nil
		}
	}
	folders := append(slices.Clone(h.Torch.include), filepath.Join(h.Root.Dir(), "usr/include"))
	if !slices.ContainsFunc(folders, func(folder string) bool { return builds.Exists(filepath.Join(folder, "pybind11/pybind11.h")) }) {
		return p, "no pybind11/pybind11.h in " + strings.Join(folders, ", ") + "; install pybind11-dev into the root", nil
	}
	for _, folder := range h.Torch.libraries {
		library, err := os.ReadFile(filepath.Join(folder, "libtorch_python.so"))
		if err != nil {
			continue
		}
		if p.internals = string(pybind11Internals.Find(library)); p.internals == "" {
			return p, folder + "/libtorch_python.so names no pybind11", nil
		}
		if match := pybind11Parts.FindStringSubmatch(p.internals); match != nil {
			for i, name := range []string{"COMPILER_TYPE", "STDLIB", "BUILD_ABI"} {
				p.flags = append(p.flags, fmt.Sprintf(`-DPYBIND11_%s="%s"`, name, match[i+1]))
			}
		}
		p.flags = append(p.flags, "-I"+headers)
		return p, "", nil
	}
	return p, "no libtorch_python.so in " + strings.Join(h.Torch.libraries, ", "), nil
}

// pythonUnits are the sources of the Python side.
func (h *builder) pythonUnits(p pythonOf, glue, objects string, include, series []string) []unit {
	// Hidden, as libtorch_python has functions of the same names; NDEBUG, as RecordFunction has a member more without it, and
	// no libtorch that is installed has that.
	common := slices.Concat([]string{"-fvisibility=hidden"}, commonFlags, h.Torch.flags, p.flags,
		[]string{"-w", "-DAT_PER_OPERATOR_HEADERS", "-DFMT_HEADER_ONLY=1", "-DUSE_MPS", "-DNDEBUG", "-idirafter", "."}, include)
	flags := slices.Concat([]string{"-x", "c++", "-fblocks"}, common)
	fieldFlags := slices.Concat(objcFlags, []string{"-include", "mpsforge/integers.h"}, common) // the backend's own headers need it
	// Field programs are compiled with the headers that torch installs, which has none of the series.
	seriesFlags := slices.Concat([]string{"-Iaten/src"}, fieldFlags, series)
	return []unit{
		{dir: h.Checkout, path: builds.PythonBindings, flags: h.counted(flags), object: filepath.Join(objects, builds.PythonBindings+".o")},
		{dir: glue, path: "python/extension.cc", flags: flags, object: filepath.Join(objects, "hostmps/python/extension.cc.o")},
		{dir: glue, path: "python/field.mm", flags: fieldFlags, object: filepath.Join(objects, "hostmps/python/field.mm.o")},
		{dir: h.Checkout, path: filepath.Join(glue, "python/interop.mm"), flags: h.counted(seriesFlags),
			object: filepath.Join(objects, "hostmps/python/interop.mm.o")},
	}
}

// linkPython links the Python side into dir and gives the script that starts it, or the reason why there is none.
//
// The script's Python has the extension's folder on its path. There torch finds the entry point through which it loads
// backends, so that every program that imports torch has device mps, unchanged.
func (h *builder) linkPython(ctx context.Context, p pythonOf, units []unit, dir, glue, objects string, libraries []string) (script, missing string, err error) {
	site := filepath.Join(dir, "python")
	information := filepath.Join(site, "mpsforge_hostmps-1.dist-info")
	extension := filepath.Join(site, "_mpsforge_hostmps"+p.suffix)
	module, err := os.ReadFile(filepath.Join(glue, "python/mpsforge_hostmps.py"))
	if err != nil {
		return "", "", err
	}
	script = filepath.Join(dir, "python3")
	// Loaded before all others, since libtorch looks for it where it was loaded (native/torch/dispatch_stub.cc).
	dispatch := filepath.Join(dir, "libmpsforge_dispatch.so")
	if err := h.compiler.link(ctx, dispatch, []string{filepath.Join(objects, "hostmps", dispatchStub+".o")}, []string{"-shared"}); err != nil {
		return "", "", err
	}
	texts := []struct{ path, text string }{
		{filepath.Join(site, "mpsforge_hostmps.py"), string(module)},
		{filepath.Join(information, "METADATA"), "Metadata-Version: 2.1\nName: mpsforge_hostmps\nVersion: 1\n"},
		{filepath.Join(information, "entry_points.txt"), "[torch.backends]\nmps = mpsforge_hostmps:load\n"},
		{script, h.pythonScript(p.interpreter, script, site, dispatch)},
	}
	// What is there from the same sources stays as it is: another process may run on it.
	packaged, err := builds.FilesBelow(filepath.Join(h.Checkout, builds.PythonPackage))
	if err != nil {
		return "", "", err
	}
	library, err := os.ReadFile(filepath.Join(h.Checkout, builds.PythonLibrary))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	if library != nil {
		texts = append(texts, struct{ path, text string }{filepath.Join(dir, builds.PythonLibrary), string(library)})
	}
	// torch.mps.compile_shader puts c10's Metal headers, which it finds beside its package, into sources that include them.
	headers := filepath.Join(h.Torch.pythonPath, "torch/include")
	key, err := builds.FilesDigest([]string{fmt.Sprint(texts), extension, headers}, append(packaged, objectsOf(units)...)...)
	if err != nil {
		return "", "", err
	}
	record := filepath.Join(dir, "python.done")
	if have, err := builds.ReadText(record); err != nil || have == key && builds.Exists(extension) {
		return script, "", err
	}
	// Only whole folders of this build: what another version of mpsforge put there must not be found.
	for _, old := range []string{record, site, filepath.Join(dir, "torch")} {
		if err := os.RemoveAll(old); err != nil {
			return "", "", err
		}
	}
	if err := os.MkdirAll(information, 0o755); err != nil {
		return "", "", err
	}
	if err := h.compiler.link(ctx, extension, objectsOf(units), slices.Concat([]string{"-shared", "-Wl,-Bsymbolic", "-lhostmps", "-ltorch_python",
		"-ltorch"}, libraries)); err != nil {
		return "", "", err
	}
	if linked, err := os.ReadFile(extension); err != nil {
		return "", "", err
	} else if have := string(pybind11Internals.Find(linked)); have != p.internals { // it would know none of torch's types
		return "", fmt.Sprintf("the pybind11 headers make %s, libtorch_python.so has %s: they are of different versions",
			cmp.Or(have, "no shared name"), p.internals), nil
	}
	if err := os.CopyFS(filepath.Join(dir, builds.PythonPackage), os.DirFS(filepath.Join(h.Checkout, builds.PythonPackage))); err != nil {
		return "", "", err
	}
	if err := os.Symlink(headers, filepath.Join(dir, "torch/include")); err != nil {
		return "", "", err
	}
	for _, file := range texts {
		if err := os.WriteFile(file.path, []byte(file.text), 0o755); err != nil {
			return "", "", err
		}
	}
	return script, "", os.WriteFile(record, []byte(key), 0o644)
}

func (h *builder) pythonScript(interpreter, script, site, dispatch string) string {
	var preload []string
	if runtimes := map[builds.Flavour]string{builds.Thread: "tsan", builds.Address: "asan"}; runtimes[h.Flavour] != "" {
		architecture := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		preload = append(preload, filepath.Join(h.Root.llvm(), "lib/clang", clangVersion, "lib/linux",
			fmt.Sprintf("libclang_rt.%s-%s.so", runtimes[h.Flavour], architecture)))
	}
	preload = append(preload, dispatch)
	home := ""
	if h.Root.Dir() != "/" {
		home = fmt.Sprintf("export PYTHONHOME='%s'\n", filepath.Join(h.Root.Dir(), "usr"))
	}
	// Debian's libtorch brings UCX, which catches the signals of crashes otherwise.
	return fmt.Sprintf("#!/bin/sh\n# Python with torch and device mps, made by mpsforge build --host\n%sexport "+
		"PYTHONPATH='%s:%s'\"${PYTHONPATH:+:$PYTHONPATH}\"\n"+
		"export PYTHONPYCACHEPREFIX='%s'\nexport UCX_ERROR_SIGNALS=SIGBUS\n%s \"$@\"\n",
		home, site, h.Torch.pythonPath, filepath.Join(h.Cache, "pycache"), h.Root.start(interpreter, script, preload...))
}
