package patches

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// A patch of 1 GB is refused by its size, before it is read into memory. The file has a length and no content, so it takes no disk.
func TestAPatchOfOneGigabyteIsRefusedUnread(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, fixture(map[string]string{"f": "x\n"}, "large", good(changed("f", "x\n", "y\n")))))
	require.NoError(t, os.Truncate(filepath.Join(dir, "v1.0.0/large.patch"), 1<<30))
	for name, read := range map[string]func() error{
		"load": func() error { _, err := Load(os.DirFS(dir), "v1.0.0"); return err },
		"fix":  func() error { _, err := FixDir(dir, "v1.0.0"); return err },
		"lint": func() error {
			found, err := Lint(os.DirFS(dir), "v1.0.0", nil)
			if err == nil && len(found.Findings) > 0 {
				err = errors.New(found.Findings[0].Message)
			}
			return err
		},
	} {
		before := allocated()
		require.Says(t, read(), "large.patch is too large: 1.1 GB, at most 67.1 MB are read", name)
		if took := allocated() - before; took > mostBytes/4 {
			t.Errorf("%s allocated %d bytes", name, took)
		}
	}
}

// allocated is how many bytes were ever allocated.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// tiny is a patch of so many hunks that change a line of a file each, and the file.
func tiny(hunks int) (diff string, old []byte) {
	var from, to, body strings.Builder
	for i := range hunks {
		fmt.Fprintf(&from, "a%d\nb\nc\nd\n", i)
		fmt.Fprintf(&to, "a%d\nx\nc\nd\n", i)
		fmt.Fprintf(&body, "@@ -%d,3 +%d,3 @@\n a%d\n-b\n+x\n c\n", 4*i+1, 4*i+1, i)
	}
	head := fmt.Sprintf("diff --git a/f b/f\nindex %s..%s 100644\n--- a/f\n+++ b/f\n", blobID([]byte(from.String())), blobID([]byte(to.String())))
	return good(head + body.String()), []byte(from.String())
}

// What reading and applying a patch allocates grows with its hunks, and no faster.
func TestManyHunksTakeMemoryByTheirNumber(t *testing.T) {
	measure := func(hunks int) float64 {
		diff, old := tiny(hunks)
		before := allocated()
		patch := require.One(Parse("p", []byte(diff)))(t)
		require.One(patch.Files[0].Apply(old))(t)
		return float64(allocated() - before)
	}
	if few, many := measure(2000), measure(16000); many > 12*few {
		t.Errorf("8 times as many hunks allocate %.1f times as much", many/few)
	}
}

// BenchmarkHunks shows how the time for a patch grows with its hunks.
func BenchmarkHunks(b *testing.B) {
	for _, hunks := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(hunks), func(b *testing.B) {
			diff, old := tiny(hunks)
			for b.Loop() {
				patch, err := Parse("p", []byte(diff))
				if err == nil {
					_, err = patch.Files[0].Apply(old)
				}
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(hunks), "ns/hunk")
		})
	}
}
