package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mpsforge/internal/require"
)

func TestWriteLeavesOneFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, text := range []string{"old", "new"} {
		require.NoError(t, WriteBytes(name, 0o600, []byte(text)))
		holds(t, dir, name, text)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestFileStaysWhereItsReplacementCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	require.NoError(t, WriteBytes(name, 0o644, []byte("old")))
	full := errors.New("no space left on device")
	err := Write(name, 0o644, func(w io.Writer) error {
		_, err := w.Write([]byte("ne"))
		return errors.Join(err, full)
	})
	require.Is(t, err, full)
	holds(t, dir, name, "old")
}

func TestDeviceIsWrittenTo(t *testing.T) {
	require.NoError(t, WriteBytes(os.DevNull, 0o644, []byte("text")))
	if info, err := os.Lstat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestErrorIsSaidOnce(t *testing.T) {
	const device = "/dev/full"
	if _, err := os.Stat(device); err != nil {
		t.Skipf("%v", err)
	}
	large := make([]byte, 1<<16) // more than is buffered
	if err := WriteBytes(device, 0o644, large); !errors.Is(err, syscall.ENOSPC) || strings.Count(err.Error(), device) != 1 {
		t.Errorf("got %v", err)
	}
}

// holds holds a folder against one file in it.
func holds(t *testing.T, dir, name, want string) {
	t.Helper()
	if text, err := os.ReadFile(name); err != nil || string(text) != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
