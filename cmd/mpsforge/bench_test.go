package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"mpsforge/internal/require"
	"mpsforge/patches"
)

// The benchmarks run fresh processes of mpsforge and git by turns on a real PyTorch tree and report ratios of medians:
// absolute times on a shared machine are noise. `make bench` sets MPSFORGE_BENCH_TREE to a checkout of v2.6.0.

// bench is a clone of the real tree, and the two programs.
type bench struct {
	b              *testing.B
	mpsforge, tree string
	patches        []string         // the files of the series
	peak           map[string]int64 // largest resident set in KiB, by program
}

func newBench(b *testing.B) *bench {
	b.Helper()
	source := os.Getenv("MPSFORGE_BENCH_TREE")
	if source == "" {
		b.Skip("SKIP: MPSFORGE_BENCH_TREE names no checkout of v2.6.0; run it through make bench")
	}
	dir := b.TempDir()
	series := require.One(patches.Load(patches.Embedded(), "v2.6.0"))(b)
	x := &bench{b: b, mpsforge: filepath.Join(dir, "mpsforge"), tree: filepath.Join(dir, "tree"), peak: map[string]int64{}}
	for _, patch := range series.Patches {
		path := require.One(filepath.Abs(filepath.Join("../../patches/v2.6.0", patches.PatchFile(patch.Name))))(b)
		x.patches = append(x.patches, path)
	}
	x.must("go", "build", "-trimpath", "-tags", "urfave_cli_no_docs", "-o", x.mpsforge, ".")
	x.must("git", "clone", "-q", "--shared", "--no-checkout", source, x.tree)
	x.must("git", "-C", x.tree, "checkout", "-q", "--detach", benchBase)
	x.ours("fetch", "--baseline", "v2.6.0", "--from", x.tree)
	return x
}

// benchBase is the commit of baseline v2.6.0.
const benchBase = "610e1c4c7c6c48dbf4d9a5922e3ece353390e06a"

func (x *bench) must(name string, args ...string) time.Duration {
	x.b.Helper()
	command := exec.Command(name, args...)
	started := time.Now()
	output, err := command.CombinedOutput()
	took := time.Since(started)
	if err != nil {
		x.b.Fatalf("%v: %v\n%s", command, err, output)
	}
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		x.peak[name] = max(x.peak[name], usage.Maxrss)
	}
	return took
}

func (x *bench) ours(args ...string) time.Duration {
	return x.must(x.mpsforge, append(args, "--checkout", x.tree, "--quiet")...)
}

func (x *bench) git(args ...string) time.Duration {
	return x.must("git", append([]string{"-C", x.tree, "-c", "user.name=a", "-c", "user.email=a@example.invalid"}, args...)...)
}

// report gives the ratio of the medians and the peak memory.
func (x *bench) report(ours, theirs []time.Duration) {
	slices.Sort(ours)
	slices.Sort(theirs)
	mine, other := ours[len(ours)/2], theirs[len(theirs)/2]
	x.b.ReportMetric(0, "ns/op") // the sum of both and of the preparation: it would mislead
	x.b.ReportMetric(mine.Seconds()*1000, "mpsforge-ms")
	x.b.ReportMetric(other.Seconds()*1000, "git-ms")
	x.b.ReportMetric(float64(mine)/float64(other), "ratio")
	x.b.ReportMetric(float64(x.peak[x.mpsforge])/1024, "peak-MB")
}

// BenchmarkApply compares apply of the series with git am of the same patches, work tree included. Aim: 0.7.
func BenchmarkApply(b *testing.B) {
	x := newBench(b)
	var ours, theirs []time.Duration
	for range b.N {
		ours = append(ours, x.ours("apply"))
		x.ours("unapply")
		theirs = append(theirs, x.git(append([]string{"am", "-q", "--keep-cr", "--keep-non-patch"}, x.patches...)...))
		x.git("reset", "-q", "--keep", benchBase)
	}
	x.report(ours, theirs)
}

const touched = "aten/src/ATen/mps/MPSStreamSlots.h"

// BenchmarkStatusApplied compares status with git status of the same paths, the series applied. Aim: 1.
func BenchmarkStatusApplied(b *testing.B) {
	x := newBench(b)
	x.ours("apply")
	x.compareStatus()
}

// BenchmarkStatusFresh does the same where nothing was ever applied.
func BenchmarkStatusFresh(b *testing.B) {
	x := newBench(b)
	x.compareStatus()
}

func (x *bench) compareStatus() {
	var ours, theirs []time.Duration
	for range x.b.N {
		ours = append(ours, x.ours("status"))
		theirs = append(theirs, x.git("status", "--porcelain", "--", touched))
	}
	x.report(ours, theirs)
}

// BenchmarkLint measures lint of all series. Aim: 500 ms. There is no peer; git apply --stat of one series is shown.
func BenchmarkLint(b *testing.B) {
	x := newBench(b)
	var ours, theirs []time.Duration
	for range b.N {
		ours = append(ours, x.must(x.mpsforge, "lint", "--quiet"))
		theirs = append(theirs, x.git(append([]string{"apply", "--stat"}, x.patches...)...))
	}
	x.report(ours, theirs)
}

// BenchmarkExport compares export of the applied series with git format-patch of the same commits. Aim: 1. On record are
// commits that apply or export made or saw; rewritten are those of a rebase, whose diffs must all be made again.
func BenchmarkExport(b *testing.B) {
	for name, before := range map[string]func(*bench){
		"recorded":  func(*bench) {},
		"rewritten": func(x *bench) { x.git("-c", "user.name=Another", "rebase", "-q", "--force-rebase", benchBase) },
	} {
		b.Run(name, func(b *testing.B) {
			x := newBench(b)
			out := x.copySeries()
			x.ours("apply")
			var ours, theirs []time.Duration
			for range b.N {
				before(x)
				ours = append(ours, x.ours("export", "--out", out))
				theirs = append(theirs, x.git("format-patch", "-q", "-k", "--no-stat", "--no-signature", "--zero-commit", "--full-index", "--no-renames",
					"-o", b.TempDir(), benchBase+"..HEAD"))
			}
			x.report(ours, theirs)
		})
	}
}

// BenchmarkPort compares the port of the series to a commit in which its lines have moved with git cherry-pick of the
// same commits onto it, work tree included. Aim: 20 ms a patch.
func BenchmarkPort(b *testing.B) {
	x := newBench(b)
	out := filepath.Join(b.TempDir(), "next")
	series := require.One(patches.Load(patches.Embedded(), "v2.6.0"))(b)
	for path, blob := range series.Baseline.Touched {
		if blob == nil {
			continue
		}
		file := filepath.Join(x.tree, path)
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, append([]byte("// one line more\n"), content...), 0o644)
		}
		require.NoError(b, err)
	}
	x.git("commit", "-q", "-a", "-m", "next")
	x.git("branch", "next")
	x.git("checkout", "-q", "--detach", benchBase)
	x.ours("apply")
	x.git("branch", "applied")
	var ours, theirs []time.Duration
	for range b.N {
		ours = append(ours, x.ours("port", "--to", "next", "--out", out))
		x.git("checkout", "-q", "--detach", "next")
		theirs = append(theirs, x.git("cherry-pick", benchBase+"..applied"))
		x.git("checkout", "-q", "--detach", "applied")
	}
	x.report(ours, theirs)
	slices.Sort(ours)
	b.ReportMetric(ours[len(ours)/2].Seconds()*1000/float64(len(series.Patches)), "mpsforge-ms/patch")
}

// copySeries copies the patches of v2.6.0, so that they may be written.
func (x *bench) copySeries() string {
	x.b.Helper()
	dir := filepath.Join(x.b.TempDir(), "v2.6.0")
	require.NoError(x.b, os.CopyFS(dir, os.DirFS("../../patches/v2.6.0")))
	return dir
}
