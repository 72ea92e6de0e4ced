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
	"mpsforge/fork/overlay"
	"mpsforge/fork/wheels"
	"mpsforge/internal/events"
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
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIP transformers: testdata/models.txt has the checksums of x86-64's wheels")
	}
	key, err := builds.FilesDigest(nil, "testdata/models.txt")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(p.cache, "wheels", "models-"+key[:16])
	if !builds.Exists(folder) {
		temporary, err := os.MkdirTemp(filepath.Dir(folder), "making-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(temporary)
		output, err := p.runPip(t, p.interpreter, "install", "--target", temporary, "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--require-hashes", "-r", "testdata/models.txt")
		if err != nil && strings.Contains(output, "Could not find a version") { // PyPI cannot be reached; another checksum is a failure
			t.Skipf("SKIP transformers: %s", output)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		if err := os.Rename(temporary, folder); err != nil && !builds.Exists(folder) {
			t.Fatal(err)
		}
	}
	python{p.trapped.interpreter, folder}.must(t, "wrong: []", "testdata/models.py")
}
