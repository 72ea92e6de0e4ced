//go:build cgo

package native

import (
	"go/build"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// cgoFolders are the folders that are cgo packages.
var cgoFolders = []string{"metal", "pool", "schedule", "script", "slots"}

var includeLine = regexp.MustCompile(`(?m)^\s*#\s*(?:include|import)\s+"([^"]+)"`)

// addIncludes adds to found the files that a file includes with quotes, directly and through others.
func addIncludes(t *testing.T, found map[string]bool, file string) {
	t.Helper()
	text := require.One(os.ReadFile(file))(t)
	for _, match := range includeLine.FindAllStringSubmatch(string(text), -1) {
		if included := path.Join(path.Dir(file), match[1]); !found[included] {
			found[included] = true
			addIncludes(t, found, included)
		}
	}
}

// The rule of the package comment: what a cgo package includes is in its own folder, or in one that embeds its headers and
// that the package imports. The framework sources of macOS count too.
func TestCgoPackagesImportWhatTheyInclude(t *testing.T) {
	packages := map[string]*build.Package{}
	for _, folder := range cgoFolders {
		found := require.One(build.ImportDir(folder, 0))(t)
		packages[folder] = found
	}
	outside := 0
	for _, folder := range cgoFolders {
		files := require.One(filepath.Glob(folder + "/*"))(t)
		included := map[string]bool{}
		for _, file := range files {
			addIncludes(t, included, file)
		}
		folders := map[string]string{} // with an example
		for file := range included {
			if path.Dir(file) != folder {
				folders[path.Dir(file)] = file
			}
		}
		for other, file := range folders {
			outside++
			if !slices.Contains(packages[folder].Imports, "mpsforge/native/"+other) {
				t.Errorf("native/%s includes native/%s, and does not import mpsforge/native/%s: Go's build cache would not see that header change",
					folder, file, other)
			}
			if packages[other] == nil || !slices.Contains(packages[other].EmbedPatterns, "*.h") {
				t.Errorf("native/%s includes native/%s, and native/%s embeds no *.h: Go's build cache would not see that header change", folder, file, other)
			}
		}
	}
	if outside == 0 {
		t.Error("no package includes anything of another folder: this test read nothing")
	}
}

// A header is edited in a copy of the tree, with Go's build cache warm: what includes it must be compiled again. With
// -trimpath the folder's name does not count, so that `make build` warms the cache for the copy too.
func TestGoSeesAnEditedHeader(t *testing.T) {
	if os.Getenv("MPSFORGE_LONG_TESTS") == "" {
		t.Skip("SKIP TestGoSeesAnEditedHeader: a copy of all cgo packages is built; asked for by MPSFORGE_LONG_TESTS=1, as make unit does")
	}
	root := t.TempDir()
	native := filepath.Join(root, "native")
	for _, name := range []string{"go.mod", "go.sum"} {
		copyFile(t, filepath.Join("..", name), filepath.Join(root, name))
	}
	for _, folder := range cgoFolders {
		files := require.One(filepath.Glob(folder + "/*"))(t)
		for _, file := range files {
			copyFile(t, file, filepath.Join(native, file))
		}
	}
	compile := func(folders ...string) (string, error) {
		command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-v") // -v: it names what it compiles
		for _, folder := range folders {
			command.Args = append(command.Args, "./native/"+folder)
		}
		command.Dir = root
		said, err := command.CombinedOutput()
		return string(said), err
	}
	if said, err := compile(cgoFolders...); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}

	if said, err := compile(cgoFolders...); err != nil || said != "" {
		t.Fatalf("a second build without an edit is to find everything in the cache: %v\n%s", err, said)
	}

	const broken = `#include "a header that is not there"` + "\n" // the compiler stops here; it reads on after an #error
	for _, one := range []struct{ header, text, includer string }{
		{"schedule/sync.h", broken, "metal"},
		{"schedule/sync.h", broken, "pool"},
		{"metal/metal.h", broken, "pool"},
		{"pool/pool.h", broken, "script"},
		{"script/script.h", broken, "script"},
		{"slots/slots.h", broken, "slots"},
		{"schedule/random.h", broken, "slots"},
		// This compiles in schedule itself, to the same code as before: only the embedded header differs. Go gives the compiler
		// the package's folder with -I.
		{"schedule/sync.h", `#if __has_include("metal.h")` + "\n" + broken + "#endif\n", "metal"},
	} {
		edited := filepath.Join(native, one.header)
		before := require.One(os.ReadFile(edited))(t)
		require.NoError(t, os.WriteFile(edited, append(slices.Clip(before), one.text...), 0o600))
		said, err := compile(one.includer)
		if err == nil {
			t.Errorf("native/%s was not compiled again after an edit of native/%s:\n%s", one.includer, one.header, one.text)
		} else if !strings.Contains(said, "a header that is not there") {
			t.Errorf("native/%s after an edit of native/%s: %v\n%s", one.includer, one.header, err, said)
		}
		require.NoError(t, os.WriteFile(edited, before, 0o600))
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data := require.One(os.ReadFile(from))(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, data, 0o600))
}
