package builds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mpsforge/internal/events"
	"mpsforge/internal/words"
)

// AnySpace is the variable that has a download or a build begin whatever the disk has free.
const AnySpace = "MPSFORGE_ANY_SPACE"

// Downloading says what is about to be downloaded for the folder, and how much, before it is. Where the disk has no room for it and for
// what it unpacks to, that is ErrEnvironment.
func Downloading(sink events.Sink, dir, what string, download, unpacked int64) error {
	free, err := Free(dir)
	if err != nil {
		return err
	}
	size := words.Size(download)
	if unpacked > 0 {
		size += ", " + words.Size(unpacked) + " unpacked"
	}
	if need := download + unpacked; need > free && os.Getenv(AnySpace) != "1" {
		return fmt.Errorf("%w: %s needs %s of disk (%s), and %s has %s free; free some space, name a folder on another disk with MPSFORGE_CACHE, "+
			"or set %s=1 to try anyway", ErrEnvironment, what, words.Size(need), size, dir, words.Size(free), AnySpace)
	}
	sink.Emit(events.Message{Level: events.Info, Text: fmt.Sprintf("download %s: %s; %s of disk are free", what, size, words.Size(free))})
	return nil
}

// Free is how many bytes a folder's disk has free. The folder need not be there yet.
func Free(dir string) (int64, error) {
	for {
		var disk unix.Statfs_t
		err := unix.Statfs(dir, &disk)
		if err == nil {
			return int64(disk.Bavail) * int64(disk.Bsize), nil
		}
		if up := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && up != dir {
			dir = up
			continue
		}
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
}
