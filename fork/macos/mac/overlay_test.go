package mac

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// overlayKit is the kit over the wheels in the user's cache.
func overlayKit(t *testing.T) *Kit {
	t.Helper()
	return kitOf(t, host.DebianBaseline)
}

// kitOf is the kit of a baseline.
func kitOf(t *testing.T, baseline string) *Kit {
	t.Helper()
	root, cache := hosttest.Root(t)
	series := require.One(patches.Load(patches.Embedded(), baseline))(t)
	facts := require.One(series.MacFacts())(t)
	kit, err := Open(t.Context(), root, cache, facts, events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP overlay for macOS: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(kit.Close)
	return kit
}

// overlayOf makes an overlay's library of one source.
func overlayOf(t *testing.T, kit *Kit, text string) (*Overlay, error) {
	t.Helper()
	dir, subject := t.TempDir(), filepath.Join("tests/overlay", filepath.Base(t.Name()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.mm"), []byte(text), 0o644))
	built, err := kit.Compile(t.Context(), Tree{Subject: subject, Dir: dir, Sources: []string{"overlay.mm"}}, patches.MacFacts{}, 1, events.Discard)
	require.NoError(t, err)
	file, exports, err := kit.LinkOverlay(t.Context(), subject, built.Objects)
	return &Overlay{File: file, Exports: exports}, err
}

// overlaySource is testdata/overlay.mm with the stamp that an Overlay without one has.
func overlaySource(t *testing.T) string {
	t.Helper()
	text := require.One(os.ReadFile("testdata/overlay.mm"))(t)
	stamp := require.One(builds.Stamp{}.Text())(t)
	return strings.Replace(string(text), `"mpsforge-stamp:planted"`, fmt.Sprintf("%q", stamp), 1)
}

// planted is where the source that names a folder says that it was built.
const planted = "/planted/checkout"

// Reading the wheel takes longer than all of these.
func TestOverlay(t *testing.T) {
	kit, source := overlayKit(t), overlaySource(t)
	t.Run("a fault of a source is found, and nothing else", func(t *testing.T) { faultsOfSources(t, kit, source) })
	t.Run("a fault of a library is found, and nothing else", func(t *testing.T) { faultsOfLibraries(t, kit, source) })
	t.Run("torch's own code branches into the backend where it is known to, and nowhere else", func(t *testing.T) {
		require.NoError(t, kit.wheelCode())
		shims, others := backendBranches(kit.stock)
		if want := []branch{{attention, newer}, {copying, copied}, {generator, made}}; shims != 0 || !slices.Equal(others, want) {
			t.Errorf("%d branches of AOTInductor's functions, and %q, want %q", shims, others, want)
		}
	})
	t.Run("an undefined name is found", func(t *testing.T) {
		_, err := overlayOf(t, kit, strings.Replace(source, "int use(", "void planted();\nvoid user() { planted(); }\nint use(", 1))
		if missing := (*UndefinedError)(nil); !errors.As(err, &missing) || !slices.Equal(missing.Symbols, []string{"__ZN2at3mps7plantedEv"}) {
			t.Errorf("%v", err)
		}
	})
	t.Run("types are the same in a library with chained fixups", func(t *testing.T) {
		classic, chained := typesOf(t, kit, "-no_fixup_chains"), typesOf(t, kit, "-fixup_chains")
		if want := map[string]typeInfo{"__ZTIN3c1010ValueErrorE": {byName: true, compared: true}, "__ZTIN2at3mps4castE": {compared: true},
			"__ZTIN2at3mps6thrownE": {}}; !maps.Equal(classic, want) || !maps.Equal(chained, want) {
			t.Errorf("%+v and %+v, want %+v", classic, chained, want)
		}
	})
	t.Run("initializers must be there", func(t *testing.T) {
		_, err := overlayOf(t, kit, "extern \"C\" __attribute__((used)) const char mpsforge_stamp[] = \"\";\n")
		require.Says(t, err, "0 sections with pointers to initializers")
	})
	// Of two definitions of a weak name the dynamic linker takes the first one for both copies, which is torch's.
	t.Run("weak names are not exported", func(t *testing.T) {
		o := require.One(overlayOf(t, kit, source))(t)
		require.Equal(t, o.Exports, []string{"__ZN2at3mps3useEP17MTLCompileOptions", "__ZN2at3mps5stateE", "_mpsforge_stamp"})
	})
	t.Run("the library is the same twice", func(t *testing.T) {
		var made [2][]byte
		for i := range made {
			o := require.One(overlayOf(t, kit, source))(t)
			made[i] = require.One(os.ReadFile(o.File))(t)
		}
		if !bytes.Equal(made[0], made[1]) {
			t.Error("two libraries of one source differ")
		}
	})
}

// catching is a handler of one of torch's exceptions.
const catching = `namespace at {
int get_num_threads();
int caught() {
  try {
    return get_num_threads();
  } catch (const c10::ValueError&) {
    return 0;
  }
}
`

// formatError is a type that torch's libraries hide, each its own, and throw.
const formatError = `#include <stdexcept>
namespace fmt::v11 {
struct __attribute__((visibility("hidden"))) format_error : std::runtime_error {
  using std::runtime_error::runtime_error;
  ~format_error() noexcept override {}
};
}  // namespace fmt::v11
void raise() { throw fmt::v11::format_error("planted"); }
`

// typesOf are those of a library that is linked in some way.
func typesOf(t *testing.T, kit *Kit, way string) map[string]typeInfo {
	t.Helper()
	dir := t.TempDir()
	source := "namespace c10 {\nstruct ValueError {\n  virtual ~ValueError() {}\n};\n}  // namespace c10\n" + catching +
		"}  // namespace at\nnamespace at::mps {\nstruct __attribute__((visibility(\"hidden\"))) thrown {\n  virtual ~thrown() {}\n};\nvoid " +
		"raise() { throw thrown(); }\n" +
		"struct __attribute__((visibility(\"hidden\"))) cast : c10::ValueError {};\nbool is(c10::ValueError* o) { return dynamic_cast<cast*>(o); " +
		"}\n}  // namespace at::mps\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "types.mm"), []byte(source), 0o644))
	subject := filepath.Join("tests/overlay", filepath.Base(t.Name()))
	built, err := kit.Compile(t.Context(), Tree{Subject: subject, Dir: dir, Sources: []string{"types.mm"}}, patches.MacFacts{}, 1, events.Discard)
	require.NoError(t, err)
	system := require.One(kit.systemLibraries())(t)
	file := filepath.Join(dir, "types.dylib")
	require.NoError(t, kit.link(t.Context(), dir, file, slices.Concat([]string{way}, slices.Collect(maps.Values(built.Objects)), kit.files, system)))
	code := require.One(readCode(file))(t)
	found := map[string]typeInfo{}
	for name, one := range code.types() {
		found[name] = *one
	}
	return found
}

func faultsOfSources(t *testing.T, kit *Kit, source string) {
	for _, c := range []struct{ name, old, new, found string }{
		{"none", "", "", ""},
		{"a name of the wheel's own backend", "int use(",
			"struct MPSStream;\nMPSStream* getDefaultMPSStream();\nvoid* taken() { return getDefaultMPSStream(); }\nint use(",
			"it binds __ZN2at3mps19getDefaultMPSStreamEv to the wheel's own backend"},
		{"a kernel of the wheel's own backend", "int use(",
			"}\nnamespace at {\nstruct Tensor;\nnamespace native {\nvoid relu_mps(const Tensor&);\nvoid taken(const Tensor& t) { relu_mps(t); }\n} " +
				" // namespace native\n}  // namespace at\nnamespace at::mps {\nint use(",
			"it binds __ZN2at6native8relu_mpsERKNS_6TensorE to the wheel's own backend"},
		{"a selector that Apple lacks", "  return at::", "  [(id)options plantedMethod];\n  return at::", "it uses plantedMethod, which"},
		{"a class of its own", "namespace c10 {",
			"@interface Planted : NSObject\n@end\n@implementation Planted\n- (void)plantedMethod {\n}\n@end\nnamespace c10 {", ""},
		{"a category", "namespace c10 {",
			"@interface NSObject (Planted)\n@end\n@implementation NSObject (Planted)\n- (void)plantedMethod {\n}\n@end\nnamespace c10 {",
			"it changes a class for torch's own copy, too: -[NSObject(Planted) plantedMethod]"},
		{"a category whose methods have names of their own", "namespace c10 {",
			"@interface NSObject (Planted)\n@end\n@implementation NSObject (Planted)\n- (void)mpsforge_plantedMethod {\n}\n@end\nnamespace c10 {", ""},
		{"a folder of this machine", "namespace c10 {", "const char* folder = \"" + planted + "/aten\";\nnamespace c10 {",
			"it contains the path of the folder " + planted},
		{"a type of torch's that torch cannot see", "namespace at {",
			"namespace c10 {\nstruct __attribute__((visibility(\"hidden\"))) ValueError {\n  virtual ~ValueError() {}\n};\n}  // namespace c10\n" + catching,
			"casts and handlers of exceptions see two types in its __ZTIN3c1010ValueErrorE and that of libtorch_cpu.dylib and libtorch_python.dylib"},
		{"a type of torch's that torch cannot see, thrown and never caught", "namespace c10 {", formatError + "namespace c10 {", ""},
		{"the same, caught", "namespace c10 {",
			formatError + "int caught() {\n  try {\n    raise();\n  } catch (const fmt::v11::format_error&) {\n  }\n  return 0;\n}\nnamespace c10 {",
			"casts and handlers of exceptions see two types in its __ZTIN3fmt3v1112format_errorE and that of libtorch_cpu.dylib and " +
				"libtorch_python.dylib and libc10.dylib"},
		{"a type of torch's", "namespace at {", "namespace c10 {\nstruct ValueError {\n  virtual ~ValueError() {}\n};\n}  // namespace c10\n" + catching, ""},
		{"a function that torch's own code branches to", "namespace at {",
			"namespace at {\nstruct Tensor;\nnamespace native {\nvoid _mul_sparse_sparse_out(const Tensor&, const Tensor&, Tensor&) {}\n}  // " +
				"namespace native\n", "__ZN2at6native18mul_out_sparse_cpuERKNS_6TensorES3_RS1_ of libtorch_cpu branches to torch's own " +
				"__ZN2at6native22_mul_sparse_sparse_outERKNS_6TensorES3_RS1_"},
		{"another stamp", "mpsforge-stamp:", "mpsforge-stamp: ", "it does not contain its stamp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(source, c.old) {
				t.Fatalf("overlay.mm has no %q any more", c.old)
			}
			o := require.One(overlayOf(t, kit, strings.Replace(source, c.old, c.new, 1)))(t)
			_, err := kit.CheckOverlay(o, planted)
			onlyProblem(t, err, c.found)
		})
	}
}

// onlyProblem holds an error against the one thing that is to be wrong.
func onlyProblem(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err == nil:
	case want == "" || err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0:
		t.Errorf("%v; expected %q alone", err, want)
	}
}

// commandAt is where a load command of a library begins.
func commandAt(t *testing.T, library []byte, kind uint32) int {
	t.Helper()
	file := require.One(macho.NewFile(bytes.NewReader(library)))(t)
	at := 32
	for _, load := range file.Loads {
		if binary.LittleEndian.Uint32(load.Raw()) == kind {
			return at
		}
		at += len(load.Raw())
	}
	t.Fatalf("no load command %#x", kind)
	return 0
}

// Faults are signed, but for those of the signature.
func faultsOfLibraries(t *testing.T, kit *Kit, source string) {
	o := require.One(overlayOf(t, kit, source))(t)
	whole := require.One(os.ReadFile(o.File))(t)
	replace := func(library []byte, from, to string) {
		if !bytes.Contains(library, []byte(from)) || len(from) != len(to) {
			t.Errorf("no %q in the library, or %q has another length", from, to)
		}
		copy(library, bytes.ReplaceAll(library, []byte(from), []byte(to)))
	}
	number := func(library []byte, at int) uint32 { return binary.LittleEndian.Uint32(library[at:]) }
	set := func(library []byte, at int, value uint32) { binary.LittleEndian.PutUint32(library[at:], value) }
	for name, c := range map[string]struct {
		change   func(library []byte, o *Overlay) []byte
		unsigned bool
		found    string
	}{
		"a byte that is not as it was signed": {func(library []byte, _ *Overlay) []byte {
			library[len(library)/2] ^= 1
			return library
		}, true, "page"},
		"another signature": {func(library []byte, _ *Overlay) []byte {
			set(library, commandAt(t, library, loadSignature), 0x1e)
			return library
		}, true, "it is not signed"},
		"its end missing": {func(library []byte, _ *Overlay) []byte { return library[:len(library)-100] }, true, "its signature is cut off"},
		"an export missing": {func(library []byte, o *Overlay) []byte { o.Exports = append(o.Exports, "_planted"); return library }, true,
			"it does not export _planted"},
		"an export more": {func(library []byte, o *Overlay) []byte { o.Exports = o.Exports[1:]; return library }, true, "it exports __ZN2at3mps3use"},
		"a name that nobody has": {func(library []byte, _ *Overlay) []byte {
			replace(library, "get_num_threads", "get_num_thready")
			return library
		}, false, "it needs __ZN2at15get_num_threadyEv of"},
		"initializers for all to see": {func(library []byte, _ *Overlay) []byte {
			at := bytes.Index(library, []byte(heldInitializers)) + 64
			set(library, at, number(library, at)|initializerPointers)
			return library
		}, false, "the dynamic linker would run the initializers"},
		"another macOS": {func(library []byte, _ *Overlay) []byte {
			set(library, commandAt(t, library, 0x32)+12, 14<<16)
			return library
		}, false, `it is for macOS "14.0"`},
		"another install name": {func(library []byte, _ *Overlay) []byte {
			replace(library, "@rpath/"+OverlayLibrary, "@rpath/"+strings.ToUpper(OverlayLibrary))
			return library
		}, false, "its install name is"},
		"a flat namespace": {func(library []byte, _ *Overlay) []byte { set(library, 24, number(library, 24)|1<<8); return library }, false,
			"no two-level namespace"},
		"another processor": {func(library []byte, _ *Overlay) []byte { set(library, 4, 0x01000007); return library }, false, "not a library for arm64"},
		"a library exported": {func(library []byte, _ *Overlay) []byte {
			set(library, commandAt(t, library, 0xc), loadAgain)
			return library
		}, false, "it re-exports"},
		"a framework to need": {func(library []byte, _ *Overlay) []byte {
			set(library, commandAt(t, library, loadWeak), 0xc)
			return library
		}, false, "is linked weakly with"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := *o
			changed.File = filepath.Join(t.TempDir(), OverlayLibrary)
			library := c.change(bytes.Clone(whole), &changed)
			if !c.unsigned {
				file, err := macho.NewFile(bytes.NewReader(library))
				if err == nil {
					err = sign(file, library)
				}
				require.NoError(t, err)
			}
			require.NoError(t, os.WriteFile(changed.File, library, 0o644))
			_, err := kit.CheckOverlay(&changed, planted)
			onlyProblem(t, err, c.found)
		})
	}
}
