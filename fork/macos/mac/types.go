package mac

import (
	"encoding/binary"
	"strings"
)

const typeInfoPrefix = "__ZTI"

// typeInfo is what a library has of a C++ type.
//
// On arm64 macOS two such records are one type if they are one address, or if both are marked to be compared by their names: by the highest
// bit of the pointer to the name (libc++'s <typeinfo>, _LIBCPP_TYPEINFO_COMPARISON_IMPLEMENTATION 3). Clang marks a type's if it is weak and
// the type visible to other libraries; the linker then hides it, so that each library has one of its own.
type typeInfo struct {
	byName   bool
	compared bool // by code or by a table of exceptions, as dynamic_cast, typeid and catch do; throw only hands it to the tables of handlers
	local    bool // to one source, as those of lambdas are
}

// types are what a library defines, by symbol.
func (c *machineCode) types() map[string]*typeInfo {
	found, at := map[string]*typeInfo{}, map[uint64]*typeInfo{}
	for _, symbol := range c.image.file.Symtab.Syms {
		if symbol.Type&0xe0 != 0 || symbol.Type&typeMask != typeSection || !strings.HasPrefix(symbol.Name, typeInfoPrefix) {
			continue
		}
		name := c.word(symbol.Value + 8)
		one := &typeInfo{byName: name>>63 == 1, local: symbol.Type&(typeExternal|typePrivate) == 0}
		if c.image.chained { // the upper 8 bits are behind 36 of the address
			one.byName = name>>43&1 == 1
		}
		found[symbol.Name], at[symbol.Value] = one, one
	}
	// What code and tables compare they have from pointers, which the dynamic linker may bind to another library's.
	pointers := map[uint64]*typeInfo{}
	for _, section := range c.image.file.Sections {
		if data := c.dataOf(section); section.Name == "__got" {
			for i := 0; i+8 <= len(data); i += 8 {
				if value, bound := c.image.pointer(binary.LittleEndian.Uint64(data[i:])); !bound && at[value] != nil {
					pointers[section.Addr+uint64(i)] = at[value]
				}
			}
		}
	}
	compare := func(one *typeInfo) {
		if one != nil {
			one.compared = true
		}
	}
	c.addresses(func(to uint64, loaded, thrown bool) {
		if thrown {
			return
		}
		compare(pointers[to])
		if !loaded {
			compare(at[to])
		}
	})
	for _, section := range c.image.file.Sections {
		if data := c.dataOf(section); section.Name == "__gcc_except_tab" { // its pointers are relative to themselves, and indirect
			for i := 0; i+4 <= len(data); i += 4 {
				compare(pointers[section.Addr+uint64(i)+uint64(int64(int32(binary.LittleEndian.Uint32(data[i:]))))])
			}
		}
	}
	return found
}

// dividedTypes are those that are two types to a process in which an overlay's library is, and that either copy compares: a cast would fail
// and a handler not be found. Function types are not among them: c10::CppSignature compares their names (ATen/core/dispatch/CppSignature.h).
func dividedTypes(own, theirs map[string]*typeInfo) (names []string) {
	for name, mine := range own {
		other := theirs[name]
		if other == nil || mine.local || other.local || strings.HasPrefix(name, typeInfoPrefix+"F") {
			continue
		}
		if (mine.compared || other.compared) && !(mine.byName && other.byName) {
			names = append(names, name)
		}
	}
	return names
}
