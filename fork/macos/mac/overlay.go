package mac

import (
	"bytes"
	"context"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/native"
	"mpsforge/patches"
)

// OverlayLibrary is the file name of an overlay's library.
const OverlayLibrary = "libmpsforge_overlay.dylib"

// heldInitializers is the section with the pointers to the initializers of an overlay's library, which the dynamic linker would find, and
// run, by another type of the section: mpsforge_overlay_attach runs them once it knows that nothing refuses.
const heldInitializers = "__mpsforge_init"

// Overlay is the patched backend as a library that goes into a process beside the wheel's own.
type Overlay struct {
	File    string
	Stamp   builds.Stamp
	Exports []string // what it is to export
}

// Overlay compiles a checkout's backend and links it.
func (k *Kit) Overlay(ctx context.Context, tree Tree, facts patches.MacFacts, stamp builds.Stamp, jobs int, sink events.Sink) (*Overlay, error) {
	glue := filepath.Join(Folder(k.cache), tree.Subject, "glue")
	stamp, added, err := layGlue(glue, stamp)
	if err != nil {
		return nil, err
	}
	tree.Sources = slices.DeleteFunc(slices.Clone(tree.Sources), func(source string) bool { return slices.Contains(facts.PythonSources, source) })
	tree.Added = added
	tree.Defines = k.renames()
	tree.Flags = map[string][]string{host.HooksSource: {"-include", filepath.Join(glue, "overlay/hooks.h")}}
	built, err := k.Compile(ctx, tree, facts, jobs, sink)
	if err != nil {
		return nil, err
	}
	file, exports, err := k.LinkOverlay(ctx, tree.Subject, built.Objects)
	return &Overlay{file, stamp, exports}, err
}

// renames gives definitions for the compiler that rename the methods which torch's own copy adds to Apple's classes by a category, and the
// overlay's sources do, too: the runtime would call that of the library which was loaded last, for both copies.
func (k *Kit) renames() (defines []string) {
	for _, name := range slices.Sorted(maps.Keys(k.Libraries[0].symbolNames())) {
		if method := ofCategory.FindStringSubmatch(name); method != nil {
			defines = append(defines, "-D"+method[1]+"="+ownMethod+method[1])
		}
	}
	return slices.Compact(defines)
}

// layGlue writes the sources that an overlay adds to the backend, and its stamp, into a folder, and gives the paths of those to compile.
func layGlue(dir string, stamp builds.Stamp) (_ builds.Stamp, added []string, err error) {
	if err := os.RemoveAll(dir); err != nil { // a header of an earlier version must not be found
		return stamp, nil, err
	}
	texts := map[string][]byte{}
	for _, part := range []struct {
		files fs.FS
		from  string
	}{{native.Overlay, "overlay"}, {native.Torch, "torch/backend/copy.cc"}} {
		err := builds.EachFile(part.files, part.from, func(name string, text []byte) error {
			if slices.Contains([]string{".h", ".cc", ".mm"}, path.Ext(name)) && !strings.HasSuffix(name, "_elf.cc") {
				texts[name] = text
			}
			return nil
		})
		if err != nil {
			return stamp, nil, err
		}
	}
	var digests []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		digests = append(digests, name, string(texts[name]))
	}
	stamp.Kind, stamp.Native = "overlay", builds.Digest(digests...)
	if texts["overlay/stamp.cc"], err = stamp.Source(); err != nil {
		return stamp, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		file := filepath.Join(dir, name)
		if err := builds.WriteChanged(file, texts[name]); err != nil {
			return stamp, nil, err
		}
		if path.Ext(name) != ".h" {
			added = append(added, file)
		}
	}
	return stamp, added, nil
}

// exported are the names that an overlay's library exports: those of the patterns in native/overlay/exports.map that the objects define.
// Weak ones are left out, as the dynamic linker would take torch's own definition, which it met first, for both copies.
func exported(objects []*Image) ([]string, error) {
	text, err := native.Overlay.ReadFile("overlay/exports.map")
	if err != nil {
		return nil, err
	}
	_, global, _ := strings.Cut(string(text), "global:")
	global, _, found := strings.Cut(global, "local:")
	if !found {
		return nil, errors.New("native/overlay/exports.map is not in the expected form")
	}
	names := map[string]bool{}
	for pattern := range strings.FieldsFuncSeq(global, func(r rune) bool { return r == ';' || r == ' ' || r == '\n' }) {
		for _, object := range objects {
			for name, weak := range object.Defined {
				matched, err := path.Match("_"+pattern, name)
				if err != nil {
					return nil, fmt.Errorf("native/overlay/exports.map: %s: %w", pattern, err)
				}
				if matched && !weak {
					names[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// listExports writes the names that a library of the objects is to export into a file for the linker.
func listExports(list string, objects []string) (exports []string, err error) {
	var images []*Image
	for _, object := range objects {
		image, err := OpenImage(object)
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	if exports, err = exported(images); err != nil {
		return nil, err
	}
	return exports, builds.WriteChanged(list, []byte(strings.Join(exports, "\n")+"\n"))
}

// LinkOverlay links an overlay's library of objects.
func (k *Kit) LinkOverlay(ctx context.Context, subject string, objects map[string]string) (file string, exports []string, err error) {
	dir := filepath.Join(Folder(k.cache), subject)
	// By their names, and not by their folders', as another machine has others.
	files := slices.SortedFunc(maps.Values(objects), func(a, b string) int {
		return strings.Compare(filepath.Base(a)+"\x00"+a, filepath.Base(b)+"\x00"+b)
	})
	list := filepath.Join(dir, "exports.txt")
	if k.Plan == nil {
		if exports, err = listExports(list, files); err != nil {
			return "", nil, err
		}
	}
	system, err := k.systemLibraries()
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(dir, OverlayLibrary)
	// No run path, as in PyTorch's extensions: torch has been imported and its libraries are found by their install names. What is not
	// used is not loaded, and what the wheel can do without, as it is for macOS of before Metal, the overlay can, too.
	args := []string{"-install_name", "@rpath/" + OverlayLibrary, "-exported_symbols_list", list, "-dead_strip_dylibs"}
	weak := loadsOf(k.Libraries[0].file, loadWeak)
	for _, file := range system {
		if slices.ContainsFunc(weak, func(library string) bool { return k.Xcode.stub(library) == file }) {
			args = append(args, "-weak_library")
		}
		args = append(args, file)
	}
	if err := k.link(ctx, dir, file, slices.Concat(args, files, k.files)); err != nil || k.Plan != nil {
		return file, nil, err
	}
	library, err := os.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	if err := holdInitializers(library); err != nil {
		return "", nil, fmt.Errorf("%s: %w", file, err)
	}
	return file, exports, os.WriteFile(file, library, 0o755)
}

// holdInitializers changes a library so that the dynamic linker does not run its initializers, all of which register kernels, and signs it
// again.
func holdInitializers(library []byte) error {
	const segment64, sectionSize = 0x19, 80
	file, err := macho.NewFile(bytes.NewReader(library))
	if err != nil {
		return err
	}
	held, at := 0, 32 // behind the header
	for _, load := range file.Loads {
		raw := load.Raw()
		if binary.LittleEndian.Uint32(raw) == segment64 {
			for section := at + 72; section+sectionSize <= at+len(raw); section += sectionSize {
				flags := binary.LittleEndian.Uint32(library[section+64:])
				if flags&sectionType == initializerPointers {
					copy(library[section:section+16], append([]byte(heldInitializers), make([]byte, 16)...))
					binary.LittleEndian.PutUint32(library[section+64:], flags&^sectionType)
					held++
				}
			}
		}
		at += len(raw)
	}
	if held != 1 {
		return fmt.Errorf("%d sections with pointers to initializers, not 1", held)
	}
	return sign(file, library)
}

// Of a section, as <mach-o/loader.h> has it.
const (
	sectionType         = 0xff // SECTION_TYPE
	initializerPointers = 0x9  // S_MOD_INIT_FUNC_POINTERS
	initializerOffsets  = 0x16 // S_INIT_FUNC_OFFSETS
)
