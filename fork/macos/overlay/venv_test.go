package overlay_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/overlay"
	"mpsforge/internal/require"
)

var startedAs = regexp.MustCompile(`--argv0 '[^']*'`)

// venv makes a virtual environment of a host build's Python, in which modules from more folders are found, too. Its interpreter is the
// host build's script, started under another name: Python finds pyvenv.cfg by it.
func venv(t *testing.T, interpreter string, more ...string) (environment python, site string) {
	t.Helper()
	script := require.One(os.ReadFile(interpreter))(t)
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
		require.File(t, path, text)
	}
	return python{interpreter: own}, site
}

// pipInEnvironments installs the wheel with pip, and removes it.
func (p installed) pipInEnvironments(t *testing.T) {
	outer, site := venv(t, p.interpreter)
	run := func(args ...string) {
		t.Helper()
		if output, err := hosttest.Pip(t, p.cache, outer.interpreter, args...); err != nil {
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
	t.Run("pip puts another series' wheel in its place, and this one back", func(t *testing.T) {
		for _, wheel := range []string{ofAnotherSeries(t, p.wheel), p.wheel} {
			run("install", "--no-index", "--no-deps", "--no-cache-dir", wheel)
			found, err := filepath.Glob(filepath.Join(site, "mpsforge_overlay-*.dist-info"))
			if err != nil || len(found) != 1 || !strings.Contains(found[0], strings.Split(filepath.Base(wheel), "-")[1]) {
				t.Errorf("%s: %q, %v", wheel, found, err)
			}
		}
	})
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

// ofAnotherSeries is a wheel with the same files under another version.
func ofAnotherSeries(t *testing.T, wheel string) string {
	t.Helper()
	version := strings.Split(filepath.Base(wheel), "-")[1]
	public, _, _ := strings.Cut(version, "+")
	other := public + "+mpsforge.000000000000"
	from := require.One(zip.OpenReader(wheel))(t)
	defer from.Close()
	var packed bytes.Buffer
	to := zip.NewWriter(&packed)
	for _, file := range from.File {
		reader := require.One(file.Open())(t)
		text := require.One(io.ReadAll(reader))(t)
		if strings.Contains(file.Name, ".dist-info/") {
			text = bytes.ReplaceAll(text, []byte(version), []byte(other))
		}
		writer, err := to.Create(strings.ReplaceAll(file.Name, version, other))
		if err == nil {
			_, err = writer.Write(text)
		}
		require.NoError(t, err)
	}
	path := filepath.Join(t.TempDir(), strings.ReplaceAll(filepath.Base(wheel), version, other))
	require.NoError(t, errors.Join(to.Close(), os.WriteFile(path, packed.Bytes(), 0o644)))
	return path
}

// models runs a model of transformers with random weights on threads, and trains it through accelerate, with all of stock trapped.
func (p installed) models(t *testing.T) {
	python{p.trapped.interpreter, hosttest.Packages(t, p.cache, p.interpreter, "testdata/models.txt", nil)}.must(t, "wrong: []", "testdata/models.py")
}

// vision runs torchvision on threads, with all of stock trapped: its compiled operators are refused by name, or fall back to the CPU.
func (p installed) vision(t *testing.T) {
	folder := hosttest.Packages(t, p.cache, p.interpreter, "testdata/vision.txt", func(folder string) {
		// Debian's is for the libtorch of host builds; PyPI's is for PyPI's.
		hosttest.Unpack(t, p.cache, "python3-torchvision", folder)
	})
	over := python{p.trapped.interpreter, folder + ":" + filepath.Join(folder, "usr/lib/python3/dist-packages")}
	for _, fallback := range []string{"0", "1"} {
		output, err := over.run(t, []string{"PYTORCH_ENABLE_MPS_FALLBACK=" + fallback}, "testdata/vision.py")
		if err != nil || !strings.HasSuffix(output, "wrong: []\n") {
			t.Errorf("with PYTORCH_ENABLE_MPS_FALLBACK=%s: %v: %s", fallback, err, output)
		}
	}
}
