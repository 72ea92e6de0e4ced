package fork

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// debianMirror is used when the system's own sources name no Debian mirror.
const debianMirror = "http://deb.debian.org/debian/"

// debianKeyrings hold the key that signs the suite, the narrower one first.
var debianKeyrings = []string{
	"/usr/share/keyrings/debian-archive-%s-automatic.gpg",
	"/usr/share/keyrings/debian-archive-keyring.gpg",
}

// debianSource downloads the original tarball of a Debian source package through apt, which verifies the archive's
// signature, and gives its path in the cache. The system's own apt state is neither read nor changed: apt runs with a
// private configuration.
func debianSource(ctx context.Context, source patches.Source, cache string, sink events.Sink) (string, error) {
	finish := events.Step(sink, "download")
	defer finish(events.Failed, "")
	target := filepath.Join(cache, "sources", source.SHA256, source.File)
	if sum, err := fileSHA256(target); err == nil && sum == source.SHA256 {
		finish(events.OK, "already in the cache")
		return target, nil
	}
	byHand := fmt.Sprintf("get %s (SHA-256 %s) by other means and run: mpsforge fetch --from %s", source.File, source.SHA256, source.File)
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", fmt.Errorf("%w: apt-get: Debian's source package comes through it; %s", ErrEnvironment, byHand)
	}
	keyring := ""
	for _, pattern := range debianKeyrings {
		candidate := strings.Replace(pattern, "%s", source.Suite, 1)
		if _, err := os.Stat(candidate); err == nil {
			keyring = candidate
			break
		}
	}
	if keyring == "" {
		return "", fmt.Errorf("%w: the keys of Debian's archive: apt-get install debian-archive-keyring, or %s", ErrEnvironment, byHand)
	}
	private := filepath.Join(cache, "debian", source.Suite)
	download := filepath.Join(private, "download")
	for _, folder := range []string{"lists/partial", "archives/partial", "download"} {
		if err := os.MkdirAll(filepath.Join(private, folder), 0o755); err != nil {
			return "", fmt.Errorf("make the private apt folders: %w", err)
		}
	}
	configuration, err := aptConfiguration(ctx, private, source.Suite, keyring)
	if err != nil {
		return "", err
	}
	sink.Emit(events.StepProgress{Step: "download", Note: "package lists of " + source.Suite})
	for _, args := range [][]string{
		{"update"},
		{"source", "--download-only", "--tar-only", "--only-source", source.Package + "/" + source.Suite},
	} {
		apt := run.Command{Name: "apt-get", Args: append([]string{"--quiet", "--yes"}, args...), Dir: download,
			Env: run.Environment([]string{"APT_CONFIG=" + configuration, "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}, nil)}
		if _, err := apt.Run(ctx); err != nil {
			return "", fmt.Errorf("%w: %w\n%s", ErrUnavailable, err, byHand)
		}
		sink.Emit(events.StepProgress{Step: "download", Note: source.File})
	}
	got := filepath.Join(download, source.File)
	sum, err := fileSHA256(got)
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

// aptConfiguration writes a configuration that keeps all of apt's state below dir, and gives its path.
func aptConfiguration(ctx context.Context, dir, suite, keyring string) (string, error) {
	sources := filepath.Join(dir, "sources.list")
	status := filepath.Join(dir, "status")
	configuration := filepath.Join(dir, "apt.conf")
	for path, content := range map[string]string{
		sources: fmt.Sprintf("deb-src [signed-by=%s] %s %s main\n", keyring, systemMirror(ctx), suite),
		status:  "",
		configuration: fmt.Sprintf(`Dir::Etc::sourcelist "%s";
Dir::Etc::sourceparts "-";
Dir::State "%s";
Dir::State::lists "%s";
Dir::State::status "%s";
Dir::Cache "%s";
APT::Sandbox::User "";
Acquire::Retries "3";
`, sources, dir, filepath.Join(dir, "lists"), status, dir),
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return "", fmt.Errorf("write the private apt configuration: %w", err)
		}
	}
	return configuration, nil
}

// systemMirror is the Debian mirror that the system's own apt uses.
func systemMirror(ctx context.Context) string {
	result, err := run.Command{Name: "apt-get", Args: []string{"indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"}}.Run(ctx)
	if err == nil {
		for _, uri := range strings.Fields(string(result.Stdout)) {
			if strings.HasSuffix(uri, "/debian/") && !strings.Contains(uri, "/linux/") { // not docker's, nor other vendors'
				return uri
			}
		}
	}
	return debianMirror
}

func fileSHA256(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
