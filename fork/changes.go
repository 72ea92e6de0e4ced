package fork

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mpsforge/fork/git"
)

// Changes is a digest of the tracked files that differ from HEAD in the index or the work tree; empty when none does.
func (c *Checkout) Changes(ctx context.Context) (string, error) {
	paths, err := c.repository.ModifiedFiles(ctx)
	if err != nil || len(paths) == 0 {
		return "", err
	}
	slices.Sort(paths)
	hash := sha256.New()
	for _, path := range paths {
		data, err := os.ReadFile(filepath.Join(c.repository.WorkTree, path))
		if info, statErr := os.Stat(filepath.Join(c.repository.WorkTree, path)); statErr == nil && info.IsDir() {
			// A submodule at another commit.
			if sub, openErr := git.Open(ctx, filepath.Join(c.repository.WorkTree, path), nil); openErr == nil {
				data, err = []byte(sub.Head), nil
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // removed
		}
		if err != nil {
			return "", fmt.Errorf("read what differs from the commit: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", path, len(data), data)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
