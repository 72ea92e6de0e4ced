package mac

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/native/apple"
)

const (
	libobjcName        = "/usr/lib/libobjc.A.dylib"
	coreFoundationName = "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation"
)

// alsoThere are names that Apple's libraries have in every macOS that the wheel runs on and that the wheel itself does not bind to, because
// its compiler made other choices of what is inline, or its sources use no such form of Objective-C. TestWhatClangMakesOfObjectiveC holds
// the first two lists against the compiler. Where a name is, the bind tables of PyObjC's wheel say (pyobjc-core 13.0), if nothing else is said.
var alsoThere = map[string][]string{
	libobjcName: {classPrefix + "NSObject", "_OBJC_METACLASS_$_NSObject", "__objc_empty_cache", "_OBJC_EHTYPE_id", "_objc_ehtype_vtable",
		"___objc_personality_v0",
		"_objc_begin_catch", "_objc_end_catch", "_objc_exception_rethrow", "_objc_exception_throw", "_objc_sync_enter", "_objc_sync_exit",
		"_objc_msgSendSuper2",
		// The runtime's functions for allocWithZone: and for properties, as LLVM's clang/lib/CodeGen/CGObjCMac.cpp names them for macOS 10.10 and later.
		"_objc_allocWithZone", "_objc_copyCppObjectAtomic", "_objc_copyStruct", "_objc_getProperty", "_objc_setProperty_atomic",
		"_objc_setProperty_atomic_copy",
		"_objc_setProperty_nonatomic", "_objc_setProperty_nonatomic_copy"},
	// What clang loads for @[] and @{}, for macOS 10.11 and later (hasEmptyCollections in LLVM's clang/Basic/ObjCRuntime.h), are pointers to
	// __NSArray0__struct and __NSDictionary0__struct: the wheels of torch 2.9.1 and of coremltools 7.2 bind these to CoreFoundation.
	coreFoundationName: {"___NSArray0__", "___NSDictionary0__", classPrefix + "NSDate", classPrefix + "NSEnumerator", classPrefix + "NSException",
		classPrefix + "NSMutableData", classPrefix + "NSMutableSet", classPrefix + "NSNull", classPrefix + "NSSet"},
	// In LLVM's libcxx/lib/abi/arm64-apple-darwin.libcxxabi.v1.stable.exceptions.nonew.abilist.
	"/usr/lib/libc++.1.dylib": {"__ZTVNSt3__18ios_baseE", "__ZTVNSt3__119__shared_weak_countE", "__ZTVNSt3__114__shared_countE",
		"__ZNSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE6__initEPKcm",
		"__ZNSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE6__initEmc"},
	compilerLibrary: {"___isPlatformVersionAtLeast", "___isOSVersionAtLeast"},
}

// frameworks have the classes of the API table, by how their names begin; the longer beginning counts.
var frameworks = []struct{ prefix, installed string }{
	{"MPSGraph", "/System/Library/Frameworks/MetalPerformanceShadersGraph.framework/Versions/A/MetalPerformanceShadersGraph"},
	{"MPS", "/System/Library/Frameworks/MetalPerformanceShaders.framework/Versions/A/MetalPerformanceShaders"},
	{"MTL", "/System/Library/Frameworks/Metal.framework/Versions/A/Metal"},
	{"NS", "/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation"},
}

// stubSymbols are the names that libraries of the system have, by the library's install name.
type stubSymbols map[string]map[string]bool

func (s stubSymbols) add(library, name string) {
	if s[library] == nil {
		s[library] = map[string]bool{}
	}
	s[library][name] = true
}

func (s stubSymbols) addAll(names map[string][]string) {
	for library, all := range names {
		for _, name := range all {
			s.add(library, name)
		}
	}
}

// addClasses adds those of Apple's table that no library is known to have: one has each.
func (s stubSymbols) addClasses(table *apple.Table) {
	known := map[string]bool{}
	for _, names := range s {
		maps.Copy(known, names)
	}
	for name, found := range table.Types {
		if known[classPrefix+name] {
			continue
		}
		for _, framework := range frameworks {
			if found.Kind == "class" && strings.HasPrefix(name, framework.prefix) {
				s.add(framework.installed, classPrefix+name)
				break
			}
		}
	}
}

// stub is a library as the linker reads it.
func (s stubSymbols) stub(library string) []byte {
	var quoted []string
	for _, name := range slices.Sorted(maps.Keys(s[library])) {
		quoted = append(quoted, "'"+name+"'")
	}
	const targets = "[ arm64-macos ]"
	return fmt.Appendf(nil, "--- !tapi-tbd\ntbd-version:     4\ntargets:         %s\ninstall-name:    '%s'\ncurrent-version: 1\nexports:\n"+
		"  - targets:         %s\n    symbols:         [ %s ]\n...\n", targets, library, targets, strings.Join(quoted, ", "))
}

const classPrefix = "_OBJC_CLASS_$_"

// systemSymbols are what libraries of the system have: what the wheel binds to and the classes of Apple's table. libSystem has a list of
// its own, libSystem().
func (k *Kit) systemSymbols() (stubSymbols, error) {
	table, err := apple.Load()
	if err != nil {
		return nil, err
	}
	symbols := stubSymbols{}
	for _, image := range k.Libraries {
		for name, library := range image.Undefined {
			if path.IsAbs(library) && library != libSystemName {
				symbols.add(library, name)
			}
		}
	}
	symbols.addAll(alsoThere)
	symbols.addClasses(table)
	return symbols, nil
}

const libSystemName = "/usr/lib/libSystem.B.dylib"

// layLibraries writes the SDK's libraries, but for libSystem, whose list is Apple's own.
func (k *Kit) layLibraries() error {
	symbols, err := k.systemSymbols()
	if err != nil {
		return err
	}
	for library := range symbols {
		file := k.Xcode.stub(library)
		if library == compilerLibrary {
			file = k.Xcode.System[0]
		}
		if err := builds.WriteChanged(file, symbols.stub(library)); err != nil {
			return err
		}
	}
	return nil
}

// systemLibraries are the SDK's files that the linker gets, by the libraries' install names, and the compiler's own.
func (k *Kit) systemLibraries() (files []string, err error) {
	symbols, err := k.systemSymbols()
	if err != nil {
		return nil, err
	}
	for _, library := range slices.Sorted(maps.Keys(symbols)) {
		if library != compilerLibrary {
			files = append(files, k.Xcode.stub(library))
		}
	}
	return slices.Concat(files, []string{k.Xcode.stub(libSystemName)}, k.Xcode.System), nil
}

// pythonStub has the functions of Python, which are in the program that loads libtorch_python.
func pythonStub(dir string, names []string) (file string, err error) {
	const library = "@executable_path/python"
	symbols := stubSymbols{}
	symbols.addAll(map[string][]string{library: names})
	file = filepath.Join(dir, "python.tbd")
	return file, builds.WriteChanged(file, symbols.stub(library))
}

// UndefinedError names what no object, no library of the wheel and no stub has.
type UndefinedError struct{ Symbols []string }

func (e *UndefinedError) Error() string {
	return fmt.Sprintf("%d undefined: %s", len(e.Symbols), strings.Join(e.Symbols, ", "))
}

var undefinedLine = regexp.MustCompile(`(?m)^.*error: undefined symbol: (.*)$`)

// Link makes one library of the objects and of the wheel's, and reads it.
func (k *Kit) Link(ctx context.Context, subject string, objects map[string]string) (*Image, error) {
	dir := filepath.Join(Folder(k.cache), subject)
	var python []string
	for _, object := range objects {
		image, err := OpenImage(object)
		if err != nil {
			return nil, err
		}
		for name := range image.Undefined {
			if strings.HasPrefix(name, "_Py") || strings.HasPrefix(name, "__Py") {
				python = append(python, name)
			}
		}
	}
	system, err := k.systemLibraries()
	if err != nil {
		return nil, err
	}
	ofPython, err := pythonStub(dir, python)
	if err != nil {
		return nil, err
	}
	output := filepath.Join(dir, "libmps.dylib")
	if err := k.link(ctx, dir, output, slices.Concat([]string{"-install_name", "@rpath/libmps.dylib"}, slices.Sorted(maps.Values(objects)), k.files,
		system, []string{ofPython})); err != nil {
		return nil, err
	}
	return OpenImage(output)
}

// link makes a library.
func (k *Kit) link(ctx context.Context, dir, output string, more []string) error {
	// No chained fixups: the library's pointers and initializers are read and held back in the older form, which all macOS take.
	args := append([]string{"-arch", "arm64", "-platform_version", "macos", k.Minimum, k.SDK, "-syslibroot", k.Xcode.SDK, "-dylib", "-no_fixup_chains",
		"-o", output}, more...)
	command := run.Command{Name: k.Root.Tool("ld64"), Args: args, Dir: dir}
	if plan := k.plan(); plan != nil {
		plan(command)
		return nil
	}
	if _, err := command.Run(ctx); err != nil {
		if failure := (*run.Error)(nil); errors.As(err, &failure) {
			undefined := &UndefinedError{}
			for _, match := range undefinedLine.FindAllStringSubmatch(failure.Stderr, -1) {
				undefined.Symbols = append(undefined.Symbols, match[1])
			}
			if len(undefined.Symbols) > 0 {
				return undefined
			}
		}
		return fmt.Errorf("link for macOS: %w", err)
	}
	return nil
}

// versions are the oldest macOS that a library is for and the SDK that it was made with.
func (i *Image) versions() (minimum, sdk string, err error) {
	for _, load := range i.file.Loads {
		raw := load.Raw()
		if len(raw) >= 20 && binary.LittleEndian.Uint32(raw) == 0x32 { // LC_BUILD_VERSION
			version := func(packed uint32) string { return fmt.Sprintf("%d.%d", packed>>16, packed>>8&0xff) }
			return version(binary.LittleEndian.Uint32(raw[12:])), version(binary.LittleEndian.Uint32(raw[16:])), nil
		}
	}
	return "", "", errors.New("the library does not name the macOS that it is for")
}

// Demangle gives names as C++ writes them. The system's leading underscore is no part of them.
func (k *Kit) Demangle(ctx context.Context, names []string) (map[string]string, error) {
	var input strings.Builder
	for _, name := range names {
		input.WriteString(strings.TrimPrefix(name, "_") + "\n")
	}
	result, err := run.Command{Name: k.Root.Tool("llvm-cxxfilt"), Dir: k.cache, Stdin: strings.NewReader(input.String())}.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("demangle: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(result.Stdout), "\n"), "\n")
	if len(names) > 0 && len(lines) != len(names) {
		return nil, fmt.Errorf("demangle: %d names in, %d out", len(names), len(lines))
	}
	all := map[string]string{}
	for i, name := range names {
		all[name] = lines[i]
	}
	return all, nil
}
