package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/fork/macos/build"
	"mpsforge/internal/apt"
	"mpsforge/internal/require"
)

// What building PyTorch 2.6.0 takes from Debian trixie: tools, compiler, and of the libraries that Debian's own build uses
// those that c10 and ATen's sources ask for when the settings below are off.
var (
	trixiePackages = strings.Fields(`cmake ninja-build clang-19 libstdc++-14-dev libc6-dev libc-bin binutils git dash bash coreutils sed grep
		python3 python3-dev python3-yaml python3-setuptools python3-typing-extensions
		libcpuinfo-dev libfmt-dev libfp16-dev libfxdiv-dev libpsimd-dev libpthreadpool-dev libsleef-dev libonnx-dev libprotobuf-dev libprotoc-dev
		protobuf-compiler pybind11-dev libeigen3-dev nlohmann-json3-dev libflatbuffers-dev libcpp-httplib-dev libblas-dev liblapack-dev libxnnpack-dev`)
	trixieSettings = strings.Fields(`USE_SYSTEM_LIBS=1 BLAS=Generic GENERIC_BLAS_LIBRARIES=blas ONNX_NAMESPACE=onnx CC=/usr/bin/clang-19 CXX=/usr/bin/clang++-19
		USE_MKLDNN=0 USE_XNNPACK=0 USE_FBGEMM=0 USE_KINETO=0 USE_ITT=0 USE_NUMA=0 USE_NNPACK=0 USE_PYTORCH_QNNPACK=0 USE_NUMPY=0 USE_OPENMP=0 USE_VALGRIND=0`)
)

// The build of PyTorch 2.6.0 itself, with Debian's patches and system libraries, in a trixie system: c10 whole, and a slice
// of ATen with all that is generated for it. The stamp is in the library; what did not change is not built again.
func TestBuildOfPyTorchItself(t *testing.T) {
	if os.Getenv("MPSFORGE_LONG_TESTS") == "" {
		t.Skip("SKIP TestBuildOfPyTorchItself: c10 is compiled, for five minutes; asked for by MPSFORGE_LONG_TESTS=1, as make unit does")
	}
	dir, _ := realTree(t)
	root := trixieRoot(t)
	mpsforge := filepath.Join(t.TempDir(), "mpsforge")
	goBuild := exec.Command("go", "build", "-tags", "urfave_cli_no_docs", "-o", mpsforge, ".")
	goBuild.Env = append(os.Environ(), "CGO_ENABLED=0") // it runs in the other system, too
	if output, err := goBuild.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	// A clone of its own: in the other system nothing is seen of the objects that realTree's clone shares.
	tree := filepath.Join(t.TempDir(), "pytorch")
	gitIn(t, ".", "clone", "-q", "--no-local", dir, tree)
	patchForDebian(t, root, tree)
	call := func(args ...string) []byte {
		t.Helper()
		args = append(append([]string{args[0], "--checkout", tree, "--baseline", "v2.6.0"}, args[1:]...), "--quiet")
		output, err := exec.Command(mpsforge, args...).Output()
		if err != nil {
			t.Fatalf("mpsforge %v: %v\n%s", args, err, stderrOf(err))
		}
		return output
	}
	compile := func() (built build.Built, took time.Duration) {
		t.Helper()
		args := []string{"/mpsforge", "build", "--json", "--quiet", "--checkout", "/pytorch", "--baseline", "v2.6.0", "--no-venv", "--launcher", "none",
			"--target", "c10"}
		for _, name := range []string{"Version", "TensorGeometry"} {
			args = append(args, "--target", "caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/"+name+".cpp.o")
		}
		for _, setting := range trixieSettings {
			args = append(args, "--set", setting)
		}
		command := inRoot(root, mpsforge, tree, args...)
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%v\n%s%s", err, output, stderrOf(err))
		}
		if err := json.Unmarshal(output, &struct{ Result *build.Built }{&built}); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return built, command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	library := filepath.Join(tree, "build/lib/libc10.so")
	stampOf := func() builds.Stamp {
		t.Helper()
		return require.One(build.ReadStamp(library))(t)
	}

	if built, _ := compile(); built.Compiled < 90 {
		t.Errorf("commands run: %d", built.Compiled)
	}
	stock := stampOf()
	if stock.Tree != gitIn(t, tree, "rev-parse", "HEAD^{tree}") || len(stock.Patches) != 0 || stock.Changes == "" ||
		!strings.Contains(strings.Join(stock.Toolchain, " "), "clang version 19") {
		t.Errorf("the stamp of stock: %+v", stock)
	}
	if built, took := compile(); built.Compiled != 0 {
		t.Errorf("nothing has changed, and commands were run: %d", built.Compiled)
	} else {
		t.Logf("a build with nothing to do took %s of processor time", took)
	}
	// The series touches the MPS backend and a header of ATen's: c10 gets its new stamp, compiled and linked, and no more; of
	// ATen what includes that header. It touches torchgen, too, so that CMake configures again.
	call("apply")
	if built, _ := compile(); built.Compiled < 2 || built.Compiled > 10 {
		t.Errorf("applied; commands run: %d", built.Compiled)
	}
	patched := stampOf()
	if patched.Tree == stock.Tree || len(patched.Patches) == 0 || patched.Series == "" || patched.Changes != stock.Changes {
		t.Errorf("the stamp of patched: %+v", patched)
	}
	call("unapply")
	compile()
	again := require.One(stampOf().Text())(t)
	if first, err := stock.Text(); err != nil || first != again {
		t.Errorf("the same tree, another stamp, %v:\n%s\n%s", err, first, again)
	}
}

func stderrOf(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.Stderr
	}
	return nil
}

// inRoot is a command that runs in the trixie system, in mounts of its own that end with it.
func inRoot(root, mpsforge, tree string, args ...string) *exec.Cmd {
	const script = `set -e
mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; mount --bind "$2" "$1/mpsforge"; mount --bind "$3" "$1/pytorch"; root=$1; shift 3
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory "GIT_CONFIG_VALUE_0=*" "$@"`
	command := exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, "sh", root, mpsforge, tree}, args...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return command
}

// trixieRoot is a Debian trixie system with what the build takes, kept in the cache. It skips by name where no mirror
// serves the packages, or where nobody may change root.
func trixieRoot(t *testing.T) string {
	t.Helper()
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
		t.Skipf("SKIP build of PyTorch itself: it runs in a Debian trixie system by chroot, and that takes privileges: %v", err)
	}
	cache := require.One(cacheDir())(t)
	root := filepath.Join(cache, "roots", "trixie-build")
	wanted := []byte(strings.Join(trixiePackages, "\n"))
	if have, err := os.ReadFile(filepath.Join(root, "packages.txt")); err == nil && bytes.Equal(have, wanted) {
		return root
	}
	suite, err := apt.Open(t.Context(), filepath.Join(cache, "debian", "trixie-build"), "trixie")
	if err == nil {
		err = suite.Update(t.Context())
	}
	making := filepath.Join(filepath.Dir(root), "making-trixie-build")
	var files []string
	if err == nil {
		fatal(t, os.RemoveAll(making))
		files, err = suite.Packages(t.Context(), trixiePackages, filepath.Join(making, "debs"))
	}
	if err != nil {
		t.Skipf("SKIP build of PyTorch itself: Debian's packages is not available here: %v", err)
	}
	for _, name := range []string{"bin", "lib", "lib64", "sbin"} {
		fatal(t, os.MkdirAll(filepath.Join(making, "usr", name), 0o755))
		fatal(t, os.Symlink("usr/"+name, filepath.Join(making, name)))
	}
	for _, name := range []string{"proc", "dev", "tmp", "root", "pytorch", "debian"} {
		fatal(t, os.MkdirAll(filepath.Join(making, name), 0o755))
	}
	fatal(t, os.WriteFile(filepath.Join(making, "mpsforge"), nil, 0o755))
	for _, file := range files {
		if output, err := exec.Command("dpkg-deb", "--extract", file, making).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	// These links are made by the packages' scripts, and no script runs here.
	libraries := filepath.Join(making, "usr/lib", map[bool]string{true: "aarch64-linux-gnu",
		false: "x86_64-linux-gnu"}[exists(filepath.Join(making, "usr/lib/aarch64-linux-gnu"))])
	for _, name := range []string{"blas", "lapack"} {
		for _, suffix := range []string{".so", ".so.3"} {
			fatal(t, os.Symlink(name+"/lib"+name+suffix, filepath.Join(libraries, "lib"+name+suffix)))
		}
	}
	if err := suite.Packaging(t.Context(), "pytorch", filepath.Join(making, "debian")); err != nil {
		t.Skipf("SKIP build of PyTorch itself: Debian's patches is not available here: %v", err)
	}
	fatal(t, os.WriteFile(filepath.Join(making, "packages.txt"), wanted, 0o644))
	fatal(t, os.RemoveAll(filepath.Join(making, "debs")))
	fatal(t, os.RemoveAll(root))
	fatal(t, os.Rename(making, root))
	return root
}

// patchForDebian puts Debian's patches on the tree: they make cmake take the system's libraries.
func patchForDebian(t *testing.T, root, tree string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "debian", "*.debian.tar.*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("Debian's patches in %s: %v, %v", root, found, err)
	}
	if output, err := exec.Command("tar", "--extract", "--file", found[0], "--directory", tree).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	list, err := os.ReadFile(filepath.Join(tree, "debian/patches/series"))
	fatal(t, err)
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			gitIn(t, tree, "apply", "--whitespace=nowarn", filepath.Join("debian/patches", line))
		}
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
