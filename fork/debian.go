package fork

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/apt"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// debianSource downloads the original tarball of a Debian source package through apt, which verifies the archive's
// signature, and gives its path in the cache. The system's own apt state is neither read nor changed: apt runs with a
// private configuration.
func debianSource(ctx context.Context, baseline patches.Baseline, cache string, sink events.Sink) (string, error) {
	source := *baseline.Source
	finish := events.Step(sink, "download")
	defer finish(events.Failed, "")
	if strings.HasSuffix(source.File, ".xz") {
		if _, err := exec.LookPath("xz"); err != nil {
			return "", noXZ()
		}
	}
	target := filepath.Join(cache, "sources", source.SHA256, source.File)
	if sum, err := builds.FileSHA256(target); err == nil && sum == source.SHA256 {
		finish(events.OK, "already in the cache")
		return target, nil
	}
	byHand := fmt.Sprintf("get %s (SHA-256 %s) by other means and run: mpsforge fetch --baseline %s --from %s", source.File, source.SHA256,
		baseline.Name, source.File)
	private := filepath.Join(cache, "debian", source.Suite)
	download := filepath.Join(private, "download")
	if err := os.MkdirAll(download, 0o755); err != nil {
		return "", fmt.Errorf("make the private apt folders: %w", err)
	}
	suite, err := apt.Open(ctx, private, source.Suite)
	if errors.Is(err, apt.ErrMissing) {
		return "", fmt.Errorf("%w: Debian's source package comes through apt: %w; or %s", ErrEnvironment, err, byHand)
	}
	if err != nil {
		return "", err
	}
	sink.Emit(events.StepProgress{Step: "download", Note: "package lists of " + source.Suite})
	if err := suite.Update(ctx); err != nil {
		return "", fmt.Errorf("%w: %w\n%s", ErrUnavailable, err, byHand)
	}
	if err := builds.Downloading(sink, download, source.File, source.Size, 0); err != nil {
		return "", err
	}
	sink.Emit(events.StepProgress{Step: "download", Note: source.File})
	if err := suite.Source(ctx, source.Package, download); err != nil {
		return "", fmt.Errorf("%w: %w\n%s", ErrUnavailable, err, byHand)
	}
	got := filepath.Join(download, source.File)
	sum, err := builds.FileSHA256(got)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: %s serves another version of %s now (no %s); %s", ErrUnavailable, source.Suite, source.Package, source.File, byHand)
	}
	if err != nil {
		return "", fmt.Errorf("read the downloaded tarball: %w", err)
	}
	if sum != source.SHA256 {
		return "", fmt.Errorf("the downloaded %s has SHA-256 %s, the baseline's has %s; %s", source.File, sum, source.SHA256, byHand)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", fmt.Errorf("keep the tarball: %w", err)
	}
	if err := os.Rename(got, target); err != nil {
		return "", fmt.Errorf("keep the tarball: %w", err)
	}
	finish(events.OK, source.File)
	return target, nil
}
