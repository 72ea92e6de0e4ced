package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"mpsforge/fork/builds"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// Libtorchs are the wheels that host builds of a version are made with on this machine, the first that can be had; none where the root's
// package is of the version.
func Libtorchs(facts patches.HostFacts) []patches.Wheel { return facts.Libtorch[runtime.GOARCH] }

// HaveLibtorch reports whether nothing needs to be downloaded for OpenTorch without a folder.
func HaveLibtorch(choices []patches.Wheel, cache string) bool {
	return len(choices) == 0 || slices.ContainsFunc(choices, func(w patches.Wheel) bool { return wheels.Wheel(w).Have(cache, libtorchParts()) })
}

// libtorchParts are what host builds use of a wheel of torch for Linux. Two thirds of one that was built for CUDA are CUDA's libraries.
func libtorchParts() []string {
	parts := []string{"torch/", "torchgen/", "functorch/", "torch-"}
	for _, library := range cudaLibraries {
		parts = append(parts, "!torch/lib/"+library)
	}
	return parts
}

// fetchLibtorch gives the folder of the first wheel that the cache has, else of the first that can be had.
func fetchLibtorch(ctx context.Context, choices []patches.Wheel, cache string, sink events.Sink) (string, error) {
	parts := libtorchParts()
	if i := slices.IndexFunc(choices, func(w patches.Wheel) bool { return wheels.Wheel(w).Have(cache, parts) }); i > 0 {
		choices = choices[i:]
	}
	var all []error
	for _, choice := range choices {
		wheel := wheels.Wheel(choice)
		dir, err := wheel.Get(ctx, cache, parts, sink)
		if err == nil || !errors.Is(err, builds.ErrEnvironment) {
			return dir, err
		}
		all = append(all, err)
		sink.Emit(events.Message{Level: events.Info, Text: fmt.Sprintf("not here: %v", err)})
	}
	return "", fmt.Errorf("get a libtorch: %w; name a folder that holds torch/ with --torch", errors.Join(all...))
}
