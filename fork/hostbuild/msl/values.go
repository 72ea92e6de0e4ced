package msl

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// element is how an element of a type is laid out.
type element struct {
	scalar string
	count  int // of scalars
	stride int // bytes from one element to the next
}

var scalarSizes = map[string]int{"bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "half": 2, "bfloat": 2, "int": 4, "uint": 4, "float": 4,
	"long": 8, "ulong": 8}

// elementOf takes a type's name apart, such as float3 or packed_half2.
func elementOf(name string) (element, bool) {
	scalar, packed := strings.CutPrefix(name, "packed_")
	count := 1
	if last := scalar[max(0, len(scalar)-1):]; last != "" && strings.Contains("234", last) {
		count, scalar = int(last[0]-'0'), scalar[:len(scalar)-1]
	}
	size := scalarSizes[scalar]
	stride := count * size
	if count == 3 && !packed {
		stride = 4 * size
	}
	return element{scalar, count, stride}, size > 0
}

// put writes a number as a scalar type.
func put(to []byte, scalar, number string) error {
	size := scalarSizes[scalar]
	if scalar == "float" || scalar == "half" || scalar == "bfloat" {
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return err
		}
		bits := math.Float32bits(float32(value))
		switch scalar {
		case "half":
			binary.LittleEndian.PutUint16(to, halfBits(value))
		case "bfloat":
			if value == value { // rounding would make an infinity of some that are no numbers
				bits += 0x7fff + bits>>16&1
			}
			binary.LittleEndian.PutUint16(to, uint16(bits>>16))
		default:
			binary.LittleEndian.PutUint32(to, bits)
		}
		return nil
	}
	var bits uint64
	if signed, err := strconv.ParseInt(number, 0, 8*size); err == nil {
		bits = uint64(signed)
	} else if bits, err = strconv.ParseUint(number, 0, 8*size); err != nil {
		return err
	}
	var all [8]byte
	binary.LittleEndian.PutUint64(all[:], bits)
	copy(to[:size], all[:])
	return nil
}

// halfBits rounds to the nearest, to even where two are as near.
func halfBits(value float64) uint16 {
	sign := uint16(math.Float64bits(value) >> 48 & 0x8000)
	size := math.Abs(value)
	switch {
	case value != value:
		return 0x7e00
	case size >= 65520:
		return sign | 0x7c00
	case size < 0x1p-14:
		return sign | uint16(math.RoundToEven(size*0x1p24))
	}
	fraction, exponent := math.Frexp(size)                                          // in [0.5, 1)
	return sign + uint16(exponent+13)<<10 + uint16(math.RoundToEven(fraction*2048)) // with the bit that is not stored
}

// get reads a scalar: a float64, int64, uint64 or bool.
func get(from []byte, scalar string) any {
	switch scalar {
	case "bool":
		return from[0] != 0
	case "char":
		return int64(int8(from[0]))
	case "uchar":
		return uint64(from[0])
	case "short":
		return int64(int16(binary.LittleEndian.Uint16(from)))
	case "ushort":
		return uint64(binary.LittleEndian.Uint16(from))
	case "int":
		return int64(int32(binary.LittleEndian.Uint32(from)))
	case "uint":
		return uint64(binary.LittleEndian.Uint32(from))
	case "long":
		return int64(binary.LittleEndian.Uint64(from))
	case "ulong":
		return binary.LittleEndian.Uint64(from)
	case "half":
		return halfValue(binary.LittleEndian.Uint16(from))
	case "bfloat":
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(from)) << 16))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(from)))
}

func halfValue(bits uint16) float64 {
	exponent, fraction := int(bits>>10&31), float64(bits&0x3ff)
	value := math.Ldexp(1024+fraction, exponent-25)
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		value = math.Inf(1)
	case exponent == 0:
		value = math.Ldexp(fraction, -24)
	}
	return math.Copysign(value, 1-2*float64(bits>>15))
}

// numbers takes a list apart: 1,2.5,nan or 0..9.
func numbers(list string) ([]string, error) {
	var all []string
	for _, word := range strings.Split(list, ",") {
		word = strings.TrimSpace(word)
		from, to, isRange := strings.Cut(word, "..")
		if !isRange {
			all = append(all, word)
			continue
		}
		first, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			return nil, err
		}
		last, err := strconv.ParseInt(to, 10, 64)
		if err != nil {
			return nil, err
		}
		if last < first || last-first >= mostMemory {
			return nil, fmt.Errorf("the range %s", word)
		}
		for i := first; i <= last; i++ {
			all = append(all, strconv.FormatInt(i, 10))
		}
	}
	return all, nil
}

// Memory is what an argument is given. Unset bytes are all ones, which is not a number in any floating-point type.
type Memory struct {
	Values string // a list, such as 1,2.5 or 0..63; repeated up to the length
	Length int    // elements; 0: as many as there are values
	File   string // whose bytes it is
	Type   string // of elements, where the kernel has a struct or void; else empty
}

// bytesOf lays an argument's memory out; set says that it has values.
func (m Memory) bytesOf(a Argument) (data []byte, e element, set bool, err error) {
	wrong := func(format string, args ...any) ([]byte, element, bool, error) {
		return nil, e, false, fmt.Errorf("%w: %s: %w", ErrRequest, a.Name, fmt.Errorf(format, args...))
	}
	name := m.Type
	if name == "" {
		name = a.Type
	}
	e, known := elementOf(name)
	switch {
	case m.Type != "" && !known:
		return wrong("there is no type %q", m.Type)
	case !known && m.File == "":
		return wrong("its type is not numeric; name one: --type %s=float", a.Name)
	case !known:
		e = element{"uchar", 1, 1}
	}
	if m.File != "" {
		info, err := os.Stat(m.File)
		if err != nil {
			return wrong("%w", err)
		}
		if !info.Mode().IsRegular() || info.Size() > mostMemory {
			return wrong("%s is not a file of at most %d MiB", m.File, mostMemory>>20)
		}
		if data, err = os.ReadFile(m.File); err != nil {
			return wrong("%w", err)
		}
		return data, e, true, nil
	}
	var given []string
	if m.Values != "" {
		if given, err = numbers(m.Values); err != nil {
			return wrong("%w", err)
		}
		if len(given)%e.count != 0 {
			return wrong("%d values do not make a whole number of %s", len(given), name)
		}
	}
	length := m.Length
	if length == 0 {
		length = len(given) / e.count
	}
	if length <= 0 || length > mostMemory/e.stride {
		return wrong("its length is %d elements; between 1 and %d MiB is possible", length, mostMemory>>20)
	}
	data = bytes.Repeat([]byte{0xff}, length*e.stride)
	for i := range length * e.count {
		if len(given) == 0 {
			break
		}
		if err := put(data[i/e.count*e.stride+i%e.count*scalarSizes[e.scalar]:], e.scalar, given[i%len(given)]); err != nil {
			return wrong("%w", err)
		}
	}
	return data, e, len(given) > 0, nil
}
