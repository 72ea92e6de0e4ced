package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"mpsforge/internal/events"
)

// Lock keeps other processes from building in the cache, and waits for those that do.
func Lock(ctx context.Context, cache string, sink events.Sink) (unlock func(), err error) {
	return lock(ctx, filepath.Join(cache, "host-build.lock"), sink)
}

func lock(ctx context.Context, path string, sink events.Sink) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		if !told {
			told = true
			sink.Emit(events.Message{Level: events.Info, Text: "another host build is running; waiting for it to end"})
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// keptBuilds is how many host builds stay in the cache, some 40 MB each. One that a report names should be there for a while.
const keptBuilds = 64

// makeAndDropOld makes a folder, such as a build's, and removes those beside it that have not been made for longest, but for kept.
func makeAndDropOld(dir string, kept int) error {
	if err := makeMarked(dir); err != nil {
		return err
	}
	return dropOld(filepath.Dir(dir), kept)
}

// makeMarked makes a folder, unless it is there, and marks it as used now.
func makeMarked(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	now := time.Now()
	return os.Chtimes(dir, now, now)
}

// dropOld removes what has not been made, or marked as used, for longest in a folder, but for kept.
func dropOld(folder string, kept int) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	built := map[string]time.Time{}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has moved or removed it
		}
		if err != nil {
			return err
		}
		built[filepath.Join(folder, entry.Name())] = info.ModTime()
	}
	oldest := slices.SortedFunc(maps.Keys(built), func(a, b string) int { return built[a].Compare(built[b]) })
	for _, old := range oldest[:max(0, len(oldest)-kept)] {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("remove what an old host build left: %w", err)
		}
	}
	return nil
}
