package wheels

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// FuzzUnpack: whatever a wheel is, nothing is written but files below the folder.
func FuzzUnpack(f *testing.F) {
	for _, names := range [][]string{{"a/one.h", "a/sub/two.h"}, {"a/../../out"}, {"a/", "a/x", "a/x/y"}, {"a/\x00", "a//b", "a/./c"}} {
		var text bytes.Buffer
		archive := zip.NewWriter(&text)
		for _, name := range names {
			part := require.One(archive.Create(name))(f)
			if _, err := part.Write([]byte(name)); err != nil && !strings.HasSuffix(name, "/") {
				f.Fatal(err)
			}
		}
		require.NoError(f, archive.Close())
		f.Add(text.Bytes())
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		outer := t.TempDir()
		file, dir := filepath.Join(outer, "wheel"), filepath.Join(outer, "unpacked", "here")
		require.NoError(t, os.WriteFile(file, archive, 0o600))
		_ = Unpack(file, dir, []string{"a/"})
		for folder, allowed := range map[string]string{outer: "wheel unpacked", filepath.Join(outer, "unpacked"): "here", dir: "a"} {
			entries, err := os.ReadDir(folder)
			if err != nil {
				continue // nothing was unpacked
			}
			for _, entry := range entries {
				if !bytes.Contains([]byte(allowed), []byte(entry.Name())) || !entry.IsDir() && entry.Name() != "wheel" {
					t.Errorf("%s is in %s", entry.Name(), folder)
				}
			}
		}
	})
}
