package mac

import (
	"debug/macho"
	"encoding/binary"
	"slices"
	"testing"

	"mpsforge/internal/require"
)

// Instructions as they are in the page of 0x4000.
const (
	page1   = 0xb0000008 // adrp x8, 0x5000
	page2   = 0xd0000008 // adrp x8, 0x6000
	add8    = 0x91004108 // add x8, x8, #0x10
	add9    = 0x91008109 // add x9, x8, #0x20
	load10  = 0xf940190a // ldr x10, [x8, #0x30]
	nothing = 0xd503201f // nop
	move1   = 0xaa1303e1 // mov x1, x19
	move0   = 0xaa1303e0 // mov x0, x19
	jump    = 0x14000001 // b to the next one
	call    = 0x94000001 // bl to the next one
)

// An address is that of a page and of what is added to it, as long as the register holds the page.
func TestAddressesOfCode(t *testing.T) {
	for name, c := range map[string]struct {
		words []uint32
		want  []uint64
	}{
		"a page and what is added":         {[]uint32{page1, add9}, []uint64{0x5020}},
		"two of one page":                  {[]uint32{page1, add9, load10}, []uint64{0x5020, 0x5030}},
		"added to the address, not a page": {[]uint32{page1, add8, add9}, []uint64{0x5010}},
		"another page":                     {[]uint32{page1, page2, add9}, []uint64{0x6020}},
	} {
		t.Run(name, func(t *testing.T) {
			library := make([]byte, 4) // no section begins with the file
			for _, word := range c.words {
				library = binary.LittleEndian.AppendUint32(library, word)
			}
			section := &macho.Section{SectionHeader: macho.SectionHeader{Name: "__text", Addr: 0x4000, Offset: 4, Size: uint64(len(library) - 4),
				Flags: someInstructions}}
			code := &machineCode{image: &Image{file: &macho.File{Sections: []*macho.Section{section}}}, library: library}
			var found []uint64
			code.addresses(func(to uint64, _, _ bool) { found = append(found, to) })
			if !slices.Equal(found, c.want) {
				t.Errorf("%#x, want %#x", found, c.want)
			}
		})
	}
}

// A type is thrown if __cxa_throw is what is called next, with the type as its second argument.
func TestWhatIsCalledNext(t *testing.T) {
	for name, c := range map[string]struct {
		words []uint32
		want  bool
	}{
		"the function":                     {[]uint32{move0, nothing, call}, true},
		"with another second argument":     {[]uint32{move1, nothing, call}, false},
		"another function":                 {[]uint32{call, nothing, call}, false},
		"perhaps, as the code goes on":     {[]uint32{jump, nothing, call}, false},
		"none as far as it was looked for": {slices.Repeat([]uint32{nothing}, farthest+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, callsNext(c.words, 0, 0x4000, map[uint64]bool{0x400c: true}), c.want)
		})
	}
}
