package apple

import (
	"archive/zip"
	"bytes"
	"debug/macho"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mpsforge/internal/require"
)

// library is a Mach-O library with one section.
func library(t testing.TB, section, data string) []byte {
	t.Helper()
	var made bytes.Buffer
	name := func(text string) (padded [16]byte) { copy(padded[:], text); return padded }
	const header, segment, sections = 32, 72, 80
	for _, part := range []any{
		macho.FileHeader{Magic: macho.Magic64, Cpu: macho.CpuArm64, Type: macho.TypeDylib, Ncmd: 1, Cmdsz: segment + sections}, uint32(0),
		macho.Segment64{Cmd: macho.LoadCmdSegment64, Len: segment + sections, Name: name("__TEXT"), Filesz: uint64(len(data)), Nsect: 1},
		macho.Section64{Name: name(section), Seg: name("__TEXT"), Size: uint64(len(data)), Offset: header + segment + sections},
		[]byte(data),
	} {
		require.NoError(t, binary.Write(&made, binary.LittleEndian, part))
	}
	return made.Bytes()
}

func written(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

const someSelectors = "contents\x00zone\x00setEnableCommitAndContinue:\x00contents\x00"

// What a library sends is declared, or Apple's and not declared yet, or unknown.
func TestLibraryNeeds(t *testing.T) {
	needs := require.One(LibraryNeeds(written(t, "libtorch_cpu.dylib", library(t, "__objc_methname", someSelectors))))(t)
	if needs.Selectors != 3 || !slices.Equal(needs.Missing, []string{"zone"}) || !slices.Equal(needs.Unknown, []string{"setEnableCommitAndContinue:"}) {
		t.Errorf("%+v", needs)
	}
}

func TestWheelNeeds(t *testing.T) {
	var wheel bytes.Buffer
	archive := zip.NewWriter(&wheel)
	entry := require.One(archive.Create("torch/lib/libtorch_cpu.dylib"))(t)
	require.One(entry.Write(library(t, "__objc_methname", someSelectors)))(t)
	require.NoError(t, archive.Close())
	needs := require.One(LibraryNeeds(written(t, "torch.whl", wheel.Bytes())))(t)
	want := `torch/lib/libtorch_cpu.dylib: 3 selectors, 2 of them not declared in native/objc/include
  zone  in Apple's API
  setEnableCommitAndContinue:  in no table: to be looked up (docs/dev/howto/apple-api.md), or the library's own
`
	require.Equal(t, needs.String(), want)
}

func TestWhatHasNoSelectorsIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"lib.dylib", []byte("text"), "not a Mach-O file for one processor"},
		{"lib.dylib", library(t, "__text", "code"), "no section __objc_methname"},
		{"torch.whl", []byte("text"), "not a valid zip file"},
	} {
		_, err := LibraryNeeds(written(t, test.name, test.data))
		require.Says(t, err, test.want)
	}
}
