package shaders

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Library is a Metal library as the wheel has it: a section of libtorch_cpu.dylib.
type Library struct {
	Section string
	Modules []Module
}

// Module is one kernel's LLVM bitcode.
type Module struct {
	Name    string
	Bitcode []byte
}

// sections are those that PyTorch looks for, by what the macOS can do.
var sections = []string{"metal_basic", "metal_bfloat"}

// readDylib gives the sections of a library for macOS that hold Metal libraries, by name.
func readDylib(file io.ReaderAt) (map[string][]byte, error) {
	library, err := macho.NewFile(file)
	if err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	for _, name := range sections {
		section := library.Section(name)
		if section == nil {
			continue
		}
		if found[name], err = section.Data(); err != nil {
			return nil, fmt.Errorf("section %s: %w", name, err)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("it has none of the sections %v", sections)
	}
	return found, nil
}

// Kernels names the kernels in a library for macOS, by the section that has them, those that host builds do not use included.
func Kernels(file io.ReaderAt) (map[string][]string, error) {
	opened, err := macho.NewFile(file)
	if err != nil {
		return nil, err
	}
	names := map[string][]string{}
	for _, section := range opened.Sections {
		if !strings.HasPrefix(section.Name, "metal_") {
			continue
		}
		data, err := section.Data()
		if err != nil {
			return nil, fmt.Errorf("section %s: %w", section.Name, err)
		}
		library, err := parseLibrary(section.Name, data)
		if err != nil {
			return nil, err
		}
		for _, module := range library.Modules {
			names[section.Name] = append(names[section.Name], module.Name)
		}
		slices.Sort(names[section.Name])
	}
	return names, nil
}

var errShort = errors.New("the Metal library ends too early")

// parseLibrary reads a metallib: a head of fixed size with the places of its parts, a list of functions that are each a
// row of tagged fields, and their bitcode. Nothing describes the format officially; the fields are those that
// https://github.com/YuAo/MetalLibraryArchive (MIT) names.
func parseLibrary(section string, data []byte) (Library, error) {
	library := Library{Section: section}
	const head = 88
	if len(data) < head || !bytes.HasPrefix(data, []byte("MTLB")) {
		return library, fmt.Errorf("section %s holds no Metal library", section)
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }
	part := func(from, size uint64) ([]byte, error) {
		if from > uint64(len(data)) || size > uint64(len(data))-from {
			return nil, errShort
		}
		return data[from : from+size], nil
	}
	// The list's own size leaves out the count before it.
	list, err := part(word(24), word(32)+4)
	if err != nil {
		return library, err
	}
	if len(list) < 4 { // the sum was beyond the largest number
		return library, errShort
	}
	bitcode, err := part(word(72), word(80))
	if err != nil {
		return library, err
	}
	count := binary.LittleEndian.Uint32(list)
	list = list[4:]
	for range count {
		if len(list) < 4 {
			return library, errShort
		}
		size := uint64(binary.LittleEndian.Uint32(list))
		if size < 4 || size > uint64(len(list)) {
			return library, errShort
		}
		fields, err := tagged(list[4:size])
		if err != nil {
			return library, err
		}
		list = list[size:]
		name, place, length := bytes.TrimRight(fields["NAME"], "\x00"), fields["OFFT"], fields["MDSZ"]
		if len(name) == 0 || len(place) < 24 || len(length) < 8 {
			return library, fmt.Errorf("a function of section %s has no name, place or size", section)
		}
		from, size := binary.LittleEndian.Uint64(place[16:]), binary.LittleEndian.Uint64(length)
		if from > uint64(len(bitcode)) || size > uint64(len(bitcode))-from {
			return library, errShort
		}
		library.Modules = append(library.Modules, Module{string(name), bitcode[from : from+size]})
	}
	return library, nil
}

// tagged reads fields of four letters, a length and so many bytes, up to ENDT.
func tagged(row []byte) (map[string][]byte, error) {
	fields := map[string][]byte{}
	for len(row) >= 4 && string(row[:4]) != "ENDT" {
		if len(row) < 6 {
			return nil, errShort
		}
		size := int(binary.LittleEndian.Uint16(row[4:]))
		if size > len(row)-6 {
			return nil, errShort
		}
		fields[string(row[:4])] = row[6 : 6+size]
		row = row[6+size:]
	}
	return fields, nil
}
