package upstream

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/stagetest"
)

// checkedPaths are what PyTorch's own checks of its Python sources read.
var checkedPaths = []string{
	"torch", "tools", "mypy_plugins", "mypy.ini", ".lintrunner.toml", "aten/src/ATen/native/native_functions.yaml", "aten/src/ATen/native/tags.yaml",
	"test/test_public_bindings.py", "test/allowlist_for_publicAPI.json",
}

// patchedCheckout writes those of the real tree of 2.6.0 with the series into a folder, and names the Python files below torch that
// the series adds or changes. The Python is that of the patched host build.
func patchedCheckout(t *testing.T) (dir, python, cache string, changed []string) {
	t.Helper()
	built, _ := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	if built.NoPython != "" {
		t.Skipf("SKIP PyTorch's own checks: %s", built.NoPython)
	}
	_, _, checkout, series, cache := hosttest.Inputs(t)
	stock := require.One(checkout.Files(t.Context(), checkedPaths, cache))(t)
	dir = filepath.Join(t.TempDir(), "pytorch")
	require.NoError(t, os.CopyFS(dir, os.DirFS(stock)))
	for _, patch := range series.Patches {
		for _, file := range patch.Files {
			name := file.Path()
			if !slices.ContainsFunc(checkedPaths, func(path string) bool { return name == path || strings.HasPrefix(name, path+"/") }) {
				continue
			}
			path := filepath.Join(dir, name)
			before, err := os.ReadFile(path)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			after := require.One(file.Apply(before))(t)
			require.NoError(t, os.WriteFile(path, after, 0o644))
			if strings.HasPrefix(name, "torch/") && strings.HasSuffix(name, ".py") && !slices.Contains(changed, name) {
				changed = append(changed, name)
			}
		}
	}
	return dir, built.Python, cache, changed
}

// What the series makes public in Python is in an __all__, and nothing else looks public: PyTorch's test says so. Its fourth test
// imports every module, for which Debian's torch lacks packages that have nothing to do with MPS.
func TestNewNamesArePublicAsUpstreamWants(t *testing.T) {
	dir, python, _, _ := patchedCheckout(t)
	args := []string{"test_public_bindings.py"}
	for _, name := range []string{"correct_module_names", "no_new_bindings", "no_new_reexport_callables"} {
		args = append(args, "TestPublicBindings.test_"+name)
	}
	// With CI set, PyTorch's run_tests asks for a package that writes XML.
	found, err := (run.Command{Name: python, Args: args, Dir: filepath.Join(dir, "test"), Env: run.Environment([]string{"CI="}, nil)}).Run(t.Context())
	if err != nil || !bytes.Contains(found.Stderr, []byte("\nRan 3 tests")) || !bytes.HasSuffix(found.Stderr, []byte("\nOK\n")) { // skips are behind OK
		t.Errorf("%v\n%s", err, found.Stderr)
	}
}

// The Python files that the series touches have types that PyTorch's mypy accepts, at its version and with its settings. The bindings'
// types are those that PyTorch's generator makes of torch/_C/__init__.pyi.in.
func TestTypesAreAsUpstreamWants(t *testing.T) {
	dir, python, cache, changed := patchedCheckout(t)
	if !slices.Contains(changed, "torch/mps/streams.py") {
		t.Fatalf("the series changes %v, and not torch/mps/streams.py", changed)
	}
	settings := require.One(os.ReadFile(filepath.Join(dir, ".lintrunner.toml")))(t)
	wanted := string(regexp.MustCompile(`mypy==[0-9.]+`).Find(settings))
	installed, err := (run.Command{Name: "sh", Args: []string{"ci/tool.sh", "mypy", cache}, Dir: "../../.."}).Run(t.Context())
	if err != nil {
		t.Skipf("SKIP mypy: cannot be installed: %v", err)
	}
	site := strings.TrimSuffix(strings.TrimSpace(string(installed.Stdout)), "/bin/mypy")
	if "mypy=="+strings.TrimPrefix(filepath.Base(site), "mypy-") != wanted {
		t.Fatalf(".lintrunner.toml wants %s, and ci/tool.sh installs %s: change the latter", wanted, filepath.Base(site))
	}
	// PyTorch's plugin compares versions, with a file that Debian's source package leaves out.
	require.File(t, filepath.Join(dir, ".ci/docker/requirements-ci.txt"), wanted+"\n")
	for _, args := range [][]string{
		{"-m", "tools.pyi.gen_pyi"},
		append([]string{"-m", "mypy", "--config-file", "mypy.ini", "--follow-imports", "silent", "--cache-dir", filepath.Join(cache, "mypy")}, changed...),
	} {
		found, err := (run.Command{Name: python, Args: args, Dir: dir, Env: run.Environment([]string{"PYTHONPATH=" + site}, nil)}).Run(t.Context())
		if err != nil {
			t.Fatalf("%v\n%s", err, found.Stdout)
		}
	}
}
