package ci_test

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/mac"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
)

// small is a program that is linked as mpsforge is, without what takes long to compile.
const small = `package main

// #cgo LDFLAGS: -lobjc -framework Foundation -framework CoreGraphics -framework Metal -framework MetalPerformanceShaders -framework MetalPerformanceShadersGraph
import "C"

import (
	"crypto/x509"
	"net"
)

func main() {
	_, _ = x509.SystemCertPool()
	_, _ = net.LookupHost("localhost")
}
`

// compilersForMacOS gives a folder with compilers for arm64, from the user's cache.
func compilersForMacOS(t *testing.T) (dir, cache string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIP programs for macOS: compiles for another system")
	}
	cache = hosttest.Cache(t)
	unlock, err := host.Lock(t.Context(), mac.Folder(cache), events.Discard)
	require.NoError(t, err)
	defer unlock()
	dir, err = mac.Compilers(t.Context(), cache, "arm64", events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP programs for macOS: %v", err)
	}
	require.NoError(t, err)
	return dir, cache
}

// What looks at a program for Macs that was made on Linux finds each fault that is planted.
func TestFaultsOfProgramsForMacOSAreFound(t *testing.T) {
	compilers, _ := compilersForMacOS(t)
	dir := t.TempDir()
	require.Files(t, dir, map[string]string{"main.go": small, "go.mod": "module small\n"})
	for name, value := range map[string]string{"CGO_ENABLED": "1", "GOOS": "darwin", "GOARCH": "arm64", "CC": filepath.Join(compilers, "cc-arm64")} {
		t.Setenv(name, value)
	}
	sh(t, dir, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", "small")
	made := require.One(os.ReadFile(filepath.Join(dir, "small")))(t)
	// The offset of a load command.
	load := func(command uint32) int {
		file := require.One(macho.NewFile(bytes.NewReader(made)))(t)
		at := 32 // behind the header
		for _, load := range file.Loads {
			if file.ByteOrder.Uint32(load.Raw()) == command {
				return at
			}
			at += len(load.Raw())
		}
		t.Fatalf("no load command %#x", command)
		return 0
	}
	replaced := func(old, new string) func([]byte) []byte {
		return func(data []byte) []byte {
			if !bytes.Contains(data, []byte(old)) {
				t.Fatalf("no %q in the binary", old)
			}
			return bytes.ReplaceAll(data, []byte(old), []byte(new))
		}
	}
	changed := func(at int, to byte) func([]byte) []byte {
		return func(data []byte) []byte { data[at] = to; return data }
	}
	directory := bytes.Index(made, binary.BigEndian.AppendUint32(nil, 0xfade0c02))
	for _, c := range []struct {
		name, arch, problem string
		plant               func([]byte) []byte
	}{
		{"nothing", "arm64", "", bytes.Clone},
		{"another architecture", "amd64", "it is for CpuArm64, not CpuAmd64", bytes.Clone},
		{"a newer macOS", "arm64", `it is for macOS "26.0"`, changed(load(0x32)+14, 26)},
		{"without its C++", "arm64", "it was built without cgo", replaced("CGO_ENABLED=1", "CGO_ENABLED=0")},
		{"a library that no Mac has", "arm64", "it is linked with /usr/lib/libobjx.A.dylib", replaced("/usr/lib/libobjc.A.dylib", "/usr/lib/libobjx.A.dylib")},
		{"a framework less", "arm64", "it is not linked with /System/Library/Frameworks/Metal.framework/Versions/A/Metal",
			replaced("Metal.framework/Versions/A/Metal", "Steel.framework/Versions/A/Steel")},
		{"a byte after signing", "arm64", "is not as it was signed", changed(len(made)/2, made[len(made)/2]^1)},
		{"a signature that is not ad hoc", "arm64", "signature is not an ad hoc one", changed(directory+15, 0)},
		{"no signature", "arm64", "it is not signed", changed(load(0x1d), 0x1e)},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mac.CheckProgram(c.plant(bytes.Clone(made)), c.arch)
			if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("%v, want %q", err, c.problem)
			}
		})
	}
}
