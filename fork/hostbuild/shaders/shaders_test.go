package shaders

import (
	"encoding/binary"
	"testing"

	"mpsforge/internal/require"
)

// library makes a metallib with one function.
func library(name string, bitcode []byte) []byte {
	field := func(tag string, value []byte) []byte {
		return append(binary.LittleEndian.AppendUint16([]byte(tag), uint16(len(value))), value...)
	}
	row := append(field("NAME", append([]byte(name), 0)), field("MDSZ", binary.LittleEndian.AppendUint64(nil, uint64(len(bitcode))))...)
	row = append(append(row, field("OFFT", make([]byte, 24))...), "ENDT"...)
	list := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 1), uint32(len(row)+4))
	list = append(list, row...)
	data := append([]byte("MTLB"), make([]byte, 84)...)
	put := func(at int, value int) { binary.LittleEndian.PutUint64(data[at:], uint64(value)) }
	put(24, len(data))
	put(32, len(list)-4)
	put(72, len(data)+len(list))
	put(80, len(bitcode))
	return append(append(data, list...), bitcode...)
}

func TestMetalLibraryIsRead(t *testing.T) {
	found := require.One(parseLibrary("metal_basic", library("fmax_float", []byte("code"))))(t)
	if len(found.Modules) != 1 || found.Modules[0].Name != "fmax_float" || string(found.Modules[0].Bitcode) != "code" {
		t.Errorf("found %+v", found)
	}
}

// Wherever the file is cut, that is an error and no panic.
func TestCutMetalLibraryIsRefused(t *testing.T) {
	whole := library("fmax_float", []byte("code"))
	for size := range len(whole) {
		if _, err := parseLibrary("metal_basic", whole[:size]); err == nil {
			t.Errorf("%d of %d bytes are accepted", size, len(whole))
		}
	}
}
