package host

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/atomicfile"
)

// OverlayLibrary is the file name of an overlay's library, and its install name.
const OverlayLibrary = "libmpsforge_overlay.so"

// Overlay is the patched backend as a library that goes into a process beside another host build.
type Overlay struct {
	Library string       `json:"library"`
	Stamp   builds.Stamp `json:"stamp"`
}

// HooksSource registers the hooks. An overlay compiles it a second time, since torch's copy has registered its own.
const HooksSource = "aten/src/ATen/mps/MPSHooks.mm"

// ownGlue are the sources that only a host build has: scenarios ask them.
var ownGlue = []string{"backend/scenarios.cc", "backend/pool.cc", dispatchStub, "stamp.cc"}

// overlay links the backend, but for what registers once only, with the sources of native/overlay. What the other host build
// brings (the Objective-C layer, the evaluator, the kernels) is used and not brought again.
func (h *builder) overlay(ctx context.Context, dir string, stamp builds.Stamp, backend []unit, torchFlags, glueFlags, link []string) (*Overlay, error) {
	sources, digest, err := h.unpack("native/overlay", h.Overlay)
	if err != nil {
		return nil, err
	}
	objects := filepath.Join(dir, "objects", "overlay")
	stamp.Kind, stamp.Native = "overlay", builds.Digest(stamp.Native, digest)
	text, err := stamp.Source()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(objects, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(objects, "stamp.cc"), text, 0o644); err != nil {
		return nil, err
	}
	added := []unit{
		{dir: h.Checkout, path: HooksSource, flags: slices.Concat(torchFlags, []string{"-include", filepath.Join(sources, "hooks.h")})},
		{dir: objects, path: "stamp.cc", flags: commonFlags},
	}
	err = eachSource(h.Overlay, func(path string) {
		if !strings.HasPrefix(path, "macho/") {
			added = append(added, unit{dir: sources, path: path, flags: glueFlags})
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range added {
		added[i].object = filepath.Join(objects, filepath.Base(added[i].path)+".o")
	}
	if err := h.compiler.compile(ctx, added); err != nil {
		return nil, err
	}
	backend = slices.DeleteFunc(slices.Clone(backend), func(u unit) bool { return u.path == HooksSource || slices.Contains(ownGlue, u.path) })
	library := filepath.Join(dir, OverlayLibrary)
	// No run path: what it needs is loaded already, or it is not loaded.
	link = slices.DeleteFunc(slices.Clone(link), func(flag string) bool { return strings.HasPrefix(flag, "-Wl,-rpath") })
	linked := filepath.Join(objects, OverlayLibrary)
	if err := h.compiler.link(ctx, linked, objectsOf(append(added, backend...)), append([]string{"-shared", "-Wl,-soname," + OverlayLibrary, "-Wl,-Bsymbolic",
		"-Wl,--strip-debug", "-Wl,--version-script=" + filepath.Join(sources, "exports.map")}, link...)); err != nil {
		return nil, err
	}
	return &Overlay{library, stamp}, holdInitializers(linked, library)
}

// holdInitializers copies a library so that the loader does not run its initializers, all of which register kernels: mpsforge_overlay_attach
// runs them once it knows that nothing refuses. native/overlay/rebind_elf.cc knows the entries of the dynamic section by these numbers,
// of which the loader knows nothing.
func holdInitializers(from, to string) error {
	library, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	object, err := elf.NewFile(bytes.NewReader(library))
	if err != nil {
		return fmt.Errorf("the overlay's library: %w", err)
	}
	held := map[elf.DynTag]uint64{elf.DT_INIT_ARRAY: 0x6d707300, elf.DT_INIT_ARRAYSZ: 0x6d707301}
	dynamic := object.SectionByType(elf.SHT_DYNAMIC)
	if dynamic == nil {
		return fmt.Errorf("the overlay's library %s has no dynamic section", from)
	}
	for entry := library[dynamic.Offset:][:dynamic.FileSize]; len(entry) > 0; entry = entry[16:] {
		if tag, found := held[elf.DynTag(object.ByteOrder.Uint64(entry))]; found {
			object.ByteOrder.PutUint64(entry, tag)
		}
	}
	return atomicfile.WriteBytes(to, 0o755, library)
}
