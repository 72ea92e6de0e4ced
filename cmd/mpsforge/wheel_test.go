package main

import (
	"archive/zip"
	"bytes"
	"debug/macho"
	"encoding/binary"
	"io/fs"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"mpsforge/fork/macos/wheels"
)

// wheel makes a wheel of a folder's files: wheel FILE DIR. A file DIR/names becomes the two libraries of a wheel for macOS. Each of its lines is a
// kind and what it names: function SYMBOL, table SYMBOL FUNCTIONS..., selector NAME, class NAME, binding NAME, kernel NAME.
func wheel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: wheel FILE DIR")
	}
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer file.Close()
	archive := zip.NewWriter(file)
	add := func(name string, data []byte) {
		part, err := archive.Create(name)
		ts.Check(err)
		_, err = part.Write(data)
		ts.Check(err)
	}
	folder := os.DirFS(ts.MkAbs(args[1]))
	ts.Check(fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(folder, name)
		if name == "names" {
			named := map[string][]string{}
			for line := range strings.Lines(string(text)) {
				kind, what, _ := strings.Cut(strings.TrimSpace(line), " ")
				named[kind] = append(named[kind], what)
			}
			add(wheels.LibtorchCPU, machoOf(ts, named))
			add("torch/lib/libtorch_python.dylib", append(machoOf(ts, nil), "\x00"+strings.Join(named["binding"], "\x00")+"\x00"...))
		} else {
			add(name, text)
		}
		return err
	}))
	ts.Check(archive.Close())
}

// machoOf is a library for macOS 14 with those names, as far as mpsforge reads one.
func machoOf(ts *testscript.TestScript, named map[string][]string) []byte {
	const tables, functions = 0x1000, 0x100000 // addresses
	text, data := []byte{0}, []byte{}
	var symbols []macho.Nlist64
	symbol := func(name string, kind uint8, address uint64) {
		symbols = append(symbols, macho.Nlist64{Name: uint32(len(text)), Type: kind, Sect: 1, Value: address})
		text = append(append(text, name...), 0)
	}
	const local, external, undefined = 0x0e, 0x0f, 0x01
	next := uint64(functions)
	for _, name := range named["function"] {
		symbol(name, external, next)
		next += 16
	}
	for _, table := range named["table"] {
		words := strings.Fields(table)
		symbol(words[0], external, tables+uint64(len(data)))
		data = append(data, make([]byte, 16)...)
		for _, name := range words[1:] {
			symbol(name, local, next)
			data = binary.LittleEndian.AppendUint64(data, next)
			next += 16
		}
	}
	for _, name := range named["class"] {
		symbol("_OBJC_CLASS_$_"+name, undefined, 0)
	}
	selectors := []byte(strings.Join(named["selector"], "\x00"))
	kernels := metalLibrary(named["kernel"])
	const header, segment, section, build, symtab = 32, 72, 80, 24, 24
	sections := []macho.Section64{{Addr: tables, Size: uint64(len(data))}, {Size: uint64(len(selectors))}, {Size: uint64(len(kernels))}}
	at := uint32(header + segment + len(sections)*section + build + symtab)
	for i, name := range []string{"__const", "__objc_methname", "metal_basic"} {
		copy(sections[i].Name[:], name)
		copy(sections[i].Seg[:], []string{"__DATA", "__TEXT", "__TEXT"}[i])
		sections[i].Offset = at
		at += uint32(sections[i].Size)
	}
	commands := uint32(segment + len(sections)*section + build + symtab)
	var made bytes.Buffer
	for _, part := range []any{
		macho.FileHeader{Magic: macho.Magic64, Cpu: macho.CpuArm64, Type: macho.TypeDylib, Ncmd: 3, Cmdsz: commands}, uint32(0),
		macho.Segment64{Cmd: macho.LoadCmdSegment64, Len: uint32(segment + len(sections)*section), Nsect: uint32(len(sections))}, sections,
		[]uint32{0x32, build, 1, 14 << 16, 15 << 16, 0}, // LC_BUILD_VERSION
		macho.SymtabCmd{Cmd: macho.LoadCmdSymtab, Len: symtab, Symoff: at, Nsyms: uint32(len(symbols)), Stroff: at + uint32(len(symbols))*16,
			Strsize: uint32(len(text))},
		data, selectors, kernels, symbols, text,
	} {
		ts.Check(binary.Write(&made, binary.LittleEndian, part))
	}
	return made.Bytes()
}

// metalLibrary has kernels without code.
func metalLibrary(names []string) []byte {
	field := func(tag string, value []byte) []byte {
		return append(binary.LittleEndian.AppendUint16([]byte(tag), uint16(len(value))), value...)
	}
	list := binary.LittleEndian.AppendUint32(nil, uint32(len(names)))
	for _, name := range names {
		row := append(append(append(field("NAME", append([]byte(name), 0)), field("MDSZ", make([]byte, 8))...), field("OFFT", make([]byte, 24))...), "ENDT"...)
		list = append(binary.LittleEndian.AppendUint32(list, uint32(len(row)+4)), row...)
	}
	data := append([]byte("MTLB"), make([]byte, 84)...)
	binary.LittleEndian.PutUint64(data[24:], uint64(len(data)))
	binary.LittleEndian.PutUint64(data[32:], uint64(len(list)-4))
	binary.LittleEndian.PutUint64(data[72:], uint64(len(data)+len(list)))
	return append(data, list...)
}
