package mac

import (
	"debug/macho"
	"encoding/binary"
	"maps"
	"os"
	"slices"
)

// machineCode is a library for arm64 of which instructions and data are read.
type machineCode struct {
	image   *Image
	library []byte
	symbols []uint64 // where one is, in order
}

// someInstructions are S_ATTR_PURE_INSTRUCTIONS and S_ATTR_SOME_INSTRUCTIONS in a section's flags (<mach-o/loader.h>).
const someInstructions = 0x80000400

// code is of an image that was read of these bytes.
func (i *Image) code(library []byte) *machineCode {
	return &machineCode{i, library, slices.Sorted(maps.Keys(i.names))}
}

// wheelCode reads the code of the wheel's libraries, which only an overlay is held against.
func (k *Kit) wheelCode() error {
	if k.stock != nil {
		return nil
	}
	var codes []*machineCode
	for i, image := range k.Libraries {
		library, err := os.ReadFile(k.files[i])
		if err != nil {
			return err
		}
		codes = append(codes, image.code(library))
	}
	k.stock = codes[0]
	for _, code := range codes {
		k.types = append(k.types, code.types())
	}
	return nil
}

// dataOf is what a section has in the file.
func (c *machineCode) dataOf(section *macho.Section) []byte {
	if from, whole := uint64(section.Offset), uint64(len(c.library)); from > 0 && from <= whole && section.Size <= whole-from {
		return c.library[from : from+section.Size]
	}
	return nil // zeros, or cut off
}

// functionAt gives the names of the function that an instruction is in.
func (c *machineCode) functionAt(address uint64) []string {
	i, found := slices.BinarySearch(c.symbols, address)
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	return c.image.names[c.symbols[i]]
}

// word is 8 bytes of data, or 0 where there are none.
func (c *machineCode) word(address uint64) uint64 {
	for _, section := range c.image.file.Sections {
		if data := c.dataOf(section); address >= section.Addr && address+8 <= section.Addr+uint64(len(data)) {
			return binary.LittleEndian.Uint64(data[address-section.Addr:])
		}
	}
	return 0
}

// instructions calls for each section of code with its words.
func (c *machineCode) instructions(each func(start uint64, words []uint32)) {
	for _, section := range c.image.file.Sections {
		if section.Flags&someInstructions == 0 {
			continue
		}
		data := c.dataOf(section)
		words := make([]uint32, len(data)/4)
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(data[4*i:])
		}
		each(section.Addr, words)
	}
}

// branches calls for each b and bl.
func (c *machineCode) branches(each func(from, to uint64)) {
	c.instructions(func(start uint64, words []uint32) {
		for i, word := range words {
			if word&0x7c000000 == 0x14000000 {
				from := start + 4*uint64(i)
				each(from, from+uint64(int64(int32(word<<6))>>4))
			}
		}
	})
}

// farthest is how many instructions after an adrp the one that adds the rest of the address is looked for.
const farthest = 16

// addresses calls for each address that code makes of its own: adrp with the add or the load that follows it, and what a linker makes of
// those if the address is near. loaded is whether what is there is loaded, thrown whether that, or the address, is the type that the next
// call throws.
func (c *machineCode) addresses(each func(to uint64, loaded, thrown bool)) {
	throw := c.stubsOf("___cxa_throw")
	c.instructions(func(start uint64, words []uint32) {
		thrown := func(i int) bool { return words[i]&31 == 1 && callsNext(words, i+1, start, throw) }
		for i, word := range words {
			at := start + 4*uint64(i)
			switch {
			case word&0x9f000000 == 0x10000000: // adr
				each(at+uint64(pageOffset(word)), false, thrown(i))
			case word&0xff000000 == 0x58000000: // ldr of a literal
				each(at+uint64(int64(int32(word<<8))>>13<<2), true, thrown(i))
			case word&0x9f000000 == 0x90000000: // adrp
				page, register := at&^0xfff+uint64(pageOffset(word)<<12), word&31
				for j := i + 1; j < min(i+1+farthest, len(words)); j++ {
					next := words[j]
					low, add, load := uint64(next>>10&0xfff), next&0xffc00000 == 0x91000000, next&0xffc00000 == 0xf9400000
					if next>>5&31 == register && add {
						each(page+low, false, thrown(j))
					} else if next>>5&31 == register && load {
						each(page+8*low, true, thrown(j))
					}
					if next&31 == register && (add || load || next&0x1f000000 == 0x10000000) {
						break // it holds something else from here on
					}
				}
			}
		}
	})
}

// callsNext reports whether the next branch is a call of one of the functions, and the second argument's register stays as it is until then.
func callsNext(words []uint32, from int, start uint64, functions map[uint64]bool) bool {
	for i := from; i < min(from+farthest, len(words)); i++ {
		switch word := words[i]; {
		case word == 0xd503201f: // nop, which the linker left of an adrp and its add
		case word&0xfc000000 == 0x94000000: // bl
			return functions[start+4*uint64(i)+uint64(int64(int32(word<<6))>>4)]
		case word&0x1c000000 == 0x14000000, word&31 == 1: // another branch; whatever may write the register, or something else with its number
			return false
		}
	}
	return false
}

// stubsOf are the addresses at which calls of another library's function arrive.
func (c *machineCode) stubsOf(name string) map[uint64]bool {
	const segment64, sectionSize, stubs = 0x19, 80, 0x8 // LC_SEGMENT_64, S_SYMBOL_STUBS
	found, file := map[uint64]bool{}, c.image.file
	for _, load := range file.Loads {
		raw := load.Raw()
		if file.Dysymtab == nil || binary.LittleEndian.Uint32(raw) != segment64 {
			continue
		}
		for section := raw[min(72, len(raw)):]; len(section) >= sectionSize; section = section[sectionSize:] {
			number := func(at int) uint32 { return binary.LittleEndian.Uint32(section[at:]) }
			first, each := number(68), uint64(number(72))
			if number(64)&sectionType != stubs || each == 0 {
				continue
			}
			address, size := binary.LittleEndian.Uint64(section[32:]), binary.LittleEndian.Uint64(section[40:])
			for i := range size / each {
				if at := uint64(first) + i; at < uint64(len(file.Dysymtab.IndirectSyms)) {
					if symbol := file.Dysymtab.IndirectSyms[at]; int(symbol) < len(file.Symtab.Syms) && file.Symtab.Syms[symbol].Name == name {
						found[address+i*each] = true
					}
				}
			}
		}
	}
	return found
}

// pageOffset is the signed number in adr and adrp.
func pageOffset(word uint32) int64 {
	return int64(int32(word<<8))>>13<<2 | int64(word>>29&3)
}
