package overlay_test

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/host/hosttest"
	"mpsforge/fork/wheels"
	"mpsforge/internal/cxx"
	"mpsforge/internal/events"
	"mpsforge/native"
	"mpsforge/patches"
)

// libtorchPython is PyTorch's own library for macOS: more of its pointers lead into another library than those of any other.
func libtorchPython(t *testing.T) (file, cache string) {
	t.Helper()
	_, cache = hosttest.Root(t)
	series, err := patches.Load(patches.Embedded(), "v2.6.0")
	if err != nil {
		t.Fatal(err)
	}
	facts, err := series.HostFacts()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := wheels.Wheel(facts.Wheel).Get(t.Context(), cache, wheels.TorchParts, events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP Mach-O: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "torch/lib/libtorch_python.dylib"), cache
}

// machoProgram is testdata/macho.cc over native/overlay/macho.
func machoProgram(t *testing.T, cache string) string {
	t.Helper()
	compiler := cxx.Find(t.Context(), cache)
	if compiler.Err != nil {
		t.Skipf("SKIP Mach-O: %v", compiler.Err)
	}
	var sources []cxx.Source
	for _, name := range []string{"image.h", "image.cc"} {
		text, err := native.Overlay.ReadFile("overlay/macho/" + name)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, cxx.Source{Path: name, Data: text})
	}
	text, err := os.ReadFile("testdata/macho.cc")
	if err != nil {
		t.Fatal(err)
	}
	program, err := (&cxx.Builder{Cache: cache, Compiler: compiler}).Build(t.Context(), cxx.Target{Flavour: cxx.Program, Sources: append(sources, cxx.Source{Path: "main.cc", Data: text})})
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// symbolPointers are the slots of a library's sections with symbol pointers, with their symbols, by the table of indirect symbols, which the
// dynamic linker does not use: what the opcodes say is held against it.
func symbolPointers(t *testing.T, file string) map[string]bool {
	t.Helper()
	library, err := macho.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	found := map[string]bool{}
	for _, load := range library.Loads {
		segment, ok := load.(*macho.Segment)
		if !ok {
			continue
		}
		sections := make([]macho.Section64, segment.Nsect)
		if err := binary.Read(bytes.NewReader(segment.Raw()[72:]), library.ByteOrder, sections); err != nil {
			t.Fatal(err)
		}
		for _, section := range sections {
			if kind := section.Flags & 0xff; kind != 6 && kind != 7 { // S_NON_LAZY_SYMBOL_POINTERS, S_LAZY_SYMBOL_POINTERS
				continue
			}
			for i := range uint32(section.Size / 8) {
				if index := library.Dysymtab.IndirectSyms[section.Reserve1+i]; index>>30 == 0 { // neither local nor absolute
					found[fmt.Sprintf("%s %d", library.Symtab.Syms[index].Name, section.Addr+uint64(i)*8)] = true
				}
			}
		}
	}
	return found
}

// Not run on a Mac: the wheel's own bytes, mapped on Linux.
func TestMachoPointersOfTheWheel(t *testing.T) {
	file, cache := libtorchPython(t)
	output, err := exec.CommandContext(t.Context(), machoProgram(t, cache), file, "N2at").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	pointers, facts := map[string]bool{}, map[string]string{}
	for line := range strings.Lines(string(output)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if words[0] != "pointer" {
			facts[words[0]] = words[1]
			continue
		}
		name := words[1]
		if strings.Contains(name, ".") {
			name = strings.TrimPrefix(name, "_") // as debug/macho has it
		}
		pointers[name+" "+words[2]] = true
	}
	t.Run("every symbol pointer is found", func(t *testing.T) {
		wanted := symbolPointers(t, file)
		if len(wanted) < 5000 {
			t.Errorf("only %d are known", len(wanted))
		}
		for pointer := range wanted {
			if !pointers[pointer] {
				t.Errorf("%s is not found", pointer)
			}
		}
	})
	t.Run("those that are asked for are written", func(t *testing.T) {
		if facts["written"] != facts["expected"] || len(facts["expected"]) < 4 {
			t.Errorf("%v", facts)
		}
	})
	t.Run("nothing else has changed", func(t *testing.T) {
		if facts["elsewhere"] != "0" {
			t.Errorf("%v", facts)
		}
	})
	t.Run("protections are as before", func(t *testing.T) {
		if facts["protections"] != "restored" {
			t.Errorf("%v", facts)
		}
	})
}

func TestMachoThatIsForgedIsRefused(t *testing.T) {
	file, cache := libtorchPython(t)
	program := machoProgram(t, cache)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	library, err := macho.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	var info int // where LC_DYLD_INFO_ONLY is in the file
	at := 32
	for _, load := range library.Loads {
		if binary.LittleEndian.Uint32(load.Raw()) == 0x80000022 {
			info = at
		}
		at += len(load.Raw())
	}
	opcodes := int(binary.LittleEndian.Uint32(whole[info+16:]))
	for name, change := range map[string]struct {
		do  func(file []byte)
		why string
	}{
		"of another kind":              {func(file []byte) { file[0] ^= 1 }, "not a 64-bit Mach-O image"},
		"with chained fixups":          {func(file []byte) { binary.LittleEndian.PutUint32(file[info:], 0x80000034) }, "chained fixups"},
		"with opcodes in its code":     {func(file []byte) { binary.LittleEndian.PutUint32(file[info+16:], 64) }, "outside of __LINKEDIT"},
		"with a segment too many":      {func(file []byte) { copy(file[opcodes:], []byte{0x7f, 0}) }, "a segment that is not there"},
		"that binds in its code":       {func(file []byte) { copy(file[opcodes:], []byte{0x51, 0x70, 0, 0x90}) }, "outside of the image's data"},
		"that binds behind its data":   {func(file []byte) { copy(file[opcodes:], []byte{0x72, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x90}) }, "outside of the image's data"},
		"with an opcode of no meaning": {func(file []byte) { file[opcodes] = 0xf0 }, "unknown binding opcode"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := bytes.Clone(whole)
			change.do(changed)
			forged := filepath.Join(t.TempDir(), "forged.dylib")
			if err := os.WriteFile(forged, changed, 0o644); err != nil {
				t.Fatal(err)
			}
			if output, err := exec.CommandContext(t.Context(), program, forged, "N2at").CombinedOutput(); err == nil || !strings.Contains(string(output), change.why) {
				t.Errorf("%v: %.300s", err, output)
			}
		})
	}
}
