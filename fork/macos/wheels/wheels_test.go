package wheels

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
)

// served is a wheel with these files behind an address.
func served(t *testing.T, names ...string) Wheel {
	t.Helper()
	var text bytes.Buffer
	archive := zip.NewWriter(&text)
	for _, name := range names {
		header := &zip.FileHeader{Name: name}
		header.SetMode(0o644)
		if strings.Contains(name, "bin/") {
			header.SetMode(0o755)
		}
		part := require.One(archive.CreateHeader(header))(t)
		require.One(part.Write([]byte("content of " + name)))(t)
	}
	require.NoError(t, archive.Close())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/one.whl" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(text.Bytes())
	}))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(text.Bytes())
	return Wheel{URL: server.URL + "/one.whl", SHA256: hex.EncodeToString(sum[:])}
}

func TestOnlyThePartsAreKept(t *testing.T) {
	cache := t.TempDir()
	dir := require.One(served(t, "a/one.h", "a/sub/two.h", "b/three.h").Get(t.Context(), cache, []string{"a/"}, nil))(t)
	files, err := builds.FilesBelow(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a/sub/two.h")); string(text) != "content of a/sub/two.h" {
		t.Errorf("%q, %v", text, err)
	}
}

// What goes wrong leaves nothing that a later run would take for the wheel.
func TestWhatIsNotTheWheelIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(w *Wheel)
		parts       []string
		files       []string
		want        string
		environment bool
	}{
		"another checksum":   {func(w *Wheel) { w.SHA256 = strings.Repeat("0", 64) }, []string{"a/"}, []string{"a/one.h"}, "its SHA-256 is", false},
		"another address":    {func(w *Wheel) { w.URL += "x" }, []string{"a/"}, []string{"a/one.h"}, "the server answers 404", true},
		"a part is missing":  {func(*Wheel) {}, []string{"a/", "z/"}, []string{"a/one.h"}, "it has no z/", false},
		"a path that climbs": {func(*Wheel) {}, []string{".."}, []string{"../one.h"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			w := served(t, c.files...)
			c.change(&w)
			_, err := w.Get(t.Context(), cache, c.parts, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, builds.ErrEnvironment) != c.environment {
				t.Errorf("%v", err)
			}
			if left, err := os.ReadDir(filepath.Join(cache, "wheels")); err != nil || len(left) != 0 || w.Have(cache, c.parts) {
				t.Errorf("left in the cache: %v, %v", left, err)
			}
		})
	}
}

// What begins with the rest of a part with a "!" is left out, and a program stays one.
func TestPartsLeftOut(t *testing.T) {
	dir, err := served(t, "a/lib/libone.so", "a/lib/libcuda.so.1", "a/bin/program").Get(t.Context(), t.TempDir(), []string{"a/", "!a/lib/libcuda"}, nil)
	require.NoError(t, err)
	files, err := builds.FilesBelow(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
	for path, want := range map[string]os.FileMode{"a/bin/program": 0o755, "a/lib/libone.so": 0o644} {
		if found, err := os.Stat(filepath.Join(dir, path)); err != nil || found.Mode() != want {
			t.Errorf("%s: %v, %v", path, found, err)
		}
	}
}

// A wheel whose checksum is not known here is the one that its index has a checksum of, wherever the link leads.
func TestAnIndexKnowsTheChecksum(t *testing.T) {
	w := served(t, "a/one.h")
	link := func(path, sum string) string {
		return `<a href="` + path + `#sha256=` + sum + `" data-core-metadata="true">one.whl</a><br>`
	}
	for name, c := range map[string]struct{ page, want string }{
		"a whole address":       {link("https://example.org/two.whl", w.SHA256) + link(w.URL, w.SHA256), ""},
		"a path on the server":  {link("/one.whl", w.SHA256), ""},
		"a path with an escape": {link("/../%6fne.whl", w.SHA256), ""},
		"another checksum":      {link("/one.whl", strings.Repeat("0", 64)), "its SHA-256 is"},
		"no checksum":           {`<a href="/one.whl">one.whl</a>`, "has no checksum of one.whl"},
		"another file":          {link("/two.whl", w.SHA256), "has no checksum of one.whl"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/index/" {
					_, _ = answer.Write([]byte(c.page))
					return
				}
				http.Redirect(answer, r, w.URL, http.StatusFound)
			}))
			defer server.Close()
			indexed := Wheel{URL: "https://example.org/one.whl", Index: server.URL + "/index/"}
			_, err := indexed.Get(t.Context(), t.TempDir(), []string{"a/"}, nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
