package host_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// The first wheel that can be had is taken, without CUDA's libraries, and what the cache has is not asked for again.
func TestLibtorchIsTheFirstThatCanBeHad(t *testing.T) {
	var text bytes.Buffer
	archive := zip.NewWriter(&text)
	for _, name := range []string{"torch/version.py", "torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so", "torchgen/gen.py",
		"functorch/__init__.py", "torch-2.9.1.dist-info/METADATA"} {
		require.One(archive.Create(name))(t)
	}
	require.NoError(t, archive.Close())
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/torch.whl" {
			http.NotFound(w, r)
			return
		}
		asked++
		_, _ = w.Write(text.Bytes())
	}))
	defer server.Close()
	sum := sha256.Sum256(text.Bytes())
	absent := patches.Wheel{URL: "https://example.org/torch.whl", Index: server.URL + "/index/"}
	present := patches.Wheel{URL: server.URL + "/torch.whl", SHA256: hex.EncodeToString(sum[:])}
	cache := t.TempDir()
	choices := []patches.Wheel{absent, present}
	if host.HaveLibtorch(choices, cache) {
		t.Error("an empty cache has it")
	}
	var dir string
	for range 2 {
		dir = require.One(host.FetchLibtorch(t.Context(), choices, cache))(t)
	}
	if asked != 1 || !host.HaveLibtorch(choices, cache) {
		t.Errorf("asked %d times", asked)
	}
	for path, want := range map[string]bool{"torch/lib/libtorch_cpu.so": true, "torch/lib/libtorch_cuda.so": false} {
		require.Equal(t, builds.Exists(filepath.Join(dir, path)), want, path, "is there")
	}
	if _, err := host.FetchLibtorch(t.Context(), []patches.Wheel{absent}, cache); !errors.Is(err, builds.ErrEnvironment) ||
		!strings.Contains(err.Error(), "--torch") {
		t.Errorf("%v", err)
	}
	damaged := present
	damaged.SHA256 = strings.Repeat("0", 64)
	_, err := host.FetchLibtorch(t.Context(), []patches.Wheel{damaged, present}, t.TempDir())
	require.Says(t, err, "its SHA-256 is", "a wheel with another checksum was passed over")
}
