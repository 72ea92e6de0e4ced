package ci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// sh runs a command in a folder and gives its output.
func sh(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.Command(args[0], args[1:]...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, output)
	}
	return string(output)
}

// The same commit in two folders gives the same bytes, with cgo and without; and the binaries say what they are. (What the
// second build takes from Go's cache was compiled once: for its keys -trimpath makes both folders the same.)
func TestReleaseIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: two releases are built; go test -run '^TestReleaseIsReproducible$' ./ci")
	}
	repository := require.One(filepath.Abs(".."))(t)
	if _, err := os.Stat(filepath.Join(repository, ".git")); err != nil {
		t.Skipf("SKIP release: the sources are not a git repository, so a release could not name its commit: %v", err)
	}
	commit := strings.TrimSpace(sh(t, repository, "git", "rev-parse", "HEAD"))
	var binaries [2]map[string][]byte
	for i := range binaries {
		clone := filepath.Join(t.TempDir(), "clone")
		sh(t, repository, "git", "clone", "-q", "--shared", repository, clone)
		sh(t, clone, "sh", filepath.Join(repository, "ci/release.sh"), "v0.0.0", "out", "native", "linux/amd64")
		binaries[i] = map[string][]byte{}
		files := require.One(filepath.Glob(filepath.Join(clone, "out/*")))(t)
		for _, file := range files {
			binaries[i][filepath.Base(file)] = require.One(os.ReadFile(file))(t)
		}
		if i > 0 {
			continue
		}
		native, err := filepath.Glob(filepath.Join(clone, "out/mpsforge_*64"))
		if err != nil || len(native) != 1 {
			t.Fatalf("native binaries: %q, %v", native, err)
		}
		if told := sh(t, clone, native[0], "version"); !strings.HasPrefix(told, "mpsforge v0.0.0 "+commit+"\n") || strings.Contains(told, "without cgo") {
			t.Errorf("version: %s", told)
		}
		if strings.HasSuffix(native[0], "_linux_amd64") { // the machine that the other runs on
			if told := sh(t, clone, native[0]+"_nocgo", "version"); !strings.Contains(told, "built without cgo: the stages reference and conformance") {
				t.Errorf("version of the binary without cgo: %s", told)
			}
		}
	}
	if len(binaries[0]) != 5 || len(binaries[1]) != 5 {
		t.Fatalf("files: %d and %d, want two binaries, their archives and SHA256SUMS", len(binaries[0]), len(binaries[1]))
	}
	native := "mpsforge_v0.0.0_" + runtime.GOOS + "_" + runtime.GOARCH
	held := unpacked(t, binaries[0][native+".tar.gz"])
	if !bytes.Equal(held[native+"/mpsforge"], binaries[0][native]) {
		t.Error("the archive's binary is another one")
	}
	for file, want := range map[string]string{"mpsforge.1": ".TH MPSFORGE",
		"completion/mpsforge.bash": "mpsforge", "completion/_mpsforge": "#compdef mpsforge", "completion/mpsforge.fish": "mpsforge",
		"LICENSE": "Redistribution", "LICENCES.txt": "==== github.com/urfave/cli/v2", "LICENSE.patches": "PyTorch",
		"CHANGELOG.md":     "# Changes",
		"modules.cdx.json": `"purl": "pkg:golang/github.com/urfave/cli/v2@v2.`} {
		if !bytes.Contains(held[native+"/"+file], []byte(want)) {
			t.Errorf("the archive's %s has no %q", file, want)
		}
	}
	for name, content := range binaries[0] {
		if !bytes.Equal(content, binaries[1][name]) {
			t.Errorf("%s differs: %d bytes and %d bytes", name, len(content), len(binaries[1][name]))
		}
	}
}

// wheelMaker is in the place of mpsforge: it says what it was asked, and leaves the files that mpsforge would.
const wheelMaker = `#!/bin/sh
echo "$@" | sed "s|/[^ ]*/tree|tree|g; s|/[^ ]*/out|out|g" >>"$LOG"
while [ $# -gt 1 ]; do
  case $1 in
  --out) echo wheel >"$2/mpsforge_overlay-2.9.1+mpsforge.$(cat "$LOG" | grep -c build)-py3-none-macosx_11_0_arm64.whl" ;;
  --report) echo report >"$2"; echo page >"${2%.json}.html"; echo cases >"${2%.json}.junit.xml" ;;
  --require) [ -z "$FAIL" ] || exit 4 ;;
  esac
  shift
done
`

// A release has the wheels of the whole series and of its first part, the report that checked them, and their digests; those of an
// earlier release are gone. A wheel that stage mac refuses ends it.
func TestReleaseHasWheels(t *testing.T) {
	dir := t.TempDir()
	maker, log, out := filepath.Join(dir, "mpsforge"), filepath.Join(dir, "log"), filepath.Join(dir, "out")
	require.NoError(t, errors.Join(os.WriteFile(maker, []byte(wheelMaker), 0o755), os.Mkdir(out, 0o755),
		os.WriteFile(filepath.Join(out, "mpsforge_overlay-2.9.1+mpsforge.old-py3-none-macosx_11_0_arm64.whl"), nil, 0o644)))
	t.Setenv("MPSFORGE", maker)
	t.Setenv("LOG", log)
	sh(t, dir, "sh", mustAbs(t, "release.sh"), "v0.0.0", "out", "wheel/v2.9.1")
	asked := require.One(os.ReadFile(log))(t)
	want := `fetch --baseline v2.9.1 --checkout tree-fixes
apply --part fixes --checkout tree-fixes
overlay build --checkout tree-fixes --platform macos --out out
fetch --baseline v2.9.1 --checkout tree-
apply --checkout tree-
overlay build --checkout tree- --platform macos --out out
verify --checkout tree- --stages checkout,mac --require mac --report out/mpsforge_v0.0.0_mac_v2.9.1.json
`
	require.Equal(t, string(asked), want, "asked")
	sums := require.One(os.ReadFile(filepath.Join(out, "SHA256SUMS")))(t)
	var names []string
	for line := range strings.Lines(string(sums)) {
		names = append(names, strings.Fields(line)[1])
	}
	require.Equal(t, strings.Join(names, " "), "mpsforge_overlay-2.9.1+mpsforge.1-py3-none-macosx_11_0_arm64.whl "+
		"mpsforge_overlay-2.9.1+mpsforge.2-py3-none-macosx_11_0_arm64.whl mpsforge_v0.0.0_mac_v2.9.1.json", "SHA256SUMS")
	t.Setenv("FAIL", "1")
	refused := exec.Command("sh", mustAbs(t, "release.sh"), "v0.0.0", "out", "wheel/v2.9.1")
	refused.Dir = dir
	if output, err := refused.CombinedOutput(); refused.ProcessState.ExitCode() != 4 {
		t.Errorf("stage mac failed: %v\n%s", err, output)
	}
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	return require.One(filepath.Abs(path))(t)
}

// unpacked are the files of a tar.gz, by name.
func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	plain := require.One(gzip.NewReader(bytes.NewReader(archive)))(t)
	files := map[string][]byte{}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		files[header.Name] = require.One(io.ReadAll(reader))(t)
	}
}

// A release without a proper version is refused before anything is built.
func TestReleaseNeedsAVersion(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "v1.2", "main"} {
		output, err := exec.Command("sh", "release.sh", version, t.TempDir(), "native").CombinedOutput()
		if err == nil || !strings.Contains(string(output), "a release needs one such as v1.2.3") {
			t.Errorf("%q: %v\n%s", version, err, output)
		}
	}
}
