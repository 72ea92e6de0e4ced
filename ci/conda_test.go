package ci_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// rattler is a Python with rattler-build, which reads conda's recipes as it would to build them.
func rattler(t *testing.T) (python string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIP in the short form: conda's recipes, with rattler-build from PyPI; go test -run Conda ./ci")
	}
	dir := t.TempDir()
	python = filepath.Join(dir, "bin", "python3")
	for _, args := range [][]string{{"python3", "-m", "venv", dir},
		{python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "py-rattler-build==0.73.0"}} {
		if output, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIP conda's recipes: %q: %v: %s", args, err, output)
		}
	}
	return python
}

// rendered is what of a recipe is looked at.
type rendered struct {
	Package struct{ Name, Version string }
	Source  []struct{ Path string }
	About   struct{ Description string }
}

// conda's recipes are rendered for the systems that they are for. Nothing is built, as conda's channels cannot be reached from here.
func TestCondaRecipesRender(t *testing.T) {
	python := rattler(t)
	render := func(t *testing.T, folder, platform string) (all []rendered, said string, err error) {
		t.Helper()
		var messages strings.Builder
		command := exec.CommandContext(t.Context(), python, "conda/render.py", folder, platform)
		command.Stderr = &messages
		text, err := command.Output()
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		return all, messages.String(), err
	}
	for recipe, versions := range map[string][]string{"mpsforge": {"0.0.0"}, "mpsforge-overlay": {"2.6.0", "2.9.1"}} {
		t.Run(recipe, func(t *testing.T) {
			all, said, err := render(t, "conda/"+recipe, "osx-arm64")
			if err != nil || len(all) != len(versions) {
				t.Fatalf("%d variants, %v: %s", len(all), err, said)
			}
			for i, one := range all {
				if one.Package.Name != recipe || one.Package.Version != versions[i] || !strings.Contains(one.About.Description, "Not run on a Mac yet.") {
					t.Errorf("%+v", one)
				}
				for _, source := range one.Source {
					path := filepath.Join("conda", recipe, source.Path)
					if _, err := os.Stat(path); err != nil && path != filepath.Join("..", "build", "release") {
						t.Errorf("no source %s", path)
					}
				}
			}
		})
	}
	t.Run("a field that conda does not know is refused", func(t *testing.T) {
		text := require.One(os.ReadFile("conda/mpsforge/recipe.yaml"))(t)
		dir := t.TempDir()
		planted := strings.Replace(string(text), "requirements:", "requirement:", 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "recipe.yaml"), []byte(planted), 0o644))
		if _, said, err := render(t, dir, "osx-arm64"); err == nil || !strings.Contains(said, "requirement") {
			t.Errorf("%v: %s", err, said)
		}
	})
}
