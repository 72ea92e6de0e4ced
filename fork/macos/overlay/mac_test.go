package overlay_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/overlay"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/require"
	"mpsforge/native"
	"mpsforge/patches"
)

// macWheel is a wheel for macOS whose library, and whose torch's, are a few words.
type macWheel struct{ file, stock string }

// version is the part of the file's name.
func (w macWheel) version() string { return strings.Split(filepath.Base(w.file), "-")[1] }

var macFacts = patches.MacFacts{Git: "abc", LibtorchCPU: []string{strings.Repeat("0", 64)}}

func makeMacWheel(t *testing.T) macWheel {
	t.Helper()
	top := t.TempDir()
	build := builds.Stamp{Format: builds.StampFormat, Kind: "overlay", Series: strings.Repeat("5", 64)}
	stamp, err := build.Text()
	require.NoError(t, err)
	require.Files(t, top, map[string]string{
		"torch/lib/libtorch_cpu.dylib":    "torch's copy",
		"built/libmpsforge_overlay.dylib": "the overlay " + stamp + "\x00",
		"checkout/torch/mps/__init__.py":  "patched",
		"checkout/torch/library.py":       "patched",
	})
	w := macWheel{stock: filepath.Join(top, "torch/lib/libtorch_cpu.dylib")}
	facts := macFacts
	sum := require.One(builds.FileSHA256(w.stock))(t)
	facts.LibtorchCPU = append(facts.LibtorchCPU, sum)
	w.file, err = overlay.WheelForMac(facts, build, w.stock, filepath.Join(top, "built/libmpsforge_overlay.dylib"), filepath.Join(top, "checkout"),
		filepath.Join(top, "dist"))
	require.NoError(t, err)
	return w
}

func TestWheelForMacSaysThatItHasNotRun(t *testing.T) {
	w, site := makeMacWheel(t), t.TempDir()
	if base := filepath.Base(w.file); !regexp.MustCompile(
		`^mpsforge_overlay-2\.6\.0\+mpsforge\.555555555555\.w[0-9a-f]{8}-py3-none-macosx_11_0_arm64\.whl$`).MatchString(base) {
		t.Errorf("the wheel is called %s", base)
	}
	require.NoError(t, wheels.Unpack(w.file, site, []string{""}))
	text, err := os.ReadFile(filepath.Join(site, "mpsforge_overlay-"+w.version()+".dist-info/METADATA"))
	if err != nil || !strings.Contains(string(text), "\nRequires-Dist: torch (==2.6.0)\n") || !strings.Contains(string(text), "not run on a Mac") {
		t.Errorf("%v:\n%s", err, text)
	}
}

// Python passes as many arguments as the header's functions have. On Linux one too many arrives all the same; on a Mac it does not, as ctypes
// takes such a function for a variadic one.
func TestPythonCallsWhatTheHeaderDeclares(t *testing.T) {
	root, _ := hosttest.Root(t)
	header := require.One(native.Overlay.ReadFile("overlay/overlay.h"))(t)
	declared := map[string]int{}
	for _, function := range regexp.MustCompile(`(?s)\nint mpsforge_overlay_(\w+)\(([^)]*)\);`).FindAllSubmatch(header, -1) {
		declared[string(function[1])] = 0
		if parameters := string(function[2]); parameters != "void" {
			declared[string(function[1])] = 1 + strings.Count(parameters, ",")
		}
	}
	code := require.One(native.Overlay.ReadFile("overlay/python/mpsforge_overlay/_library.py"))(t)
	output := require.One(exec.CommandContext(t.Context(), root.Tool("python3"), "-c",
		string(code)+"\nimport json\nprint(json.dumps({name: len(types) for name, types in _FUNCTIONS.items()}))").Output())(t)
	var called map[string]int
	if err := json.Unmarshal(output, &called); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if len(declared) < 20 || !maps.Equal(declared, called) {
		t.Errorf("overlay.h declares functions with so many parameters: %v; _library.py calls %v", declared, called)
	}
}

func TestWheelOverAnUnknownLibraryIsRefused(t *testing.T) {
	_, err := overlay.WheelForMac(macFacts, builds.Stamp{}, makeMacWheel(t).stock, "", "", t.TempDir())
	require.Says(t, err, "mac.json of v2.6.0 does not name")
}

// pip on Linux can do for a Mac all but run.
func TestPipTakesTheWheelForMac(t *testing.T) {
	root, cache := hosttest.Root(t)
	install := func(file, platform string) (site, output string, err error) {
		site = t.TempDir()
		output, err = hosttest.Pip(t, cache, root.Tool("python3"), "install", "--no-index", "--no-deps", "--no-compile", "--only-binary=:all:",
			"--platform", platform, "--target", site, file)
		return site, output, err
	}
	w := makeMacWheel(t)
	t.Run("each file is as RECORD says", func(t *testing.T) {
		site, output, err := install(w.file, "macosx_11_0_arm64")
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		record := require.One(os.ReadFile(filepath.Join(site, "mpsforge_overlay-"+w.version()+".dist-info/RECORD")))(t)
		rows, err := csv.NewReader(bytes.NewReader(record)).ReadAll()
		if err != nil || len(rows) < 12 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for _, row := range rows {
			if info, err := os.Stat(filepath.Join(site, row[0])); err != nil || row[2] != "" && row[2] != fmt.Sprint(info.Size()) {
				t.Errorf("%q: %v", row, err)
			}
		}
	})
	t.Run("another system is refused", func(t *testing.T) {
		if _, output, err := install(w.file, "macosx_11_0_x86_64"); err == nil || !strings.Contains(output, "is not a supported wheel on this platform") {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("a damaged wheel is refused", func(t *testing.T) {
		data := require.One(os.ReadFile(w.file))(t)
		data[200] ^= 0xff
		damaged := filepath.Join(t.TempDir(), filepath.Base(w.file))
		require.NoError(t, os.WriteFile(damaged, data, 0o644))
		if _, output, err := install(damaged, "macosx_11_0_arm64"); err == nil {
			t.Errorf("pip installed it: %s", output)
		}
	})
}

// The wheel and its torch are pinned together: pip takes both or neither, and never another torch.
func TestPipResolvesTheWheelForMac(t *testing.T) {
	root, cache := hosttest.Root(t)
	w := makeMacWheel(t)
	both := "mpsforge-overlay-" + w.version()
	for name, c := range map[string]struct {
		requirements []string
		finds        []string
	}{
		"with its torch":       {[]string{"torch==2.6.0", w.file}, []string{"Would install", both, "torch-2.6.0"}},
		"alone":                {[]string{w.file}, []string{"Would install", both, "torch-2.6.0"}},
		"with another torch":   {[]string{"torch==2.9.1", w.file}, []string{"ResolutionImpossible"}},
		"with a newer one":     {[]string{"torch>2.6", w.file}, []string{"ResolutionImpossible"}},
		"with one's own torch": {[]string{"torch", w.file}, []string{"Would install", both, "torch-2.6.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := hosttest.ResolveForMac(t, cache, root.Tool("python3"), c.requirements...)
			if strings.Contains(output, "requirement torch") && strings.Contains(output, "(from versions: none)") {
				t.Skipf("SKIP resolution for a Mac: PyPI cannot be reached: %s", output)
			}
			for _, text := range c.finds {
				if !strings.Contains(output, text) || (err != nil) != (c.finds[0] == "ResolutionImpossible") {
					t.Fatalf("no %q: %v\n%s", text, err, output)
				}
			}
		})
	}
}

// loadOnMac asks the wheel's Python, on Linux, whether it would load over a torch with the names of macOS.
const loadOnMac = `
import sys, types
sys.path.insert(0, sys.argv[1])
from mpsforge_overlay import _loading
_loading.images = lambda: ["/usr/lib/libSystem.B.dylib", sys.argv[2]]
print(_loading.mismatch(types.SimpleNamespace(__version__=sys.argv[3], version=types.SimpleNamespace(git_version=sys.argv[4]))))
`

func TestWheelForMacLeavesStockWhereAnythingDiffers(t *testing.T) {
	root, _ := hosttest.Root(t)
	w := makeMacWheel(t)
	for name, c := range map[string]struct {
		change func(t *testing.T, site string)
		torch  string
		git    string
		stock  string
		why    string
	}{
		"nothing":          {nil, "2.6.0", "abc", w.stock, "\n"},
		"another version":  {nil, "2.9.1", "abc", w.stock, "it is for torch 2.6.0"},
		"another commit":   {nil, "2.6.0", "abd", w.stock, "it is for torch of commit abc"},
		"another library":  {nil, "2.6.0", "abc", filepath.Join(filepath.Dir(w.file), "libtorch_cpu.dylib"), "is another file"},
		"a torch of Linux": {nil, "2.6.0", "abc", "/torch/lib/libtorch_cpu.so", "has not loaded libtorch_cpu.dylib"},
		"a damaged dylib":  {add("libmpsforge_overlay.dylib"), "2.6.0", "abc", w.stock, "its own libmpsforge_overlay.dylib is damaged"},
		"a damaged module": {add("_bindings.py"), "2.6.0", "abc", w.stock, "its own Python files are damaged"},
		"a damaged stamp":  {add("stamp.json"), "2.6.0", "abc", w.stock, "its stamp cannot be read"},
		"a forged stamp": {func(t *testing.T, site string) {
			file := filepath.Join(site, overlay.Module, "stamp.json")
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, bytes.ReplaceAll(text, []byte(`\"kind\":\"overlay\"`), []byte(`\"kind\":\"planted\"`)), 0o644)
			}
			require.NoError(t, err)
		}, "2.6.0", "abc", w.stock, "has another stamp than its stamp.json"},
	} {
		t.Run(name, func(t *testing.T) {
			site := t.TempDir()
			require.NoError(t, wheels.Unpack(w.file, site, []string{""}))
			if c.change != nil {
				c.change(t, site)
			}
			// Another library of that name.
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(w.file), "libtorch_cpu.dylib"), []byte("another"), 0o644))
			output, err := exec.CommandContext(t.Context(), root.Tool("python3"), "-c", loadOnMac, site, c.stock, c.torch, c.git).CombinedOutput()
			if err != nil || !strings.Contains(string(output), c.why) || name == "nothing" && string(output) != "\n" {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// add changes a file of the installed package.
func add(name string) func(t *testing.T, site string) {
	return func(t *testing.T, site string) {
		file, err := os.OpenFile(filepath.Join(site, overlay.Module, name), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = file.WriteString("planted")
		}
		if err == nil {
			err = file.Close()
		}
		require.NoError(t, err)
	}
}
