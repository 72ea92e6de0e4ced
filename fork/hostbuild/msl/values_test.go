package msl

import (
	"errors"
	"math"
	"slices"
	"testing"

	"mpsforge/internal/require"
)

// Every number of 16 bits is read as what writing it gives back.
func TestHalvesAreWrittenAsTheyAreRead(t *testing.T) {
	for bits := range 1 << 16 {
		value := halfValue(uint16(bits))
		if math.IsNaN(value) {
			continue
		}
		if back := halfBits(value); back != uint16(bits) {
			t.Fatalf("%#04x is %v, which is written as %#04x", bits, value, back)
		}
	}
}

func TestHalvesAreRounded(t *testing.T) {
	for value, want := range map[float64]float64{1 + 0x1p-12: 1, 1 + 0x1.8p-11: 1 + 0x1p-10, 2047.9: 2048, 65519: 65504, 65520: math.Inf(1),
		-1e9: math.Inf(-1), 0x1p-26: 0} {
		require.Equal(t, halfValue(halfBits(value)), want, value)
	}
}

func TestMemoryIsLaidOutAsTheTypeSays(t *testing.T) {
	for _, c := range []struct {
		typeName string
		memory   Memory
		want     []byte
	}{
		{"uchar", Memory{Values: "1,2", Length: 3}, []byte{1, 2, 1}},
		{"short", Memory{Values: "-2..0"}, []byte{0xfe, 0xff, 0xff, 0xff, 0, 0}},
		{"char3", Memory{Values: "1,2,3"}, []byte{1, 2, 3, 0xff}},
		{"packed_char3", Memory{Values: "1,2,3"}, []byte{1, 2, 3}},
		{"float", Memory{Length: 1}, []byte{0xff, 0xff, 0xff, 0xff}},
		{"bfloat", Memory{Values: "1"}, []byte{0x80, 0x3f}},
		{"", Memory{Values: "7", Type: "ushort"}, []byte{7, 0}},
	} {
		data, _, _, err := c.memory.bytesOf(Argument{Name: "a", Type: c.typeName})
		if err != nil || !slices.Equal(data, c.want) {
			t.Errorf("%s, %+v: %v, %v, want %v", c.typeName, c.memory, data, err, c.want)
		}
	}
}

func TestMemoryThatCannotBeIsRefused(t *testing.T) {
	for _, c := range []struct {
		typeName string
		memory   Memory
	}{
		{"uchar", Memory{Values: "256"}}, {"int", Memory{Values: "1.5"}}, {"float2", Memory{Values: "1"}}, {"float", Memory{}},
		{"float", Memory{Length: 1 << 30}}, {"float", Memory{Values: "1,,2"}}, {"int", Memory{Values: "3..1"}}, {"", Memory{Length: 1}},
		{"int", Memory{Length: 1, Type: "texture"}}, {"int", Memory{File: "nowhere"}},
	} {
		if _, _, _, err := c.memory.bytesOf(Argument{Name: "a", Type: c.typeName}); !errors.Is(err, ErrRequest) {
			t.Errorf("%s, %+v: error %v", c.typeName, c.memory, err)
		}
	}
}
