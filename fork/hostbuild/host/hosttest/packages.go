package hosttest

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
)

// pip is its own wheel, since Debian's Python brings none.
var pip = wheels.Wheel{
	URL:    "https://files.pythonhosted.org/packages/c9/bc/b7db44f5f39f9d0494071bddae6880eb645970366d0a200022a1a93d57f5/pip-25.0.1-py3-none-any.whl",
	SHA256: "c46efd13b6aa8279f33f2864459c8ce587ea6a1a59ee20de055868d8f7688f7f",
}

// Pip runs pip on the Python of a host build.
func Pip(t testing.TB, cache, interpreter string, args ...string) (output string, err error) {
	t.Helper()
	return runPip(t, cache, interpreter, append([]string{"-m", "pip"}, args...))
}

// likeMac has pip take the conditions of requirements as on a Mac: its --platform changes which wheels it takes, and not these.
const likeMac = `
import sys
from pip._vendor.packaging import markers
here = markers.default_environment
markers.default_environment = lambda: {**here(), "platform_system": "Darwin", "sys_platform": "darwin", "platform_machine": "arm64"}
from pip._internal.cli.main import main
sys.exit(main(sys.argv[1:]))
`

// ResolveForMac has pip choose what it would install on a Mac with a CPython 3.12, and install nothing. The names and versions are in the output.
func ResolveForMac(t testing.TB, cache, interpreter string, requirements ...string) (output string, err error) {
	t.Helper()
	return runPip(t, cache, interpreter, slices.Concat([]string{"-c", likeMac, "install", "--dry-run", "--ignore-installed", "--only-binary=:all:",
		"--platform", "macosx_11_0_arm64", "--python-version", "3.12", "--target", t.TempDir()}, requirements))
}

func runPip(t testing.TB, cache, interpreter string, args []string) (output string, err error) {
	t.Helper()
	folder, err := pip.Get(t.Context(), cache, []string{"pip/"}, events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP pip: %v", err)
	}
	require.NoError(t, err)
	result, err := run.Command{Name: interpreter, Args: args,
		Env: run.Environment([]string{"PYTHONPATH=" + folder, "PIP_DISABLE_PIP_VERSION_CHECK=1"}, nil)}.Run(t.Context())
	return string(result.Stdout) + string(result.Stderr), err
}

// Packages gives a folder of the cache with what pip installs by a list, and with what more adds.
func Packages(t testing.TB, cache, interpreter, list string, more func(folder string)) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skipf("SKIP packages: %s has the checksums of x86-64's wheels", list)
	}
	key := require.One(builds.FileSHA256(list))(t)
	folder := filepath.Join(cache, "wheels", strings.TrimSuffix(filepath.Base(list), ".txt")+"-"+key[:16])
	if builds.Exists(folder) {
		return folder
	}
	err := builds.MakeFolder(folder, func(made string) error {
		output, err := Pip(t, cache, interpreter, "install", "--target", made, "--no-deps", "--no-cache-dir", "--only-binary=:all:",
			"--require-hashes", "-r", list)
		if err != nil && strings.Contains(output, "Could not find a version") { // PyPI cannot be reached; another checksum is a failure
			t.Skipf("SKIP packages of %s: %s", list, output)
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		if more != nil {
			more(made)
		}
		return nil
	})
	require.NoError(t, err)
	return folder
}
