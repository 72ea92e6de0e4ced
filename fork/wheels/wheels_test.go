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
)

// served is a wheel with these files behind an address.
func served(t *testing.T, names ...string) Wheel {
	t.Helper()
	var text bytes.Buffer
	archive := zip.NewWriter(&text)
	for _, name := range names {
		part, err := archive.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte("content of " + name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
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
	dir, err := served(t, "a/one.h", "a/sub/two.h", "b/three.h").Get(t.Context(), cache, []string{"a/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
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
