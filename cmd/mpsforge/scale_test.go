package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
	"mpsforge/patches"
)

// scale is the size of a generated repository and of its series.
type scale struct{ files, patches, commits int }

// generated makes a repository of that size by git fast-import, with a series of patches that change a file each.
func generated(b *testing.B, size scale) *bench {
	b.Helper()
	dir := b.TempDir()
	x := &bench{b: b, mpsforge: filepath.Join(dir, "mpsforge"), tree: filepath.Join(dir, "tree"), peak: map[string]int64{}}
	x.must("go", "build", "-trimpath", "-tags", "urfave_cli_no_docs", "-o", x.mpsforge, ".")
	x.must("git", "init", "-q", x.tree)
	path := func(i int) string { return fmt.Sprintf("d%d/e%d/f%d.cpp", i%10, i/10%100, i) }
	content := func(i, version int) string {
		return strings.Repeat("a line of code;\n", 20) + fmt.Sprintf("file %d, version %d\n", i, version) + strings.Repeat("another line;\n", 20)
	}
	importer := exec.Command("git", "-C", x.tree, "fast-import", "--quiet")
	pipe, err := importer.StdinPipe()
	if err == nil {
		err = importer.Start()
	}
	require.NoError(b, err)
	w := bufio.NewWriter(pipe)
	data := func(text string) { fmt.Fprintf(w, "data %d\n%s\n", len(text), text) }
	commit := func(when int, subject string) {
		fmt.Fprintf(w, "commit refs/heads/series\ncommitter A <a@example.invalid> %d +0000\n", 1_500_000_000+60*when)
		data("[MPS] " + subject + "\n\nWhy.\n\nUpstream-Status: Pending\nScenario: none\n")
	}
	change := func(i, version int) {
		fmt.Fprintf(w, "M 100644 inline %s\n", path(i))
		data(content(i, version))
	}
	commit(0, "First")
	for i := range size.files {
		change(i, 0)
	}
	versions := make([]int, size.files)
	for n := range size.commits {
		commit(n+1, "History")
		i := n * 7919 % size.files
		versions[i]++
		change(i, versions[i])
	}
	fmt.Fprint(w, "reset refs/tags/v2.9.1\nfrom refs/heads/series\n\n")
	touched, before := []string{}, map[string]string{}
	for n := range size.patches {
		commit(size.commits+n+1, fmt.Sprintf("Patch %d", n))
		i := n * (size.files / size.patches)
		touched, before[path(i)] = append(touched, path(i)), content(i, versions[i])
		change(i, versions[i]+1)
	}
	require.NoError(b, cmp.Or(w.Flush(), pipe.Close(), importer.Wait()))
	x.git("checkout", "-q", "--detach", "v2.9.1")
	series := filepath.Join(dir, "patches", "v2.9.1")
	require.NoError(b, os.MkdirAll(series, 0o755))
	x.git("format-patch", "-q", "-k", "--no-stat", "--no-signature", "--zero-commit", "--full-index", "--no-renames", "-N", "-o", series, "v2.9.1..series")
	made, err := filepath.Glob(filepath.Join(series, "*.patch"))
	if err != nil || len(made) != size.patches {
		b.Fatalf("%d patches, %v", len(made), err)
	}
	var names strings.Builder
	for n, from := range made {
		to := filepath.Join(series, fmt.Sprintf("patch-%d.patch", n))
		require.NoError(b, os.Rename(from, to))
		x.patches = append(x.patches, to)
		fmt.Fprintln(&names, filepath.Base(to))
	}
	facts, _, err := patches.RecordBaseline(patches.Baseline{Name: "v2.9.1", Tag: "v2.9.1", Commit: someone(b, x.tree).Git("rev-parse", "v2.9.1"),
		Tree: someone(b, x.tree).Git("rev-parse", "v2.9.1^{tree}")},
		touched, nil, func(path string) (string, []byte, error) {
			if text, found := before[path]; found {
				return "100644", []byte(text), nil
			}
			return "", nil, fs.ErrNotExist
		})
	require.NoError(b, err)
	text, err := patches.FileText(patches.BaselineFile, facts)
	if err == nil {
		err = cmp.Or(os.WriteFile(filepath.Join(series, patches.BaselineFile), text, 0o644),
			os.WriteFile(filepath.Join(series, "series"), []byte(names.String()), 0o644))
	}
	require.NoError(b, err)
	b.Setenv("MPSFORGE_PATCHES", filepath.Dir(series))
	return x
}

// BenchmarkScale compares commands with git's, on generated repositories that grow; MPSFORGE_BENCH_SCALE names one more.
func BenchmarkScale(b *testing.B) {
	sizes := []scale{{1_000, 50, 1_000}, {10_000, 100, 10_000}}
	var named scale
	if text := os.Getenv("MPSFORGE_BENCH_SCALE"); text != "" {
		if _, err := fmt.Sscanf(text, "%d,%d,%d", &named.files, &named.patches, &named.commits); err != nil || named.files < named.patches {
			b.Fatalf("MPSFORGE_BENCH_SCALE is %q, not FILES,PATCHES,COMMITS", text)
		}
		sizes = []scale{named}
	}
	for _, size := range sizes {
		b.Run(fmt.Sprintf("files=%d,patches=%d,commits=%d", size.files, size.patches, size.commits), func(b *testing.B) {
			x := generated(b, size)
			out := filepath.Join(b.TempDir(), "v2.9.1")
			x.peak = map[string]int64{} // without that of the preparation
			b.ResetTimer()
			var apply, am, status, gitStatus, export, formatPatch, unapply, reset time.Duration
			for range b.N {
				am += x.git(append([]string{"am", "-q", "--keep-cr", "--keep-non-patch"}, x.patches...)...)
				gitStatus += x.git("status", "--porcelain", "--untracked-files=no")
				formatPatch += x.git("format-patch", "-q", "-k", "--no-stat", "--no-signature", "--zero-commit", "--full-index", "--no-renames", "-o",
					b.TempDir(), "v2.9.1..HEAD")
				reset += x.git("reset", "-q", "--keep", "v2.9.1")
				apply += x.ours("apply")
				status += x.ours("status")
				export += x.ours("export", "--out", out)
				unapply += x.ours("unapply")
			}
			b.ReportMetric(0, "ns/op")
			n := float64(b.N)
			b.ReportMetric(apply.Seconds()*1000/n, "apply-ms")
			b.ReportMetric(float64(apply)/float64(am), "apply/am")
			b.ReportMetric(float64(status)/float64(gitStatus), "status/status")
			b.ReportMetric(float64(export)/float64(formatPatch), "export/format-patch")
			b.ReportMetric(float64(unapply)/float64(reset), "unapply/reset")
			b.ReportMetric(float64(x.peak[x.mpsforge])/1024, "peak-MB")
			b.ReportMetric(float64(x.peak["git"])/1024, "git-peak-MB")
		})
	}
}
