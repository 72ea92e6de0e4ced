package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
)

// A libtorch that was built for CUDA loads no CUDA code: what is asked for when there is no GPU is answered, and any other
// function of CUDA's ends the process and says which one it was. A library of CUDA's that is installed is not loaded.
func TestALibtorchForCUDALoadsNone(t *testing.T) {
	root, _ := hosttest.Root(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.File(t, path, text)
		return path
	}
	compile := func(output, source string, flags ...string) {
		t.Helper()
		// In two steps: the root's clang does not find its libraries when it starts itself.
		for _, args := range [][]string{{"-c", "-fPIC", "-o", source + ".o", source},
			append([]string{"--ld-path=" + root.Tool("ld.lld"), "-o", output, source + ".o"}, flags...)} {
			command := run.Command{Name: root.Tool("clang"), Args: append([]string{"--driver-mode=g++"}, args...), Dir: dir}
			if result, err := command.Run(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, result.Stdout)
			}
		}
	}
	library := func(name, text string, flags ...string) {
		t.Helper()
		lib := filepath.Join(dir, "torch/lib")
		compile(filepath.Join(lib, name), write(name+".cc", text), append([]string{"-shared", "-L" + lib, "-Wl,-soname," + name}, flags...)...)
	}
	write("torch/include/torch/csrc/api/include/torch/version.h", "#define TORCH_VERSION \\\n  \"2.9.1\"\n")
	write("torch/version.py", "cuda: Optional[str] = '12.8'\n")
	write("torch/lib/.keep", "")
	write("torchgen/gen.py", "")
	// CUDA's own libraries, as they are installed: any of their code ends the process.
	const loaded = "#include <cstdlib>\nstruct Loaded { Loaded() { _Exit(99); } } loaded;\n"
	library("libcudart.so.12", loaded+`extern "C" int cudaGetDeviceCount(int*) { return 0; } extern "C" int cudaMalloc() { return 0; }`,
		"-Wl,--version-script="+write("cudart.map", "libcudart.so.12 { *; };\n"))
	library("libtorch_cuda.so", loaded+`struct Graph { virtual ~Graph(); int replay(); }; Graph::~Graph() {} int Graph::replay() { return 1; }
namespace c10::cuda { signed char device_count() { return 1; } } long table[4];`)
	library("libtorch_cpu.so", `#include <typeinfo>
extern "C" int cudaGetDeviceCount(int*); extern "C" int cudaMalloc();
struct Graph { virtual ~Graph(); int replay(); };
namespace c10::cuda { signed char device_count(); } extern long table[4];
extern "C" const char* ask() { int n = 5; return cudaGetDeviceCount(&n) == 100 && n == 0 && c10::cuda::device_count() == 0 && table[3] == 0 ? typeid(Graph).name() : "wrong"; }
extern "C" int replay(Graph* g) { return g->replay(); }
extern "C" int allocate() { return cudaMalloc(); }`, "-l:libcudart.so.12", "-l:libtorch_cuda.so", "-Wl,-rpath,$ORIGIN", "-Wl,--disable-new-dtags")
	torch := require.One(host.OpenTorch(t.Context(), root, dir, nil, t.TempDir(), nil))(t)
	folder := torch.Libraries()[0]
	program := filepath.Join(dir, "program")
	compile(program, write("main.cc", `#include <cstdio>
extern "C" const char* ask(); extern "C" int replay(void*); extern "C" int allocate();
int main(int n, char** v) { std::printf("%s\n", ask()); std::fflush(stdout); return n == 1 ? 0 : v[1][0] == 'r' ? replay(nullptr) : allocate(); }`),
		"-L"+folder, "-ltorch_cpu", "-Wl,-rpath,"+folder, "-Wl,--disable-new-dtags", "-Wl,--dynamic-linker="+root.Loader())
	if root.Dir() != "/" {
		t.Setenv("LD_LIBRARY_PATH", strings.Join(torch.Libraries()[1:], ":"))
	}
	result, err := (run.Command{Name: program}).Run(t.Context())
	if err != nil || strings.TrimSpace(string(result.Stdout)) != "5Graph" {
		t.Errorf("what PyTorch asks is answered with %s: %v", result.Stdout, err)
	}
	for argument, name := range map[string]string{"replay": "Graph::replay()", "malloc": "cudaMalloc"} {
		_, err := (run.Command{Name: program, Args: []string{argument}}).Run(t.Context())
		require.Says(t, err, name+" was called, and there is no CUDA here", name)
	}
	for path, want := range map[string]bool{"torchgen/gen.py": true, "torch/version.py": true, "torch/lib/libtorch_cpu.so": true} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(folder)), path)); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}
