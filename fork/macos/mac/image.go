package mac

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What debug/macho does not name of a symbol's entry.
const (
	typeExternal = 0x01 // N_EXT
	typePrivate  = 0x10 // N_PEXT
	typeMask     = 0x0e // N_TYPE
	typeAbsolute = 0x02
	typeSection  = 0x0e
	weakDefined  = 0x80 // N_WEAK_DEF, in the description of a defined symbol
)

// Image is what the comparisons need of a Mach-O file: an object or a library.
type Image struct {
	// Defined are the symbols that others can bind to, and whether they are weak, as those of inline functions and templates are.
	Defined map[string]bool
	// Undefined are those that it binds to, each with the install name of the library that has it; "" in an object, and where any may.
	Undefined map[string]string
	Selectors []string
	// Own are the selectors of the classes that it defines itself, and the names of their variables, which are among Selectors, too.
	Own map[string]bool
	// Libraries are the install names of those that it is linked with.
	Libraries []string

	file    *macho.File
	chained bool
	// names are all symbols that are defined, local ones included, by address.
	names map[uint64][]string
	// addresses are those of vtables.
	vtables map[string]uint64
}

// OpenImage reads a file.
func OpenImage(file string) (*Image, error) {
	opened, err := macho.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	defer opened.Close()
	image, err := readImage(opened)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return image, nil
}

func readImage(file *macho.File) (*Image, error) {
	if file.Symtab == nil {
		return nil, errors.New("it has no symbol table")
	}
	libraries := librariesOf(file)
	chained, err := hasChains(file)
	if err != nil {
		return nil, err
	}
	image := &Image{chained: chained, Defined: map[string]bool{}, Undefined: map[string]string{}, Own: map[string]bool{}, Libraries: libraries,
		file: file, names: map[uint64][]string{}, vtables: map[string]uint64{}}
	for _, symbol := range file.Symtab.Syms {
		kind := symbol.Type & typeMask
		switch {
		case symbol.Type&0xe0 != 0: // for debuggers
		case kind == typeSection || kind == typeAbsolute:
			if symbol.Type&(typeExternal|typePrivate) == typeExternal {
				image.Defined[symbol.Name] = symbol.Desc&weakDefined != 0
			}
			image.names[symbol.Value] = append(image.names[symbol.Value], symbol.Name)
			if method := ownName.FindStringSubmatch(symbol.Name); method != nil {
				image.Own[method[1]+method[2]] = true
			}
			if strings.HasPrefix(symbol.Name, vtablePrefix) {
				image.vtables[symbol.Name] = symbol.Value
			}
		case symbol.Type&typeExternal != 0:
			library := ""
			if ordinal := int(symbol.Desc >> 8); file.Type == macho.TypeDylib && ordinal >= 1 && ordinal <= len(libraries) {
				library = libraries[ordinal-1]
			}
			image.Undefined[symbol.Name] = library
		}
	}
	if section := file.Section("__objc_methname"); section != nil {
		data, err := section.Data()
		if err != nil {
			return nil, err
		}
		for _, name := range bytes.Split(data, []byte{0}) {
			if len(name) > 0 {
				image.Selectors = append(image.Selectors, string(name))
			}
		}
	}
	// Read while the file is open.
	for _, section := range file.Sections {
		if section.Seg != "__TEXT" && strings.Contains(section.Name, "const") {
			if _, err := image.dataOf(section); err != nil {
				return nil, err
			}
		}
	}
	return image, nil
}

// loadWeak is LC_LOAD_WEAK_DYLIB, of a library that may be missing when the file is loaded.
const loadWeak = 0x80000018

// loadAgain is LC_REEXPORT_DYLIB, of a library whose symbols the file exports as its own.
const loadAgain = 0x8000001f

// librariesOf names the libraries that a file is linked with, in the order that symbols count them: debug/macho leaves out weak ones.
func librariesOf(file *macho.File) (names []string) {
	return loadsOf(file, 0xc, loadWeak, loadAgain, 0x20, 0x80000023) // LC_LOAD_DYLIB, and LAZY and UPWARD ones
}

// loadsOf gives the texts of load commands.
func loadsOf(file *macho.File, kinds ...uint32) (names []string) {
	for _, load := range file.Loads {
		raw := load.Raw()
		if len(raw) < 16 {
			continue
		}
		if slices.Contains(kinds, file.ByteOrder.Uint32(raw)) {
			if offset := file.ByteOrder.Uint32(raw[8:]); int(offset) < len(raw) {
				name, _, _ := bytes.Cut(raw[offset:], []byte{0})
				names = append(names, string(name))
			}
		}
	}
	return names
}

// ownName is the symbol of a method, such as -[Class selector:], or of a class's variable, whose first
// underscore debug/macho takes off because there is a dot in the name.
var ownName = regexp.MustCompile(`^[-+]\[[^ ]+ (.+)\]$|^_?OBJC_IVAR_\$_\w+\.(\w+)$`)

const vtablePrefix = "__ZTV"

// dataOf reads a section once; the file need not be open afterwards.
func (i *Image) dataOf(section *macho.Section) ([]byte, error) {
	if held, ok := section.ReaderAt.(*bytes.Reader); ok {
		data := make([]byte, held.Size())
		_, err := held.ReadAt(data, 0)
		return data, err
	}
	data, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", section.Name, err)
	}
	section.ReaderAt = bytes.NewReader(data)
	return data, nil
}

// Vtables are the names of the tables of virtual functions in it.
func (i *Image) Vtables() map[string]uint64 { return i.vtables }

// boundSlot is a slot of a library's table whose function is another library's.
const boundSlot = "(another library's)"

// Vtable gives the names in the slots of a class's table, from its first function on: of each slot all names that its address has. The
// words before it are offsets and the type's information.
func (i *Image) Vtable(name string) ([][]string, error) {
	address, found := i.vtables[name]
	if !found {
		return nil, fmt.Errorf("there is no %s", name)
	}
	for _, section := range i.file.Sections {
		if address < section.Addr || address >= section.Addr+section.Size {
			continue
		}
		if i.file.Type == macho.TypeObj {
			return i.vtableOfObject(section, address), nil
		}
		data, err := i.dataOf(section)
		if err != nil {
			return nil, err
		}
		var slots [][]string
		for at := address + 16; at+8 <= section.Addr+section.Size; at += 8 {
			if at > address+16 && i.names[at] != nil {
				break // another variable
			}
			value, bound := i.pointer(binary.LittleEndian.Uint64(data[at-section.Addr:]))
			switch {
			case bound:
				slots = append(slots, []string{boundSlot})
			case i.names[value] == nil:
				return slots, nil // no function: a further base's part of the table
			default:
				slots = append(slots, i.names[value])
			}
		}
		return slots, nil
	}
	return nil, fmt.Errorf("%s is in no section", name)
}

// pointer gives the address that a library's pointer has once it is loaded, if it is not moved, or that it is another library's. In a library
// with chained fixups, as macOS 14's linker makes them, the upper bits lead to the next pointer and the last one marks other libraries'
// (dyld's mach-o/fixup-chains.h: dyld_chained_ptr_64_rebase and dyld_chained_ptr_64_bind).
func (i *Image) pointer(raw uint64) (address uint64, bound bool) {
	if i.chained {
		return raw & (1<<36 - 1), raw>>63 == 1
	}
	return raw, raw == 0
}

// hasChains reports whether a library has chained fixups. Those with signed pointers, which PyTorch's wheels do not have, are refused.
func hasChains(file *macho.File) (bool, error) {
	for _, load := range file.Loads {
		raw := load.Raw()
		if len(raw) < 16 || file.ByteOrder.Uint32(raw) != 0x80000034 { // LC_DYLD_CHAINED_FIXUPS
			continue
		}
		if file.SubCpu&0xff == 2 { // CPU_SUBTYPE_ARM64E
			return false, errors.New("its pointers are signed, as arm64e's are")
		}
		return true, nil
	}
	return false, nil
}

// vtableOfObject reads what the linker is to put in.
func (i *Image) vtableOfObject(section *macho.Section, address uint64) [][]string {
	targets := map[uint64]string{}
	for _, relocation := range section.Relocs {
		if relocation.Extern && int(relocation.Value) < len(i.file.Symtab.Syms) {
			targets[section.Addr+uint64(relocation.Addr)] = i.file.Symtab.Syms[relocation.Value].Name
		}
	}
	var slots [][]string
	for at := address + 16; targets[at] != "" && (at == address+16 || i.names[at] == nil); at += 8 {
		slots = append(slots, []string{targets[at]})
	}
	return slots
}

// nestedName gives the parts of a mangled name, namespaces and classes first, and what follows them: for a function its parameters.
func nestedName(symbol string) (parts []string, rest string) {
	rest, nested := strings.CutPrefix(symbol, "__ZNK")
	if !nested {
		if rest, nested = strings.CutPrefix(symbol, "__ZN"); !nested {
			return nil, symbol
		}
	}
	for rest != "" {
		length, digits := 0, 0
		for digits < len(rest) && length < len(symbol) && rest[digits] >= '0' && rest[digits] <= '9' {
			length, digits = 10*length+int(rest[digits]-'0'), digits+1
		}
		if digits == 0 || digits+length > len(rest) {
			break
		}
		parts, rest = append(parts, rest[digits:digits+length]), rest[digits+length:]
	}
	return parts, rest
}

// virtualName is what a function is called whatever class has it: the last part of its mangled name, so that a class that overrides
// what it inherited still fits.
func virtualName(symbol string) string {
	parts, rest := nestedName(symbol)
	switch {
	case strings.HasPrefix(rest, "D0"), strings.HasPrefix(rest, "D1"), strings.HasPrefix(rest, "D2"):
		return "destructor " + strings.Replace(rest[:2], "D2", "D1", 1)
	case rest == symbol:
		return symbol
	case len(parts) == 0:
		return ""
	}
	return parts[len(parts)-1]
}

// CompareVtables says what of a table is not as before, slot by slot; functions may follow the old ones. named is how many slots had a
// name on both sides.
func CompareVtables(before, after [][]string) (problem string, named int) {
	for slot, names := range before {
		if slot >= len(after) {
			return fmt.Sprintf("%d functions, %d before", len(after), len(before)), named
		}
		if names[0] == boundSlot || after[slot][0] == boundSlot {
			continue
		}
		if !sameFunction(names, after[slot]) {
			return fmt.Sprintf("slot %d is %s, and %s before", slot, strings.Join(after[slot], " or "), strings.Join(names, " or ")), named
		}
		named++
	}
	return "", named
}

// sameFunction: one address may have several names, where the linker has put equal functions together.
func sameFunction(before, after []string) bool {
	return slices.ContainsFunc(before, func(one string) bool {
		return slices.ContainsFunc(after, func(other string) bool { return virtualName(one) == virtualName(other) })
	})
}
