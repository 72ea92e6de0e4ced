package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
)

// Host builds generate with the torchgen of the checkout: a line that is changed there is in the generated wrappers, and the headers,
// which it does not change, are those of the checkout without the change, at the same path.
func TestGeneratedWithTheCheckoutsTorchgen(t *testing.T) {
	root, torch, real, _, _ := hosttest.Inputs(t)
	tree := real.Dir()
	checkout := t.TempDir()
	for _, part := range []string{"torchgen", "aten/src/ATen/templates", "aten/src/ATen/native/native_functions.yaml", "aten/src/ATen/native/tags.yaml"} {
		to := filepath.Join(checkout, part)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.One(run.Command{Name: "cp", Args: []string{"-r", filepath.Join(tree, part), to}}.Run(t.Context()))(t)
	}
	const before, after = "// No device check", "// a line of this checkout"
	dest := filepath.Join(checkout, "torchgen/dest/register_dispatch_key.py")
	text := require.One(os.ReadFile(dest))(t)
	if !strings.Contains(string(text), before) {
		t.Fatalf("%s has no %q", dest, before)
	}
	require.NoError(t, os.WriteFile(dest, []byte(strings.ReplaceAll(string(text), before, after)), 0o644))
	cache := t.TempDir()
	generate := func(checkout string) (include, registration string) {
		t.Helper()
		include, registration, err := host.Generate(t.Context(), root, torch, checkout, cache, events.Discard)
		require.NoError(t, err)
		if headers, err := builds.FilesBelow(include); err != nil || len(headers) < 1000 {
			t.Fatalf("%d headers in %s: %v", len(headers), include, err)
		}
		return include, registration
	}
	include, registration := generate(checkout)
	if stockInclude, stock := generate(tree); stock == registration || stockInclude != include {
		t.Errorf("headers in %s and %s, registrations in %s and %s", include, stockInclude, registration, stock)
	}
	// Headers that were cleaned away are made again.
	require.NoError(t, os.RemoveAll(include))
	if again, _ := generate(checkout); again != include {
		t.Errorf("headers in %s, which were in %s", again, include)
	}
	files := require.One(filepath.Glob(filepath.Join(registration, "RegisterMPS*.cpp")))(t)
	changed := 0
	for _, file := range files {
		text := require.One(os.ReadFile(file))(t)
		if strings.Contains(string(text), before) {
			t.Errorf("%s is from another torchgen", file)
		}
		changed += strings.Count(string(text), after)
	}
	if changed < 100 {
		t.Errorf("wrappers with the changed line: %d in %v", changed, files)
	}
}
