package cache_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mpsforge/internal/cache"
	"mpsforge/internal/require"
)

// made is a marked cache with files of the given ages in days.
func made(t *testing.T, files map[string]int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, cache.Mark(dir))
	for name, days := range files {
		path := filepath.Join(dir, name)
		require.File(t, path, string(make([]byte, 100)))
		then := time.Now().Add(-time.Duration(days)*24*time.Hour - time.Minute)
		for at := path; at != dir; at = filepath.Dir(at) {
			require.NoError(t, os.Chtimes(at, then, then))
		}
	}
	return dir
}

func clean(t *testing.T, dir string, kinds []string, days int) ([]cache.Entry, error) {
	t.Helper()
	entries := require.One(cache.List(t.Context(), dir))(t)
	return cache.Remove(t.Context(), dir, cache.Unused(entries, kinds, time.Duration(days)*24*time.Hour))
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// Old entries of the kinds that are named go; younger ones, other kinds and what is not known stay.
func TestOnlyTheOldGoes(t *testing.T) {
	dir := made(t, map[string]int{"hosts/old/lib.so": 40, "hosts/new/lib.so": 3, "reports/old.json": 40, "other/old": 40})
	removed, err := clean(t, dir, []string{"hosts"}, 30)
	if err != nil || len(removed) != 1 || removed[0].Path != "hosts/old" || removed[0].Bytes < 100 {
		t.Fatalf("%v, %v", removed, err)
	}
	for name, want := range map[string]bool{"hosts/old": false, "hosts/new/lib.so": true, "reports/old.json": true, "other/old": true} {
		require.Equal(t, exists(filepath.Join(dir, name)), want, name, "there")
	}
}

// A folder that holds something else gets no mark, and nothing in it is removed.
func TestForeignFolderIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	require.Files(t, dir, map[string]string{"hosts/mine": "", "letter.txt": ""})
	require.NoError(t, cache.Mark(dir))
	_, err := clean(t, dir, nil, 0)
	require.Is(t, err, cache.ErrNotOurs)
	if !exists(filepath.Join(dir, "hosts/mine")) {
		t.Error("a foreign file is gone")
	}
}

// A run that was killed while it marked the folder leaves a part of the mark: the next one completes it.
func TestAPartOfTheMarkIsCompleted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "CACHEDIR.TAG"), []byte("Signature: 8a47"), 0o644))
	require.NoError(t, cache.Mark(dir))
	if err := cache.CheckOurs(dir); err != nil {
		t.Error(err)
	}
}

// Links lead nowhere: what they point to stays, whether a kind or an entry is one.
func TestLinksAreNotFollowed(t *testing.T) {
	outside := made(t, map[string]int{"hosts/precious/file": 90})
	dir := made(t, map[string]int{"reports/a.json": 90})
	require.NoError(t, errors.Join(os.Symlink(filepath.Join(outside, "hosts"), filepath.Join(dir, "hosts")), os.Symlink(filepath.Join(outside, "hosts"),
		filepath.Join(dir, "reports/link"))))
	require.One(clean(t, dir, nil, 0))(t)
	if !exists(filepath.Join(outside, "hosts/precious/file")) || !exists(filepath.Join(dir, "hosts")) {
		t.Error("a link was followed or removed as a kind")
	}
	if exists(filepath.Join(dir, "reports/link")) {
		t.Error("a link among the entries stays")
	}
}

// A cache that is not there is empty.
func TestNoCacheIsEmpty(t *testing.T) {
	if entries, err := cache.List(t.Context(), filepath.Join(t.TempDir(), "none")); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
