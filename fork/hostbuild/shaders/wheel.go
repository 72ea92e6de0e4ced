package shaders

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// failed keeps why a wheel cannot be had, so that one process asks for it once.
var failed = struct {
	sync.Mutex
	wheels map[string]error
}{wheels: map[string]error{}}

// Fetch gives the Metal libraries of a wheel of torch for macOS. An error that wraps builds.ErrEnvironment says that the wheel cannot
// be had here.
func Fetch(ctx context.Context, wheel patches.Wheel, cache string, sink events.Sink) ([]Library, error) {
	failed.Lock()
	defer failed.Unlock()
	if err := failed.wheels[wheel.SHA256]; err != nil {
		return nil, err
	}
	dir, err := wheels.Wheel(wheel).Get(ctx, cache, wheels.TorchParts, sink)
	if err != nil {
		err = fmt.Errorf("the Metal kernels of PyTorch: %w", err)
		if ctx.Err() == nil {
			failed.wheels[wheel.SHA256] = err
		}
		return nil, err
	}
	file, err := os.Open(filepath.Join(dir, wheels.LibtorchCPU))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found, err := readDylib(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wheels.LibtorchCPU, err)
	}
	var libraries []Library
	for _, section := range sections {
		data, ok := found[section]
		if !ok {
			continue
		}
		library, err := parseLibrary(section, data)
		if err != nil {
			return nil, err
		}
		libraries = append(libraries, library)
	}
	return libraries, nil
}
