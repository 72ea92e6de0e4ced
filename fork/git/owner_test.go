package git_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"mpsforge/fork/git"
	"mpsforge/internal/require"
)

// A work tree of another user is one, and its cure is git's, not another checkout.
func TestWorkTreeOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can give a folder to another user")
	}
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	if output, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	require.NoError(t, os.Chown(dir, 65534, 65534))
	_, err := git.Open(t.Context(), dir, nil)
	cure := "git config --global --add safe.directory " + dir
	if !errors.Is(err, git.ErrOwner) || errors.Is(err, git.ErrNotRepository) || !strings.HasSuffix(err.Error(), cure) {
		t.Fatalf("%v, want an error that ends with %s", err, cure)
	}
	if output, err := exec.CommandContext(t.Context(), "sh", "-c", cure).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if _, err := git.Open(t.Context(), dir, nil); errors.Is(err, git.ErrOwner) {
		t.Errorf("after its cure: %v", err)
	}
}
