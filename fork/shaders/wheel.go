package shaders

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// dylib is where a wheel has the library with the kernels.
const dylib = "torch/lib/libtorch_cpu.dylib"

// failed keeps why a wheel cannot be had, so that one process asks for it once.
var failed = struct {
	sync.Mutex
	wheels map[string]error
}{wheels: map[string]error{}}

// Fetch gives the Metal libraries of a wheel: from the cache, or else from the package index that pip is set to. Only they are
// kept. The caller holds the cache's lock. An error that wraps builds.ErrEnvironment says that the wheel cannot be had here.
func Fetch(ctx context.Context, wheel patches.Wheel, cache string, sink events.Sink) ([]Library, error) {
	dir := filepath.Join(cache, "shaders", "wheel-"+wheel.SHA256)
	if !builds.Exists(dir) {
		failed.Lock()
		defer failed.Unlock()
		if err := failed.wheels[wheel.SHA256]; err != nil {
			return nil, err
		}
		if err := download(ctx, wheel, dir, events.OrDiscard(sink)); err != nil {
			err = fmt.Errorf("the Metal kernels of %s: %w", wheel.File, err)
			if ctx.Err() == nil {
				failed.wheels[wheel.SHA256] = err
			}
			return nil, err
		}
	}
	var libraries []Library
	for _, section := range sections {
		data, err := os.ReadFile(filepath.Join(dir, section))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		library, err := parseLibrary(section, data)
		if err != nil {
			return nil, err
		}
		libraries = append(libraries, library)
	}
	return libraries, nil
}

// CanDownload tells why pip, which gets the wheel, does not run here.
func CanDownload(ctx context.Context) error {
	_, err := run.Command{Name: "python3", Args: []string{"-m", "pip", "--version"}}.Run(ctx)
	return err
}

func download(ctx context.Context, wheel patches.Wheel, dir string, sink events.Sink) error {
	const step = "kernels of the wheel"
	finish := events.Step(sink, step)
	defer finish(events.Failed, "")
	sink.Emit(events.StepProgress{Step: step, Note: "download " + wheel.File})
	parts := strings.Split(strings.TrimSuffix(wheel.File, ".whl"), "-") // name, version, Python, ABI, platform
	if len(parts) != 5 || len(parts[2]) < 4 {
		return fmt.Errorf("%s is no name of a wheel", wheel.File)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("%w: pip downloads it: %w", builds.ErrEnvironment, err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	version := strings.TrimPrefix(parts[2], "cp")
	_, err = run.Command{Name: python, Dir: temporary, Args: []string{"-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:",
		"--retries", "1", "--timeout", "30", "--platform", parts[4], "--python-version", version[:1] + "." + version[1:], "--dest", temporary, parts[0] + "==" + parts[1]}}.Run(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", builds.ErrEnvironment, err)
	}
	path := filepath.Join(temporary, wheel.File)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: pip has downloaded another file", builds.ErrEnvironment)
	}
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != wheel.SHA256 {
		return fmt.Errorf("%w: the download has the SHA-256 %x, it must be %s", builds.ErrEnvironment, sum, wheel.SHA256)
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	found, err := unpackWheel(data)
	if err != nil {
		return err
	}
	for section, library := range found {
		if err := os.WriteFile(filepath.Join(temporary, section), library, 0o644); err != nil {
			return err
		}
	}
	if err := os.Rename(temporary, dir); err != nil {
		return err
	}
	finish(events.OK, fmt.Sprintf("%d libraries", len(found)))
	return nil
}

func unpackWheel(data []byte) (map[string][]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	library, err := fs.ReadFile(archive, dylib)
	if err != nil {
		return nil, err
	}
	found, err := readDylib(bytes.NewReader(library))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dylib, err)
	}
	return found, nil
}
