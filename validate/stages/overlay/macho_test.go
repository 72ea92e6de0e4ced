package overlay_test

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/mac"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/cxx"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/native"
	"mpsforge/patches"
)

// dyldSource is what only macOS can run. The rest of native/overlay/macho runs here, on the bytes of libraries for macOS.
const dyldSource = "macho/dyld.cc"

// machoSources are the overlay's for Mach-O, by their paths in native/overlay.
func machoSources(t *testing.T) []cxx.Source {
	t.Helper()
	var sources []cxx.Source
	for _, pattern := range []string{"overlay/rebind.h", "overlay/macho/*"} {
		names := require.One(fs.Glob(native.Overlay, pattern))(t)
		for _, name := range names {
			text := require.One(native.Overlay.ReadFile(name))(t)
			sources = append(sources, cxx.Source{Path: strings.TrimPrefix(name, "overlay/"), Data: text})
		}
	}
	return sources
}

// machoProgram is testdata/macho.cc over them, with AddressSanitizer if the compiler has it.
func machoProgram(t *testing.T, cache string) string {
	t.Helper()
	compiler := cxx.Find(t.Context(), cache)
	if compiler.Err != nil {
		t.Skipf("SKIP Mach-O: %v", compiler.Err)
	}
	flavour := cxx.AddressProgram
	if compiler.Address != nil {
		t.Logf("without AddressSanitizer: %v", compiler.Address)
		flavour = cxx.Program
	}
	sources := slices.DeleteFunc(machoSources(t), func(s cxx.Source) bool { return s.Path == dyldSource })
	text := require.One(os.ReadFile("testdata/macho.cc"))(t)
	return require.One((&cxx.Builder{Cache: cache, Compiler: compiler}).Build(t.Context(),
		cxx.Target{Flavour: flavour, Sources: append(sources, cxx.Source{Path: "main.cc", Data: text})}))(t)
}

// torchLibraries is the folder with PyTorch's own libraries for macOS. Those of another version than Debian's are not downloaded for this.
func torchLibraries(t *testing.T, cache, baseline string) string {
	t.Helper()
	series := require.One(patches.Load(patches.Embedded(), baseline))(t)
	facts := require.One(series.MacFacts())(t)
	wheel := wheels.Wheel(facts.Wheel)
	if baseline != host.DebianBaseline && !wheel.Have(cache, wheels.TorchParts) {
		t.Skipf("SKIP Mach-O of %s: the cache does not have %s", baseline, wheel.Name())
	}
	dir, err := wheel.Get(t.Context(), cache, wheels.TorchParts, events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP Mach-O: %v", err)
	}
	require.NoError(t, err)
	return filepath.Join(dir, "torch/lib")
}

// laboratory makes small libraries for macOS.
type laboratory struct {
	root       *host.Root
	cache, dir string
}

func newLaboratory(t *testing.T) laboratory {
	t.Helper()
	root, cache := hosttest.Root(t)
	return laboratory{root, cache, t.TempDir()}
}

// library links one of assembly.
func (l laboratory) library(t *testing.T, name, assembly string, args ...string) string {
	t.Helper()
	file := filepath.Join(l.dir, name+".dylib")
	compile := exec.CommandContext(t.Context(), l.root.Tool("clang"), "-target", "arm64-apple-macos11.0", "-x", "c", "-c", "-", "-o", file+".o")
	compile.Stdin = strings.NewReader("__asm__(" + cText(assembly) + ");\n")
	link := exec.CommandContext(t.Context(), l.root.Tool("ld64"), append([]string{"-arch", "arm64", "-platform_version", "macos", "11.0", "14.5", "-dylib",
		"-install_name", "@rpath/" + name + ".dylib", file + ".o", "-o", file}, args...)...)
	for _, command := range []*exec.Cmd{compile, link} {
		if text, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command.Args, err, text)
		}
	}
	return file
}

func cText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "\\n").Replace(text) + `"`
}

// defining is assembly that defines symbols.
func defining(names []string) string {
	var text strings.Builder
	text.WriteString(".data\n")
	for _, name := range names {
		fmt.Fprintf(&text, ".globl \"%[1]s\"\n\"%[1]s\": .quad 1\n", name)
	}
	return text.String()
}

// overlayOf is a library that plays the overlay's: it has those symbols, and initializers that the dynamic linker does not see.
func (l laboratory) overlayOf(t *testing.T, names []string) string {
	t.Helper()
	running := l.library(t, "running", defining(names)+".section __DATA,__mod_init_func\n.quad \""+names[0]+"\"\n")
	return l.changed(t, running, "own.dylib", func(file []byte) {
		section := bytes.Index(file, []byte("__mod_init_func\x00"))
		copy(file[section:], "__mpsforge_init\x00")
		file[section+64] = 0
	})
}

// changed writes a changed copy of a file.
func (l laboratory) changed(t *testing.T, from, name string, change func(file []byte)) string {
	t.Helper()
	file := require.One(os.ReadFile(from))(t)
	change(file)
	to := filepath.Join(l.dir, name)
	require.NoError(t, os.WriteFile(to, file, 0o644))
	return to
}

// Symbols of torch's copy: two that others use, and one that the overlay does not have.
const (
	stream = "__ZN2at3mps19getDefaultMPSStreamEv"
	vtable = "__ZTVN2at3mps12MPSGuardImplE"
	gone   = "__ZN2at3mps20is_macos_13_or_newerENS0_12MacOSVersionE"
	model  = "_aoti_torch_mps_addmm_out" // 2.9.1 has 118 of these
)

// using is assembly with pointers to a function and into a vtable, in constant data and in other data, beside what they must not be confused with.
func using(function string) string {
	return fmt.Sprintf(".text\n.globl _use\n_use: adrp x0, %[1]s@GOTPAGE\nldr x0, [x0, %[1]s@GOTPAGEOFF]\nret\n.data\n.quad 7\n.quad %[1]s\n.quad "+
		"%[2]s+16\n.quad _use\n", function, vtable)
}

// facts are what the program says, by the first word of a line, or by two.
func facts(output string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(output) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		found[strings.Join(words[:len(words)-1], " ")] = words[len(words)-1]
	}
	return found
}

// symbolPointers are the slots of a library's sections with symbol pointers, with their symbols, by the table of indirect symbols, which the
// dynamic linker does not use: what the opcodes say is compared with it.
func symbolPointers(t *testing.T, file string) map[string]bool {
	t.Helper()
	library := require.One(macho.Open(file))(t)
	defer library.Close()
	found := map[string]bool{}
	for _, load := range library.Loads {
		segment, ok := load.(*macho.Segment)
		if !ok {
			continue
		}
		sections := make([]macho.Section64, segment.Nsect)
		require.NoError(t, binary.Read(bytes.NewReader(segment.Raw()[72:]), library.ByteOrder, sections))
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

// backendExports are the symbols of the backend in torch's library.
func backendExports(t *testing.T, file string) (names []string) {
	t.Helper()
	library := require.One(macho.Open(file))(t)
	defer library.Close()
	for _, symbol := range library.Symtab.Syms {
		const external, section = 0x01, 0x0e
		if symbol.Type == external|section && (strings.Contains(symbol.Name, "2at3mps") || strings.Contains(symbol.Name, "2at6native3mps")) {
			names = append(names, symbol.Name)
		}
	}
	return names
}

// Not run on a Mac: the wheel's own bytes, mapped and bound on Linux.
func TestMachoImagesOfTheWheelAreLed(t *testing.T) { imagesAreLed(t, host.DebianBaseline) }

// Its sources are not here, and nothing but its libraries is known of it.
func TestMachoImagesOfTheWheelOf291AreLed(t *testing.T) { imagesAreLed(t, "v2.9.1") }

func imagesAreLed(t *testing.T, baseline string) {
	l := newLaboratory(t)
	torch := torchLibraries(t, l.cache, baseline)
	old, python := filepath.Join(torch, "libtorch_cpu.dylib"), filepath.Join(torch, "libtorch_python.dylib")
	own := l.overlayOf(t, slices.DeleteFunc(backendExports(t, old), func(name string) bool { return name == gone }))
	chained, classic := l.library(t, "chained", using(stream), "-fixup_chains", old), l.library(t, "classic", using(stream), "-no_fixup_chains", old)
	output, err := exec.CommandContext(t.Context(), machoProgram(t, l.cache), old, own, python, filepath.Join(torch, "libc10.dylib"), chained, "later",
		classic).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	said := facts(string(output))
	t.Run("every symbol pointer is found", func(t *testing.T) {
		wanted := symbolPointers(t, python)
		if len(wanted) < 5000 {
			t.Errorf("only %d are known", len(wanted))
		}
		found := map[string]bool{}
		for line := range strings.Lines(string(output)) {
			if words := strings.Fields(line); words[0] == "pointer" {
				if strings.Contains(words[1], ".") {
					words[1] = strings.TrimPrefix(words[1], "_") // as debug/macho has it
				}
				found[words[1]+" "+words[2]] = true
			}
		}
		for pointer := range wanted {
			if !found[pointer] {
				t.Errorf("%s is not found", pointer)
			}
		}
	})
	t.Run("looking changes nothing", func(t *testing.T) {
		require.Equal(t, said["check"], "nothing changed")
	})
	for when, images := range map[string][]string{"first": {python, chained}, "later": {classic}} {
		pointers := 0
		for _, image := range images {
			var n int
			if _, err := fmt.Sscan(said["rebound "+image], &n); err != nil || n < 3 {
				t.Errorf("pointers of %s that lead to the overlay: %q", image, said["rebound "+image])
			}
			pointers += n
		}
		for what, wanted := range map[string]string{"led": fmt.Sprint(pointers), "stale": "0", "elsewhere": "0", "protections": "restored"} {
			t.Run(when+": "+what, func(t *testing.T) {
				if said[when+" "+what] != wanted {
					t.Errorf("%q and not %q", said[when+" "+what], wanted)
				}
			})
		}
	}
	t.Run("a second time there is nothing to change", func(t *testing.T) {
		require.Equal(t, said["again"], "nothing changed")
	})
	t.Run("no pointer into torch's copy is left", func(t *testing.T) {
		if _, left := said["left"]; left {
			t.Errorf("%v", said["left"])
		}
	})
}

// small are a library that plays torch's, one that plays the overlay's, and two that use torch's, bound in either way.
func (l laboratory) small(t *testing.T) (old, own, chained, classic string) {
	t.Helper()
	old, own = l.library(t, "old", defining([]string{stream, vtable, gone})), l.overlayOf(t, []string{stream, vtable})
	return old, own, l.library(t, "chained", using(stream), "-fixup_chains", old), l.library(t, "classic", using(stream), "-no_fixup_chains", old)
}

// command is where a load command of that kind is in a file.
func command(file []byte, kind uint32) int {
	at := 32
	for binary.LittleEndian.Uint32(file[at:]) != kind {
		at += int(binary.LittleEndian.Uint32(file[at+4:]))
	}
	return at
}

func put(file []byte, at int, value uint32) { binary.LittleEndian.PutUint32(file[at:], value) }

// opcodes puts some at the beginning of those that bind at once.
func opcodes(file []byte, codes ...byte) {
	copy(file[binary.LittleEndian.Uint32(file[command(file, dyldInfo)+16:]):], codes)
}

// Of <mach-o/loader.h>.
const (
	symbolTable   = 0x2
	segment64     = 0x19
	dyldInfo      = 0x80000022
	chainedFixups = 0x80000034
)

func TestMachoThatCannotBeLedIsRefused(t *testing.T) {
	l := newLaboratory(t)
	program := machoProgram(t, l.cache)
	old, own, chained, classic := l.small(t)
	// tables is where a table of chained fixups is that the header of all of them names at a place.
	tables := func(file []byte, at int) int {
		fixups := int(binary.LittleEndian.Uint32(file[command(file, chainedFixups)+8:]))
		return fixups + int(binary.LittleEndian.Uint32(file[fixups+at:]))
	}
	images := map[string]string{"old": old, "own": own, "chained": chained, "classic": classic}
	for name, c := range map[string]struct {
		image  string
		change func(file []byte)
		why    string
	}{
		"an image of another kind": {"classic", func(file []byte) { file[0] ^= 1 }, "not a 64-bit Mach-O image"},
		"load commands that end early": {"classic", func(file []byte) { put(file, 20, binary.LittleEndian.Uint32(file[20:])-8) },
			"leads out of the header"},
		"a load command that is too long":  {"classic", func(file []byte) { put(file, 36, 1<<20) }, "leads out of the header"},
		"a load command that is too short": {"classic", func(file []byte) { put(file, 36, 4) }, "leads out of the header"},
		"more load commands than memory":   {"classic", func(file []byte) { put(file, 20, 1<<30) }, "load commands are not in memory"},
		"segments over each other":         {"classic", func(file []byte) { put(file, 32+int(binary.LittleEndian.Uint32(file[36:]))+24, 0) }, "overlap"},
		"a segment larger than its memory": {"classic", func(file []byte) { put(file, command(file, segment64)+48+4, 1) }, "larger than its memory"},
		"pointers that arm64e signs":       {"classic", func(file []byte) { file[8] = 2 }, "signed pointer of arm64e"},
		"no word of how it is bound":       {"classic", func(file []byte) { put(file, command(file, dyldInfo), 0x7f) }, "does not say how it is bound"},
		"opcodes in code":                  {"classic", func(file []byte) { put(file, command(file, dyldInfo)+16, 64) }, "outside of __LINKEDIT"},
		"opcodes that end in the middle":   {"classic", func(file []byte) { put(file, command(file, dyldInfo)+20, 3) }, "a name does not end"},
		"a segment that is not there":      {"classic", func(file []byte) { opcodes(file, 0x7f, 0) }, "a segment that is not there"},
		"a pointer in code":                {"classic", func(file []byte) { opcodes(file, 0x51, 0x70, 0, 0x90) }, "outside of the image's data"},
		"a pointer behind its data": {"classic", func(file []byte) { opcodes(file, 0x72, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x90) },
			"outside of the image's data"},
		"an opcode of no meaning":               {"classic", func(file []byte) { opcodes(file, 0xf0) }, "unknown binding opcode"},
		"chains outside of the image":           {"chained", func(file []byte) { put(file, command(file, chainedFixups)+8, 1<<30) }, "outside of __LINKEDIT"},
		"chains of another version":             {"chained", func(file []byte) { put(file, tables(file, 0), 9) }, "unknown version"},
		"an import's name outside of its table": {"chained", func(file []byte) { put(file, tables(file, 8), 0xfffffe01) }, "ends early"},
		"an import that is not there": {"chained", func(file []byte) { copy(file[dataOf(t, file)+8:], []byte{0xff, 0xff, 0xff}) },
			"an import that is not there"},
		"chains of signed pointers": {"chained", signChains, "pointers of form 1"},
		"symbols outside of the file": {"old", func(file []byte) { put(file, command(file, symbolTable)+8, 1<<30) },
			"symbols are outside of __LINKEDIT"},
		"more symbols than the file": {"old", func(file []byte) { put(file, command(file, symbolTable)+12, 1<<28) },
			"symbols are outside of __LINKEDIT"},
		"symbols' names outside of the file": {"old", func(file []byte) { put(file, command(file, symbolTable)+16, 1<<30) },
			"symbols' names are outside of __LINKEDIT"},
		"a copy without symbols": {"old", func(file []byte) { put(file, command(file, symbolTable)+12, 0) }, "exports nothing of the backend"},
		"initializers that dyld has run already": {"own", func(file []byte) { file[bytes.Index(file, []byte("__mpsforge_init"))+64] = 9 },
			"has run initializers"},
	} {
		t.Run(name, func(t *testing.T) {
			forged := l.changed(t, images[c.image], "forged.dylib", c.change)
			args := []string{}
			for _, image := range []string{"old", "own", "chained", "classic"} {
				if image == c.image {
					args = append(args, images[image]+":"+forged)
				} else {
					args = append(args, images[image])
				}
			}
			refused(t, program, c.why, args...)
		})
	}
	t.Run("a symbol that the overlay does not have", func(t *testing.T) {
		user := l.library(t, "user", using(gone), "-fixup_chains", old)
		refused(t, program, user+" uses what this copy of the backend does not have: "+gone, old, own, classic, user)
	})
	t.Run("a model of AOTInductor, whose functions branch into torch's copy", func(t *testing.T) {
		theirs := l.library(t, "old", defining([]string{stream, vtable, gone, model}))
		compiled := l.library(t, "compiled", using(model), "-fixup_chains", theirs)
		refused(t, program, compiled+" uses what this copy of the backend does not have: "+model, theirs, own, compiled)
	})
	t.Run("another file than the one that is loaded", func(t *testing.T) {
		for _, image := range []string{old, chained} {
			other := l.library(t, "other", ".data\n.quad 5\n", old)
			args := []string{old, own, classic, chained}
			args[slices.Index(args, image)] += ":" + other
			refused(t, program, "is another file than the image that was loaded", args...)
		}
	})
	t.Run("a file for several processors is no reason to refuse", func(t *testing.T) {
		thin := require.One(os.ReadFile(chained))(t)
		const place = 1 << 14
		fat := make([]byte, place, place+len(thin))
		for i, word := range []uint32{0xcafebabe, 1, 0x0100000c, 0, place, uint32(len(thin)), 14} {
			binary.BigEndian.PutUint32(fat[4*i:], word)
		}
		file := filepath.Join(l.dir, "fat.dylib")
		require.NoError(t, os.WriteFile(file, append(fat, thin...), 0o644))
		output, err := exec.CommandContext(t.Context(), program, old, own, chained+":"+file).CombinedOutput()
		if said := facts(string(output)); err != nil || said["first led"] != "3" || said["first stale"] != "0" {
			t.Errorf("%v: %s", err, output)
		}
	})
}

// dataOf is where a library's section __data is in its file.
func dataOf(t *testing.T, file []byte) int {
	t.Helper()
	library := require.One(macho.NewFile(bytes.NewReader(file)))(t)
	return int(library.Section("__data").Offset)
}

// signChains says of each segment's chains that they are of arm64e.
func signChains(file []byte) {
	fixups := int(binary.LittleEndian.Uint32(file[command(file, chainedFixups)+8:]))
	starts := fixups + int(binary.LittleEndian.Uint32(file[fixups+4:]))
	for i := range int(binary.LittleEndian.Uint32(file[starts:])) {
		if segment := int(binary.LittleEndian.Uint32(file[starts+4+4*i:])); segment != 0 {
			binary.LittleEndian.PutUint16(file[starts+segment+6:], 1)
		}
	}
}

// refused runs the program, which is to refuse for a reason and to change nothing.
func refused(t *testing.T, program, why string, args ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	failed := (*exec.ExitError)(nil)
	if said := facts(string(output)); !errors.As(err, &failed) || failed.ExitCode() != 1 || !strings.Contains(string(output), why) ||
		said["after that"] != "nothing changed" {
		t.Errorf("%v, expected %q in\n%s", err, why, output)
	}
}

// Whatever is in headers, tables and files, it is read within bounds.
func TestMachoWithRandomBytesIsReadWithinBounds(t *testing.T) {
	l := newLaboratory(t)
	old, own, chained, classic := l.small(t)
	output, err := exec.CommandContext(t.Context(), machoProgram(t, l.cache), "fuzz", "1000", "1", old, own, chained, classic).CombinedOutput()
	if said := facts(string(output)); err != nil || len(said["refused"]) < 3 {
		t.Errorf("%v: %s", err, output)
	}
}

// Not run on a Mac: what calls dyld compiles for it, and links.
func TestMachoGlueLinksForMacOS(t *testing.T) {
	root, cache := hosttest.Root(t)
	series := require.One(patches.Load(patches.Embedded(), host.DebianBaseline))(t)
	facts := require.One(series.MacFacts())(t)
	kit, err := mac.Open(t.Context(), root, cache, facts, events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP for macOS: %v", err)
	}
	require.NoError(t, err)
	defer kit.Close()
	tree := mac.Tree{Subject: "tests/overlay", Dir: t.TempDir()}
	objects := map[string]string{}
	for _, source := range machoSources(t) {
		file := filepath.Join(tree.Dir, source.Path)
		require.File(t, file, string(source.Data))
		if path.Ext(file) == ".cc" {
			tree.Sources = append(tree.Sources, source.Path)
		}
	}
	for one := range slices.Chunk(tree.Sources, 1) { // of more, a header of PyTorch's would be compiled first
		part := tree
		part.Sources = one
		built := require.One(kit.Compile(t.Context(), part, facts, 1, events.Discard))(t)
		require.Equal(t, built.Warnings, nil)
		maps.Copy(objects, built.Objects)
	}
	image := require.One(kit.Link(t.Context(), tree.Subject, objects))(t)
	for _, symbol := range []string{"__ZN8mpsforge7overlay9RebindingC1ERKNSt3__112basic_stringIcNS2_11char_traitsIcEENS2_9allocatorIcEEEE",
		"__ZNK8mpsforge7overlay9Rebinding5applyEv"} {
		if _, defined := image.Defined[symbol]; !defined {
			t.Errorf("%s is not there", symbol)
		}
	}
	if image.Undefined["__dyld_register_func_for_add_image"] != "/usr/lib/libSystem.B.dylib" {
		t.Errorf("the function of dyld that calls for each image is bound to %q", image.Undefined["__dyld_register_func_for_add_image"])
	}
}
