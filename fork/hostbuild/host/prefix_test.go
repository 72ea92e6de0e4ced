package host_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
)

// A change of an inline function in a header, which leaves the source as it is, gives another object; a checkout elsewhere with the
// same text gets the same one from the cache.
func TestObjectsAreSharedByWhatIsCompiled(t *testing.T) {
	root, _, _, _, _ := hosttest.Inputs(t)
	cache, own := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	prefix := filepath.Join(own, "prefix.h")
	write(prefix, "#include <shared.h>\n")
	object := func(header string) string {
		t.Helper()
		checkout := t.TempDir()
		write(filepath.Join(checkout, "shared.h"), header)
		write(filepath.Join(checkout, "source.cc"), "#include <shared.h>\nint answer() { return shared(); }\n")
		made, err := host.CompileWithPrefix(t.Context(), root, cache, checkout, prefix, "source.cc", []string{"-x", "objective-c++", "-O0", "-I."})
		require.NoError(t, err)
		return string(made)
	}
	eleven := object("#pragma once\ninline int shared() { return 11; }\n")
	if eleven == object("#pragma once\ninline int shared() { return 12; }\n") {
		t.Error("two headers with different inline functions gave the same object")
	}
	before := host.CacheHits(t, root, cache)
	if eleven != object("#pragma once\ninline int shared() { return 11; }\n") {
		t.Error("the same text elsewhere gave another object")
	}
	if after := host.CacheHits(t, root, cache); before != 0 || after != 1 {
		t.Errorf("ccache had %d hits for other text, %d after the same text: want 0 and 1", before, after)
	}
}

// With ccache's own setting for a second storage, a folder or a server, a machine whose cache is empty gets the objects from there.
func TestObjectsComeFromARemoteCache(t *testing.T) {
	root, _, _, _, _ := hosttest.Inputs(t)
	stored := map[string][]byte{}
	var guard sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard.Lock()
		defer guard.Unlock()
		object, there := stored[r.URL.Path]
		switch {
		case r.Method == http.MethodPut:
			text, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			stored[r.URL.Path] = text
		case !there:
			http.NotFound(w, r)
		default:
			_, _ = w.Write(object)
		}
	}))
	defer server.Close()
	for name, storage := range map[string]string{"a folder": "file:" + t.TempDir(), "a server": server.URL} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CCACHE_REMOTE_STORAGE", storage)
			cache, checkout := t.TempDir(), t.TempDir()
			require.Files(t, checkout, map[string]string{"prefix.h": "#include <stddef.h>\n", "source.cc": "int answer() { return 42; }\n"})
			for _, want := range []int{0, 1} {
				require.NoError(t, os.RemoveAll(filepath.Join(cache, "ccache")))
				require.One(host.CompileWithPrefix(t.Context(), root, cache, checkout, filepath.Join(checkout, "prefix.h"), "source.cc",
					[]string{"-x", "objective-c++", "-O0"}))(t)
				require.Equal(t, host.CacheHits(t, root, cache), want, "hits")
			}
		})
	}
}

// A header that a patch adds, and that a source asks for by __has_include, is seen in a checkout that was compiled without it.
func TestHeaderThatHasComeIsSeen(t *testing.T) {
	root, _ := hosttest.Root(t)
	cache, checkout := t.TempDir(), t.TempDir()
	headers := filepath.Join(checkout, "aten/src/ATen/mps")
	require.NoError(t, os.MkdirAll(headers, 0o755))
	require.Files(t, checkout, map[string]string{"prefix.h": "#include <stddef.h>\n",
		"source.cc": "#if __has_include(<ATen/mps/New.h>)\nextern const char answer[];\nconst char answer[] = \"it has come\";\n" +
			"#endif\nint other() { return 1; }\n"})
	has := func() bool {
		t.Helper()
		flag := require.One(host.HeadersFlag(checkout))(t)
		text := require.One(host.CompileWithPrefix(t.Context(), root, cache, checkout, filepath.Join(checkout, "prefix.h"), "source.cc",
			append([]string{"-x", "objective-c++", "-O0", "-Iaten/src"}, flag...)))(t)
		return bytes.Contains(text, []byte("it has come"))
	}
	if has() {
		t.Fatal("it is there before it has come")
	}
	require.NoError(t, os.WriteFile(filepath.Join(headers, "New.h"), nil, 0o644))
	if !has() {
		t.Error("ccache gives the object of the checkout without the header")
	}
}

// What __has_include asks of the series is never there for a scenario that is compiled without its headers: the check would not be made.
func TestScenariosThatAskForHeadersSeeThem(t *testing.T) {
	asks := regexp.MustCompile(`__has_include\(<ATen/(native/)?mps/`)
	for _, path := range require.One(filepath.Glob("../../../native/torch/scenarios/*.cc"))(t) {
		if asks.Match(require.One(os.ReadFile(path))(t)) && !slices.Contains(host.SeriesDrivers(), filepath.Base(path)) {
			t.Errorf("%s asks for a header of the series, and is not one of host.seriesDrivers", path)
		}
	}
}

// A part of a scenario whose condition nothing defines is never compiled: it came from a file that defined it.
func TestConditionsOfScenariosAreDefined(t *testing.T) {
	asks := regexp.MustCompile(`(?m)^#if(?:def| defined\(?) ?(MPSFORGE_HAS_\w+)`)
	for _, path := range require.One(filepath.Glob("../../../native/torch/scenarios/*.cc"))(t) {
		text := require.One(os.ReadFile(path))(t)
		for _, asked := range asks.FindAllSubmatch(text, -1) {
			if !bytes.Contains(text, []byte("#define "+string(asked[1])+" ")) {
				t.Errorf("%s asks for %s and does not define it", path, asked[1])
			}
		}
	}
}

// Headers that are precompiled at once come back to folders that are the oldest ones, where many more are kept than may be.
func TestPrecompiledHeadersOfOldFoldersStay(t *testing.T) {
	root, _ := hosttest.Root(t)
	cache, checkout := t.TempDir(), t.TempDir()
	header := filepath.Join(checkout, "prefix.h")
	require.NoError(t, os.WriteFile(header, []byte("#include <stddef.h>\n"), 0o644))
	folders := filepath.Join(cache, "headers")
	for try := range 8 {
		old := time.Now().Add(-time.Hour)
		if err := host.PrecompileAtOnce(t.Context(), root, cache, checkout, header, 8); err != nil {
			t.Fatalf("try %d: %v", try, err)
		}
		made := require.One(os.ReadDir(folders))(t)
		for _, one := range made {
			dir := filepath.Join(folders, one.Name())
			require.NoError(t, errors.Join(os.RemoveAll(filepath.Join(dir, "prefix.pch")), os.Chtimes(dir, old, old)))
		}
		for i := range 100 { // newer ones, so that those are too many
			require.NoError(t, os.MkdirAll(filepath.Join(folders, fmt.Sprintf("other-%d-%d", try, i)), 0o755))
		}
	}
}
