package overlay_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/host"
	"mpsforge/fork/overlay"
	"mpsforge/fork/wheels"
	"mpsforge/internal/apt"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

// pip is its own wheel, since Debian's Python brings none.
var pip = wheels.Wheel{
	URL:    "https://files.pythonhosted.org/packages/c9/bc/b7db44f5f39f9d0494071bddae6880eb645970366d0a200022a1a93d57f5/pip-25.0.1-py3-none-any.whl",
	SHA256: "c46efd13b6aa8279f33f2864459c8ce587ea6a1a59ee20de055868d8f7688f7f",
}

var startedAs = regexp.MustCompile(`--argv0 '[^']*'`)

// venv makes a virtual environment of a host build's Python, in which modules from more folders are found, too. Its interpreter is the
// host build's script, started under another name: Python finds pyvenv.cfg by it.
func venv(t *testing.T, interpreter string, more ...string) (environment python, site string) {
	t.Helper()
	script, err := os.ReadFile(interpreter)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own := filepath.Join(dir, "bin", "python3")
	text := startedAs.ReplaceAllString(string(script), "--argv0 '"+own+"'")
	if text == string(script) {
		t.Skip("SKIP virtual environments: Debian's Python is the system's, and cannot be started under another name")
	}
	site = filepath.Join(dir, "lib", "python3.13", "site-packages")
	for path, text := range map[string]string{
		own:                              text,
		filepath.Join(dir, "pyvenv.cfg"): "home = " + filepath.Dir(interpreter) + "\ninclude-system-site-packages = false\n",
		filepath.Join(site, "outer.pth"): strings.Join(more, "\n") + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return python{interpreter: own}, site
}

// runPip runs pip on an interpreter.
func (p installed) runPip(t *testing.T, interpreter string, args ...string) (output string, err error) {
	t.Helper()
	folder, err := pip.Get(t.Context(), p.cache, []string{"pip/"}, events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP pip: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return python{interpreter, folder}.run(t, nil, append([]string{"-m", "pip", "--disable-pip-version-check"}, args...)...)
}

// pipInEnvironments installs the wheel with pip, and removes it.
func (p installed) pipInEnvironments(t *testing.T) {
	outer, site := venv(t, p.interpreter)
	run := func(args ...string) {
		t.Helper()
		if output, err := p.runPip(t, outer.interpreter, args...); err != nil {
			t.Fatalf("pip %v: %v: %s", args, err, output)
		}
	}
	// --no-deps: Debian's torch is there, and asks for versions of others that Debian does not have.
	run("install", "--no-index", "--no-deps", "--no-cache-dir", p.wheel)
	inner, _ := venv(t, p.interpreter, site)
	for name, environment := range map[string]python{"a virtual environment": outer, "one inside of it": inner} {
		t.Run(name+" has the overlay", func(t *testing.T) {
			if s := environment.status(t); !s.Active || !strings.HasPrefix(s.Library, site) {
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("pip uninstall gives stock back", func(t *testing.T) {
		run("uninstall", "--yes", "mpsforge-overlay")
		if left, err := builds.FilesBelow(filepath.Join(site, overlay.Module)); err == nil {
			t.Errorf("left: %v", left)
		}
		if output, err := outer.run(t, nil, "-c", leftStock); err != nil || output != "False 2.0\n" {
			t.Errorf("%v: %s", err, output)
		}
	})
}

// models runs a model of transformers with random weights on threads, and trains it through accelerate, with all of stock trapped.
func (p installed) models(t *testing.T) {
	python{p.trapped.interpreter, p.packages(t, "models", nil)}.must(t, "wrong: []", "testdata/models.py")
}

// vision runs torchvision on threads, with all of stock trapped: its compiled operators are refused by name, or fall back to the CPU.
func (p installed) vision(t *testing.T) {
	folder := p.packages(t, "vision", func(folder string) {
		// Debian's is for the libtorch of host builds; PyPI's is for PyPI's.
		suite, err := apt.Open(t.Context(), filepath.Join(p.cache, "debian", host.DebianSuite+"-binary"), host.DebianSuite)
		if err == nil {
			err = suite.Update(t.Context())
		}
		if err != nil {
			t.Skipf("SKIP torchvision: %v", err)
		}
		file, err := suite.Package(t.Context(), "python3-torchvision", t.TempDir())
		if err == nil {
			_, err = run.Command{Name: "dpkg-deb", Args: []string{"--extract", file, folder}, Dir: folder}.Run(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	over := python{p.trapped.interpreter, folder + ":" + filepath.Join(folder, "usr/lib/python3/dist-packages")}
	for _, fallback := range []string{"0", "1"} {
		output, err := over.run(t, []string{"PYTORCH_ENABLE_MPS_FALLBACK=" + fallback}, "testdata/vision.py")
		if err != nil || !strings.HasSuffix(output, "wrong: []\n") {
			t.Errorf("with PYTORCH_ENABLE_MPS_FALLBACK=%s: %v: %s", fallback, err, output)
		}
	}
}

// packages is a folder of the cache with what pip installs by testdata/NAME.txt, and with what more adds.
func (p installed) packages(t *testing.T, name string, more func(folder string)) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skipf("SKIP %s: testdata/%s.txt has the checksums of x86-64's wheels", name, name)
	}
	list := "testdata/" + name + ".txt"
	key, err := builds.FilesDigest(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(p.cache, "wheels", name+"-"+key[:16])
	if builds.Exists(folder) {
		return folder
	}
	temporary, err := os.MkdirTemp(filepath.Dir(folder), "making-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temporary)
	output, err := p.runPip(t, p.interpreter, "install", "--target", temporary, "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--require-hashes", "-r", list)
	if err != nil && strings.Contains(output, "Could not find a version") { // PyPI cannot be reached; another checksum is a failure
		t.Skipf("SKIP %s: %s", name, output)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if more != nil {
		more(temporary)
	}
	if err := os.Rename(temporary, folder); err != nil && !builds.Exists(folder) {
		t.Fatal(err)
	}
	return folder
}
