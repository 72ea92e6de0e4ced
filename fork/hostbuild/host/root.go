package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"mpsforge/fork/builds"
	"mpsforge/internal/apt"
	"mpsforge/internal/atomicfile"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

// DebianSuite is the suite whose compiler and libtorch host builds use, and DebianBaseline the PyTorch that it has.
const (
	DebianSuite    = "trixie"
	DebianBaseline = "v2.6.0"
)

// ClangMajor is the compiler's major version in that suite.
const ClangMajor = 19

var clangVersion = strconv.Itoa(ClangMajor)

// rootPackages are unpacked into a root, with all that they depend on.
var rootPackages = []string{
	"clang-" + clangVersion, "libclang-rt-" + clangVersion + "-dev", "lld-" + clangVersion, "llvm-" + clangVersion, "llvm-" + clangVersion + "-dev",
	"libstdc++-14-dev", "ccache", "libtorch-dev", "python3-torch", "libfmt-dev", "pybind11-dev", "python3-yaml", "python3-setuptools",
	// PyTorch's tests have fewer cases without it, and say nothing of that.
	"python3-scipy",
}

// Root is a Debian system, seen from its top folder: the compiler, the libraries and the Python of host builds. It is
// used in place: its programs run under its own dynamic loader, and what is linked with it names that loader, so that
// no privileges, no chroot and no mounts are needed, whatever system is around it.
type Root struct {
	dir   string // "/" is this system itself
	tools string // the folder with the scripts that start its programs
	bare  bool   // there is no libtorch in it (SystemRoot)
}

// Dir is the root's top folder.
func (r *Root) Dir() string { return r.dir }

// Tool is the path of a script that starts a program of the root: clang, ld.lld, ld64, python3, ccache,
// llvm-cov, llvm-cxxfilt, llvm-nm, llvm-objdump, llvm-profdata or llvm-symbolizer.
func (r *Root) Tool(name string) string { return filepath.Join(r.tools, name) }

func (r *Root) libraries() string { return filepath.Join(r.dir, "usr/lib", libraryTriplet()) }

// libraryPath lists the folders with shared libraries. Debian's alternatives for BLAS and LAPACK are links that the
// packages' scripts make; here no script ran.
func (r *Root) libraryPath() []string {
	return []string{r.libraries(), filepath.Join(r.libraries(), "blas"), filepath.Join(r.libraries(), "lapack"), filepath.Join(r.dir, "usr/lib")}
}

func (r *Root) loader() string {
	if runtime.GOARCH == "arm64" {
		return filepath.Join(r.dir, "usr/lib/ld-linux-aarch64.so.1")
	}
	return filepath.Join(r.dir, "usr/lib64/ld-linux-x86-64.so.2")
}

func libraryTriplet() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64-linux-gnu"
	}
	return "x86_64-linux-gnu"
}

// HaveRoot reports whether the cache holds a root.
func HaveRoot(cache string) bool { return builds.Exists(filepath.Join(cache, "roots", DebianSuite)) }

// OpenRoot gives the root in dir; an empty dir means the one in the cache, which is made of Debian's packages if it
// is not there: some 380 MB to download, 2.1 GB on disk.
func OpenRoot(ctx context.Context, dir, cache string, sink events.Sink) (*Root, error) {
	sink = events.OrDiscard(sink)
	cache, err := filepath.Abs(cache)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%w: host builds run on Linux; this is %s. On a Mac, build PyTorch itself: mpsforge build", builds.ErrEnvironment, runtime.GOOS)
	}
	if dir == "" {
		dir = filepath.Join(cache, "roots", DebianSuite)
		if err := makeRoot(ctx, dir, cache, sink); err != nil {
			return nil, fmt.Errorf("make a root of %s's packages in %s: %w", DebianSuite, dir, err)
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	root := &Root{dir: dir, tools: filepath.Join(cache, "roots", "tools-"+strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-"))}
	return root, root.writeTools()
}

// packageList is the file in a root that names the packages in it.
const packageList = "packages.txt"

// makeRoot unpacks the packages beside dir and moves the result into place whole. A root that an earlier version of
// mpsforge made gets the packages that it lacks.
func makeRoot(ctx context.Context, dir, cache string, sink events.Sink) error {
	if _, missing, err := rootLacks(dir); err != nil || len(missing) == 0 {
		return err
	}
	// Builds in the root wait meanwhile, as do others that want to make it.
	unlock, err := Lock(ctx, cache, sink)
	if err != nil {
		return err
	}
	defer unlock()
	have, missing, err := rootLacks(dir)
	if err != nil || len(missing) == 0 {
		return err
	}
	finish := events.Step(sink, "root")
	defer finish(events.Failed, "")
	sink.Emit(events.StepProgress{Step: "root", Note: "package lists of " + DebianSuite})
	suite, err := apt.Open(ctx, filepath.Join(cache, "debian", DebianSuite+"-binary"), DebianSuite)
	if errors.Is(err, apt.ErrMissing) {
		return fmt.Errorf("%w: %w; or name the root folder of a Debian %s system with --root", builds.ErrEnvironment, err, DebianSuite)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	files, err := downloadPackages(ctx, suite, missing, filepath.Join(temporary, "packages"), dir, sink)
	if err != nil {
		return err
	}
	tree := dir
	if len(have) == 0 {
		tree = filepath.Join(temporary, "root")
		// Both the old names and the merged ones are in use; the package that makes the links is not among ours.
		for _, name := range []string{"bin", "lib", "lib64"} {
			if err := os.MkdirAll(filepath.Join(tree, "usr", name), 0o755); err != nil {
				return err
			}
			if err := os.Symlink("usr/"+name, filepath.Join(tree, name)); err != nil {
				return err
			}
		}
	}
	var names []string
	for i, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), "_")
		if have[name] {
			continue // in use; apt knows nothing of what the root has
		}
		if _, err := (run.Command{Name: "dpkg-deb", Args: []string{"--extract", file, tree}, Dir: temporary}).Run(ctx); err != nil {
			return err
		}
		names = append(names, filepath.Base(file))
		sink.Emit(events.StepProgress{Step: "root", Done: int64(i + 1), Total: int64(len(files)), Note: filepath.Base(file)})
	}
	list, err := os.OpenFile(filepath.Join(tree, packageList), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = list.WriteString(strings.Join(names, "\n") + "\n")
	if err := errors.Join(err, list.Close()); err != nil {
		return err
	}
	if tree != dir {
		if err := os.Rename(tree, dir); err != nil {
			return err
		}
	}
	finish(events.OK, fmt.Sprintf("%d packages", len(names)))
	return nil
}

// downloadPackages downloads what a root lacks into a folder.
func downloadPackages(ctx context.Context, suite *apt.Suite, missing []string, folder, root string, sink events.Sink) ([]string, error) {
	if err := suite.Update(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", builds.ErrEnvironment, err)
	}
	download, unpacked, err := suite.Size(ctx, missing, folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", builds.ErrEnvironment, err)
	}
	if err := builds.Downloading(sink, filepath.Dir(root), "Debian's packages for host builds", download, unpacked); err != nil {
		return nil, err
	}
	sink.Emit(events.StepProgress{Step: "root", Note: "download packages"})
	files, err := suite.Packages(ctx, missing, folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", builds.ErrEnvironment, err)
	}
	return files, nil
}

// rootLacks lists the packages that the root has, by name, and those that builds need and it lacks.
func rootLacks(dir string) (have map[string]bool, missing []string, err error) {
	list, err := os.ReadFile(filepath.Join(dir, packageList))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	have = map[string]bool{}
	for _, file := range strings.Fields(string(list)) {
		name, _, _ := strings.Cut(file, "_")
		have[name] = true
	}
	for _, name := range rootPackages {
		if !have[name] {
			missing = append(missing, name)
		}
	}
	return have, missing, nil
}

// Resources is the folder with the headers of the root's clang.
func (r *Root) Resources() string {
	return filepath.Join(r.llvm(), "lib/clang", clangVersion, "include")
}

func (r *Root) llvm() string { return filepath.Join(r.dir, "usr/lib/llvm-"+clangVersion) }

// LLVMFlags are those that a program which uses LLVM's library is compiled and linked with.
func (r *Root) LLVMFlags() []string {
	flags := []string{"-isystem", filepath.Join(r.llvm(), "include"), "-L" + filepath.Join(r.llvm(), "lib"), "-lLLVM-" + clangVersion,
		"-Wl,--disable-new-dtags", "-Wl,-rpath," + r.libraries()}
	if r.dir != "/" {
		flags = append(flags, "-Wl,--dynamic-linker="+r.loader())
	}
	return flags
}

// start is the shell command that becomes a program of the root. The program gets name as its own name, where one is
// given, and the libraries preload are loaded before its own, in this order.
func (r *Root) start(program, name string, preload ...string) string {
	if r.dir == "/" {
		if len(preload) > 0 {
			program = fmt.Sprintf("env LD_PRELOAD='%s' %s", strings.Join(preload, ":"), program)
		}
		return "exec " + program
	}
	path := append(r.libraryPath(), filepath.Join(r.llvm(), "lib"))
	options := fmt.Sprintf("--library-path '%s'", strings.Join(path, ":"))
	if len(preload) > 0 {
		options += fmt.Sprintf(" --preload '%s'", strings.Join(preload, ":"))
	}
	if name != "" {
		options += fmt.Sprintf(" --argv0 '%s'", name)
	}
	return fmt.Sprintf("exec '%s' %s '%s'", r.loader(), options, program)
}

// toolsWriting keeps two builds of one process from writing the scripts at once.
var toolsWriting sync.Mutex

// writeTools writes the scripts that start the root's programs.
func (r *Root) writeTools() error {
	llvm := r.llvm()
	clang := fmt.Sprintf(" -no-canonical-prefixes -resource-dir '%s/lib/clang/%s'", llvm, clangVersion)
	python := "export PYTHONDONTWRITEBYTECODE=1\n"
	if r.dir != "/" {
		clang += fmt.Sprintf(" --sysroot='%s'", r.dir)
		python += fmt.Sprintf("export PYTHONHOME='%s/usr' PYTHONPATH=\"${PYTHONPATH:+$PYTHONPATH:}%s/usr/lib/python3/dist-packages\"\n", r.dir, r.dir)
	}
	scripts := map[string]string{
		"clang":           r.start(filepath.Join(llvm, "bin/clang"), "") + clang,
		"ld.lld":          r.start(filepath.Join(llvm, "bin/lld"), "") + " -flavor gnu",
		"ld64":            r.start(filepath.Join(llvm, "bin/lld"), "") + " -flavor darwin",
		"llvm-cov":        r.start(filepath.Join(llvm, "bin/llvm-cov"), ""),
		"llvm-cxxfilt":    r.start(filepath.Join(llvm, "bin/llvm-cxxfilt"), ""),
		"llvm-objdump":    r.start(filepath.Join(llvm, "bin/llvm-objdump"), ""),
		"llvm-nm":         r.start(filepath.Join(llvm, "bin/llvm-nm"), ""),
		"llvm-profdata":   r.start(filepath.Join(llvm, "bin/llvm-profdata"), ""),
		"llvm-symbolizer": r.start(filepath.Join(llvm, "bin/llvm-symbolizer"), ""),
		"ccache":          r.start(filepath.Join(r.dir, "usr/bin/ccache"), ""),
		"python3":         python + r.start(filepath.Join(r.dir, "usr/bin/python3"), ""),
	}
	if err := WriteScripts(r.tools, scripts); err != nil {
		return err
	}
	for _, file := range []string{filepath.Join(llvm, "bin/clang"), filepath.Join(llvm, "bin/lld"), filepath.Join(llvm, "include/llvm/IR/Module.h"),
		filepath.Join(r.dir, "usr/bin/ccache")} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%w: %s is not there; the root needs the packages %s", builds.ErrEnvironment, file, strings.Join(rootPackages, ", "))
		}
	}
	return nil
}

// WriteScripts writes programs of sh into a folder, by name; each becomes the program that its command starts, with its own arguments behind.
func WriteScripts(dir string, scripts map[string]string) error {
	toolsWriting.Lock()
	defer toolsWriting.Unlock()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, command := range scripts {
		text := "#!/bin/sh\n" + command + ` "$@"` + "\n"
		path := filepath.Join(dir, name)
		if have, err := os.ReadFile(path); err == nil && string(have) == text {
			continue
		}
		// A script that runs may be read while it is replaced.
		if err := atomicfile.WriteBytes(path, 0o755, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// With gives the root with other programs as some of its tools, by name; the scripts that start all of them are in a folder of their own.
func (r *Root) With(dir string, programs map[string]string) (*Root, error) {
	entries, err := os.ReadDir(r.tools)
	if err != nil {
		return nil, err
	}
	scripts := map[string]string{}
	for _, entry := range entries {
		scripts[entry.Name()] = "exec '" + cmp.Or(programs[entry.Name()], r.Tool(entry.Name())) + "'"
	}
	return &Root{dir: r.dir, tools: dir}, WriteScripts(dir, scripts)
}

// systemModules are what torchgen imports. Their versions are those that PyTorch 2.9.1 was tried with here, and PyPI has wheels of them for
// Python 3.10 to 3.14.
var systemModules = []string{"pyyaml==6.0.3", "typing-extensions==4.15.0"}

// SystemRoot gives a root of programs that are this system's own, which is a Mac: those given, ccache if there is one, and a Python of its
// own with what torchgen imports. SDK is the folder whose path must not be in what is made.
func SystemRoot(ctx context.Context, sdk, cache string, programs map[string]string, sink events.Sink) (*Root, error) {
	root := &Root{dir: sdk, tools: filepath.Join(cache, "tools"), bare: true}
	python := filepath.Join(cache, "python-"+builds.Digest(systemModules...)[:12])
	scripts := map[string]string{"ccache": "exec", "python3": "exec '" + python + "/bin/python3'"}
	if path, err := exec.LookPath("ccache"); err == nil {
		scripts["ccache"] = "exec '" + path + "'"
	}
	for name, program := range programs {
		scripts[name] = "exec '" + program + "'"
	}
	if err := WriteScripts(root.tools, scripts); err != nil {
		return nil, err
	}
	if builds.Exists(filepath.Join(python, "made")) {
		// It is there only as long as the Python that it was made with.
		whole := run.Command{Name: filepath.Join(python, "bin/python3"), Args: []string{"-c", "import yaml, typing_extensions"}, Dir: cache}
		if _, err := whole.Run(ctx); err == nil {
			return root, nil
		}
	}
	finish := events.Step(events.OrDiscard(sink), "a Python for torchgen")
	defer finish(events.Failed, "")
	for _, command := range []run.Command{{Name: "python3", Args: []string{"-m", "venv", "--clear", python}},
		{Name: filepath.Join(python, "bin/python3"), Args: append([]string{"-m", "pip", "install", "--quiet"}, systemModules...)}} {
		command.Dir = cache
		if _, err := command.Run(ctx); err != nil {
			return nil, fmt.Errorf("%w: a Python with %s, which torchgen needs: %w", builds.ErrEnvironment, strings.Join(systemModules, " and "), err)
		}
	}
	finish(events.OK, "")
	return root, os.WriteFile(filepath.Join(python, "made"), nil, 0o644) // it is whole
}
