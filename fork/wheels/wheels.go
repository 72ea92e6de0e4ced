// Package wheels gets wheels from PyPI by address and checksum, and keeps the parts of them that are asked for in the cache.
package wheels

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// Wheel is one file of PyPI.
type Wheel patches.Wheel

// LibtorchCPU is the library of a wheel of torch for macOS that holds the MPS backend and its Metal kernels.
const LibtorchCPU = "torch/lib/libtorch_cpu.dylib"

// TorchParts are all that mpsforge reads of such a wheel. They are asked for together, so that it is downloaded once.
var TorchParts = []string{LibtorchCPU, "torch/lib/libtorch_python.dylib", "torch/lib/libc10.dylib", "torch/include/"}

// Name is the file's.
func (w Wheel) Name() string { return path.Base(w.URL) }

// folder is where the parts are: other parts have another one.
func (w Wheel) folder(cache string, parts []string) string {
	return filepath.Join(cache, "wheels", w.SHA256[:min(16, len(w.SHA256))]+"-"+builds.Digest(parts...)[:8])
}

// Have reports whether the cache has the parts.
func (w Wheel) Have(cache string, parts []string) bool { return builds.Exists(w.folder(cache, parts)) }

// Get gives a folder with those files of the wheel whose paths begin with one of parts. An address that cannot be reached is
// builds.ErrEnvironment; a file with another checksum is a failure, and nothing of it is kept.
func (w Wheel) Get(ctx context.Context, cache string, parts []string, sink events.Sink) (dir string, err error) {
	dir = w.folder(cache, parts)
	if builds.Exists(dir) {
		return dir, nil
	}
	sink = events.OrDiscard(sink)
	finish := events.Step(sink, w.step())
	defer finish(events.Failed, "")
	err = builds.MakeFolder(dir, func(made string) error {
		file := filepath.Join(filepath.Dir(made), "wheel")
		if err := w.download(ctx, file, sink); err != nil {
			return fmt.Errorf("get %s: %w", w.URL, err)
		}
		if err := Unpack(file, made, parts); err != nil {
			return fmt.Errorf("unpack %s: %w", w.Name(), err)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	finish(events.OK, "")
	return dir, nil
}

// downloadTime is for the largest wheel over a slow line; a line that has stalled must not hold a run for ever.
const downloadTime = 20 * time.Minute

// step is the download's in the event stream.
func (w Wheel) step() string { return "download " + w.Name() }

// arriving counts what comes and shows it at each hundredth.
type arriving struct {
	sink        events.Sink
	step        string
	done, total int64
}

func (a *arriving) Write(part []byte) (int, error) {
	before := a.done
	if a.done += int64(len(part)); a.total > 0 && a.done*100/a.total > before*100/a.total {
		a.sink.Emit(events.StepProgress{Step: a.step, Done: a.done, Total: a.total, Unit: "bytes"})
	}
	return len(part), nil
}

func (w Wheel) download(ctx context.Context, file string, sink events.Sink) error {
	ctx, stop := context.WithTimeoutCause(ctx, downloadTime, fmt.Errorf("it took more than %v", downloadTime))
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", builds.ErrEnvironment, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: the server answers %s", builds.ErrEnvironment, response.Status)
	}
	if response.ContentLength > 0 { // PyPI says it
		if err := builds.Downloading(sink, filepath.Dir(file), w.Name(), response.ContentLength, 0); err != nil {
			return err
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, sum, &arriving{sink: sink, step: w.step(), total: response.ContentLength}), response.Body); err != nil {
		return fmt.Errorf("%w: %w", builds.ErrEnvironment, err)
	}
	if have := hex.EncodeToString(sum.Sum(nil)); have != w.SHA256 {
		return fmt.Errorf("its SHA-256 is %s, not %s", have, w.SHA256)
	}
	return out.Close()
}

// Unpack writes the files of a wheel whose paths begin with one of parts.
func Unpack(file, dir string, parts []string) error {
	wheel, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer wheel.Close()
	found := map[string]bool{}
	for _, entry := range wheel.File {
		for _, part := range parts {
			if !strings.HasPrefix(entry.Name, part) || strings.HasSuffix(entry.Name, "/") {
				continue
			}
			found[part] = true
			if err := unpackOne(entry, dir); err != nil {
				return err
			}
			break
		}
	}
	for _, part := range parts {
		if !found[part] {
			return fmt.Errorf("it has no %s", part)
		}
	}
	return nil
}

func unpackOne(entry *zip.File, dir string) error {
	if !filepath.IsLocal(entry.Name) || path.Clean(entry.Name) != entry.Name {
		return fmt.Errorf("it has a file %q, which is not the plain path of a file in its folder", entry.Name)
	}
	target := filepath.Join(dir, entry.Name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	in, err := entry.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil { // reads to the end, where the archive's own checksum is compared
		return err
	}
	return out.Close()
}
