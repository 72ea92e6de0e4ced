// Package apt gets packages of a Debian suite through apt-get, which verifies the archive's signature, whatever this
// system's own suite is. The system's own apt state is neither read (but for its mirror) nor changed: apt runs with a
// private configuration, and needs no privileges.
package apt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"mpsforge/internal/run"
	"mpsforge/internal/words"
)

// ErrMissing is returned, wrapped, when this machine lacks what apt needs.
var ErrMissing = errors.New("apt cannot run here")

// fallbackMirror is used when the system's own sources name no Debian mirror.
const fallbackMirror = "http://deb.debian.org/debian/"

// keyrings hold the key that signs a suite, the narrower one first.
var keyrings = []string{
	"/usr/share/keyrings/debian-archive-%s-automatic.gpg",
	"/usr/share/keyrings/debian-archive-keyring.gpg",
}

// Suite is a Debian suite as apt sees it through a private configuration.
type Suite struct {
	Name          string
	dir           string
	configuration string
}

// Open writes the configuration for the suite, keeping all of apt's state below dir. Update comes before any download.
func Open(ctx context.Context, dir, suite string) (*Suite, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("%w: no apt-get", ErrMissing)
	}
	keyring := ""
	for _, pattern := range keyrings {
		candidate := strings.Replace(pattern, "%s", suite, 1)
		if _, err := os.Stat(candidate); err == nil {
			keyring = candidate
			break
		}
	}
	if keyring == "" {
		return nil, fmt.Errorf("%w: the keys of Debian's archive are not there: apt-get install debian-archive-keyring", ErrMissing)
	}
	for _, folder := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, fmt.Errorf("make the private apt folders: %w", err)
		}
	}
	s := &Suite{Name: suite, dir: dir, configuration: filepath.Join(dir, "apt.conf")}
	sources := filepath.Join(dir, "sources.list")
	status := filepath.Join(dir, "status")
	line := fmt.Sprintf(" [signed-by=%s] %s %s main\n", keyring, systemMirror(ctx), suite)
	for path, content := range map[string]string{
		sources: "deb" + line + "deb-src" + line,
		status:  "",
		s.configuration: fmt.Sprintf(`Dir::Etc::sourcelist "%s";
Dir::Etc::sourceparts "-";
Dir::State "%s";
Dir::State::lists "%s";
Dir::State::status "%s";
Dir::Cache "%s";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Retries "3";
`, sources, dir, filepath.Join(dir, "lists"), status, dir),
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return nil, fmt.Errorf("write the private apt configuration: %w", err)
		}
	}
	return s, nil
}

// Update gets the suite's package lists.
func (s *Suite) Update(ctx context.Context) error {
	return s.get(ctx, s.dir, "update")
}

// Source puts the original tarball of a source package into dir.
func (s *Suite) Source(ctx context.Context, name, dir string) error {
	return s.get(ctx, dir, "source", "--download-only", "--tar-only", "--only-source", name+"/"+s.Name)
}

// Packaging puts what Debian adds to a source package, its patches and its rules, into dir.
func (s *Suite) Packaging(ctx context.Context, name, dir string) error {
	return s.get(ctx, dir, "source", "--download-only", "--diff-only", "--only-source", name+"/"+s.Name)
}

// ErrSize is returned, wrapped, for an answer of apt-get that names no sizes.
var ErrSize = errors.New("apt-get printed no sizes")

// sizes are what apt-get says before a download, in decimal units.
var sizes = regexp.MustCompile(`(?m)^(?:Need to get|After this operation,) ([\d.,]+) ([kMG]?)B`)

// Size gives how many bytes Packages would download into dir, and to how many they unpack.
func (s *Suite) Size(ctx context.Context, names []string, dir string) (download, unpacked int64, err error) {
	said, err := s.command(s.dir, append([]string{"-o", "Dir::Cache::archives=" + dir, "install", "--print-uris"}, names...)...).Run(ctx)
	if err != nil {
		return 0, 0, err
	}
	return readSizes(string(said.Stdout))
}

func readSizes(text string) (download, unpacked int64, err error) {
	var found []int64
	for _, match := range sizes.FindAllStringSubmatch(text, -1) {
		number, err := strconv.ParseFloat(strings.ReplaceAll(match[1], ",", ""), 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: %q", ErrSize, match[0])
		}
		found = append(found, int64(number*map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]]))
	}
	if len(found) != 2 {
		return 0, 0, fmt.Errorf("%w: %s", ErrSize, words.LastLines(text, 3))
	}
	return found[0], found[1], nil
}

// Packages downloads the packages and all that they depend on into dir, which should be empty, and gives the files.
func (s *Suite) Packages(ctx context.Context, names []string, dir string) ([]string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "partial"), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for packages: %w", err)
	}
	install := []string{"-o", "Dir::Cache::archives=" + dir, "install", "--download-only"}
	if err := s.get(ctx, dir, append(install, names...)...); err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(dir, "*.deb"))
}

// Package downloads one package, without what it depends on, into dir, which should be empty, and gives the file.
func (s *Suite) Package(ctx context.Context, name, dir string) (string, error) {
	if err := s.get(ctx, dir, "download", name); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("apt-get download %s left %d packages", name, len(files))
	}
	if err != nil {
		return "", err
	}
	return files[0], nil
}

func (s *Suite) get(ctx context.Context, dir string, args ...string) error {
	_, err := s.command(dir, args...).Run(ctx)
	return err
}

func (s *Suite) command(dir string, args ...string) run.Command {
	return run.Command{Name: "apt-get", Args: append([]string{"--quiet", "--yes"}, args...), Dir: dir,
		Env: run.Environment([]string{"APT_CONFIG=" + s.configuration, "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}, nil)}
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
	return fallbackMirror
}
