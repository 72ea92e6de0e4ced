package host

import (
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// standInTools take the place of a root's programs. Each leaves a file where it runs, as torchgen does; only compilations,
// which run where the sources are, write nothing but their object.
var standInTools = map[string]string{
	"python3": `while [ $# -gt 0 ]; do case "$1" in --install-dir) made=$2;; esac; shift; done
mkdir -p "$made" torch/csrc/inductor && echo torchgen > torch/csrc/inductor/c_shim.h
cat > "$made/RegisterMPS_0.cpp" <<'END'
at::Tensor wrapper_MPS__relu(const at::Tensor & self) {
  return at::native::relu_mps(self);
}
TORCH_LIBRARY_IMPL(aten, MPS, m) {
m.impl("relu", TORCH_FN(wrapper_MPS__relu));
}
END
`,
	"ccache": `while [ "$1" != -o ]; do shift; done; echo object > "$2"`,
	"clang": `case " $* " in *" -E "*) exit;; *objective-c++-header*) ;; *) echo linked > left-by-clang;; esac
while [ "$1" != -o ]; do shift; done; echo library > "$2"`,
	"llvm-nm": `echo symbols > left-by-nm; echo _ZN2at6native8relu_mpsERKNS_6TensorE`,
}

// TestHostBuildWritesIntoTheCacheOnly builds with programs that write where they run.
func TestHostBuildWritesIntoTheCacheOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("host builds run on Linux")
	}
	top := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.File(t, filepath.Join(top, name), text)
	}
	for name, script := range standInTools {
		write("tools/"+name, "#!/bin/sh\nset -e\n"+script)
	}
	for _, name := range []string{"native/native_functions.yaml", "native/tags.yaml", "templates/Register.cpp", "mps/MPSStream.mm",
		"native/mps/operations/Linear.mm"} {
		write("pytorch/aten/src/ATen/"+name, "text")
	}
	write("pytorch/version.txt", "2.6.0a0\n")
	write("torch/torchgen/gen.py", "")
	write("here/mine", "")
	t.Chdir(filepath.Join(top, "here"))
	before := filesAndFolders(t, top)

	native := fstest.MapFS{"metal/queue.cc": {}, "msl/include/metal_stdlib": {}, "shaders/run.h": {}}
	for _, path := range mslObjects {
		native[path] = &fstest.MapFile{}
	}
	built, err := Make(t.Context(), Options{
		Checkout: "../pytorch", Cache: "../cache", Flavour: builds.Thread, Jobs: 1, // the plain flavour would want the layouts of classes
		Root:   &Root{dir: top, tools: filepath.Join(top, "tools")},
		Torch:  &Torch{Version: "2.6.0", pythonPath: filepath.Join(top, "torch")},
		Facts:  patches.HostFacts{Sources: []string{"aten/src/ATen/mps"}},
		Native: native, Glue: fstest.MapFS{"scenarios/main.cc": {}},
	}, events.Discard)
	require.NoError(t, err)
	if built.Kernels != 1 || !builds.Exists(built.Library) {
		t.Errorf("it has built nothing: %+v", built)
	}
	for path := range filesAndFolders(t, top) {
		if folder, _, _ := strings.Cut(path, "/"); folder != "cache" && !before[path] {
			t.Errorf("%s is new, and not in the cache", path)
		}
	}
	// What torchgen leaves where it runs must not be found as a header instead of the libtorch's.
	generated, err := filepath.Glob(filepath.Join(top, "cache/generated/*/*"))
	if err != nil || len(generated) != 3 || filepath.Base(generated[0]) != "ATen" || filepath.Base(generated[1]) != "headers" ||
		filepath.Base(generated[2]) != "RegisterMPS_0.cpp" {
		t.Errorf("generated: %v, %v", generated, err)
	}
}

// filesAndFolders lists all that is below a folder.
func filesAndFolders(t *testing.T, top string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		all[name] = true
		return err
	})
	require.NoError(t, err)
	return all
}
