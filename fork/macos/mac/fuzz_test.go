package mac

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"testing"

	"mpsforge/internal/require"
)

// object is a Mach-O library with a symbol table, a table of virtual functions and methods' names.
func object(f *testing.F, fileType macho.Type) []byte {
	f.Helper()
	const header, segment, section, symtab = 32, 72, 80, 24
	strings := []byte("\x00__ZTV1A\x00__ZN1A3oneEv\x00-[A go:]\x00_OBJC_IVAR_$_A._x\x00")
	data := make([]byte, 32)
	binary.LittleEndian.PutUint64(data[16:], 0x1000)
	at := uint32(header + segment + 2*section + symtab)
	methods := []byte("go:\x00stop\x00")
	name := func(text string) (padded [16]byte) { copy(padded[:], text); return padded }
	symbols := at + uint32(len(data)+len(methods))
	var made bytes.Buffer
	for _, part := range []any{
		macho.FileHeader{Magic: macho.Magic64, Cpu: macho.CpuArm64, Type: fileType, Ncmd: 2, Cmdsz: segment + 2*section + symtab}, uint32(0),
		macho.Segment64{Cmd: macho.LoadCmdSegment64, Len: segment + 2*section, Name: name("__DATA"), Memsz: uint64(len(data) + len(methods)),
			Offset: uint64(at), Filesz: uint64(len(data) + len(methods)), Nsect: 2},
		macho.Section64{Name: name("__const"), Seg: name("__DATA"), Addr: 0x1000, Size: uint64(len(data)), Offset: at},
		macho.Section64{Name: name("__objc_methname"), Seg: name("__TEXT"), Addr: 0x2000, Size: uint64(len(methods)), Offset: at + uint32(len(data))},
		macho.SymtabCmd{Cmd: macho.LoadCmdSymtab, Len: symtab, Symoff: symbols, Nsyms: 3, Stroff: symbols + 3*16, Strsize: uint32(len(strings))},
		data, methods,
		macho.Nlist64{Name: 1, Type: 0x0f, Sect: 1, Value: 0x1000},
		macho.Nlist64{Name: 9, Type: 0x0f, Sect: 1, Value: 0x1000},
		macho.Nlist64{Name: 22, Type: 0x01},
		strings,
	} {
		require.NoError(f, binary.Write(&made, binary.LittleEndian, part))
	}
	return made.Bytes()
}

// FuzzImage: no Mach-O file makes the reading of symbols and tables panic.
func FuzzImage(f *testing.F) {
	for _, fileType := range []macho.Type{macho.TypeDylib, macho.TypeObj} {
		seed := object(f, fileType)
		opened := require.One(macho.NewFile(bytes.NewReader(seed)))(f)
		if image, err := readImage(opened); err != nil || len(image.Vtables()) != 1 || len(image.Selectors) != 2 {
			f.Fatalf("the seed is not read as made: %+v, %v", image, err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		opened, err := macho.NewFile(bytes.NewReader(data))
		if err != nil {
			return
		}
		image, err := readImage(opened)
		if err != nil {
			return
		}
		for name := range image.Vtables() {
			slots, err := image.Vtable(name)
			if err == nil {
				_, _ = CompareVtables(slots, slots)
			}
		}
	})
}

// FuzzVirtualName: a symbol is any text.
func FuzzVirtualName(f *testing.F) {
	f.Add("__ZNK2at3mps8MPSHooks9isOnMacOSEv")
	f.Add("__ZN2at3mps8MPSHooksD2Ev")
	f.Add("__ZN9223372036854775807x")
	f.Fuzz(func(_ *testing.T, symbol string) { _ = virtualName(symbol) })
}
