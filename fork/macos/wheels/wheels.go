// Package wheels gets wheels by address and checksum, from PyPI or another index, and keeps the parts of them that are asked for in the cache.
package wheels

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// Wheel is one file of an index.
type Wheel patches.Wheel

// LibtorchCPU is the library of a wheel of torch for macOS that holds the MPS backend and its Metal kernels.
const LibtorchCPU = "torch/lib/libtorch_cpu.dylib"

// TorchParts are all that mpsforge reads of such a wheel. They are asked for together, so that it is downloaded once.
var TorchParts = []string{LibtorchCPU, "torch/lib/libtorch_python.dylib", "torch/lib/libc10.dylib", "torch/include/"}

// Name is the file's.
func (w Wheel) Name() string {
	name := path.Base(w.URL)
	if plain, err := url.PathUnescape(name); err == nil { // + is %2B
		return plain
	}
	return name
}

// folder is where the parts are: other parts have another one.
func (w Wheel) folder(cache string, parts []string) string {
	name := w.SHA256[:min(16, len(w.SHA256))]
	if name == "" {
		name = builds.Digest(w.URL)[:16]
	}
	return filepath.Join(cache, "wheels", name+"-"+builds.Digest(parts...)[:8])
}

// Have reports whether the cache has the parts.
func (w Wheel) Have(cache string, parts []string) bool { return builds.Exists(w.folder(cache, parts)) }

// Get gives a folder with those files of the wheel whose paths begin with one of parts, but for those that begin with what
// follows a "!" in another one. An address that cannot be reached is
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
	if w.SHA256 == "" {
		var err error
		if w, err = w.fromIndex(ctx); err != nil {
			return err
		}
	}
	response, err := get(ctx, w.URL)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.ContentLength > 0 { // PyPI says it
		if err := builds.Downloading(sink, filepath.Dir(file), w.Name(), response.ContentLength, w.Unpacked); err != nil {
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

// get asks a server. The caller closes the body.
func get(ctx context.Context, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", builds.ErrEnvironment, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%w: the server answers %s", builds.ErrEnvironment, response.Status), response.Body.Close())
	}
	return response, nil
}

// indexTime is for an index that does not answer: another wheel may do.
const indexTime = 20 * time.Second

// linkWithChecksum is a link to a file, as PEP 503 has it.
var linkWithChecksum = regexp.MustCompile(`href="([^"#]+)#sha256=([0-9a-f]{64})"`)

// fromIndex is the wheel as its index has it: where it is, and its checksum.
func (w Wheel) fromIndex(ctx context.Context) (Wheel, error) {
	ctx, stop := context.WithTimeoutCause(ctx, indexTime, fmt.Errorf("the index has not answered for %v", indexTime))
	defer stop()
	response, err := get(ctx, w.Index)
	if err != nil {
		return w, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return w, fmt.Errorf("%w: %w", builds.ErrEnvironment, err)
	}
	for _, link := range linkWithChecksum.FindAllStringSubmatch(string(page), -1) {
		address, err := response.Request.URL.Parse(html.UnescapeString(link[1]))
		if err != nil {
			continue
		}
		if found := (Wheel{URL: address.String(), SHA256: link[2], Unpacked: w.Unpacked}); found.Name() == w.Name() {
			return found, nil
		}
	}
	return w, fmt.Errorf("%w: %s has no checksum of %s", builds.ErrEnvironment, w.Index, w.Name())
}

// Unpack writes the files of a wheel whose paths begin with one of parts; a part that begins with "!" leaves files out.
func Unpack(file, dir string, parts []string) error {
	wheel, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer wheel.Close()
	var without []string
	found := map[string]bool{}
	for _, part := range parts {
		if left, out := strings.CutPrefix(part, "!"); out {
			without, found[part] = append(without, left), true
		}
	}
	for _, entry := range wheel.File {
		begins := func(part string) bool { return strings.HasPrefix(entry.Name, part) }
		i := slices.IndexFunc(parts, begins)
		if i < 0 || strings.HasSuffix(entry.Name, "/") || slices.ContainsFunc(without, begins) {
			continue
		}
		found[parts[i]] = true
		if err := unpackOne(entry, dir); err != nil {
			return err
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
	out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644|entry.Mode()&0o111) // torch has programs
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil { // reads to the end, where the archive's own checksum is compared
		return err
	}
	return out.Close()
}
