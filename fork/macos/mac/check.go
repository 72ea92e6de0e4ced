package mac

import (
	"bytes"
	"debug/macho"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/native/apple"
)

// inBackend is a name of the MPS backend: of a namespace mps, or of a kernel in at::native.
var inBackend = regexp.MustCompile(`3mps|^__ZN?K?2at6native.*mps`)

// BoundToStock are the MPS backend's names that a linked library takes from the wheel's libtorch_cpu.
func BoundToStock(image *Image) (names []string) {
	for name, library := range image.Undefined {
		if path.Base(library) == "libtorch_cpu.dylib" && inBackend.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// NewAPI are the selectors and classes of Objective-C that images use, the wheel does not, and Apple's table does not have.
func NewAPI(images []*Image, wheel *Image, api *apple.Table) (unknown []string, added int) {
	known := map[string]bool{}
	for name, found := range api.Types {
		known[classPrefix+name] = true
		for selector := range found.Methods {
			known[selector[1:]] = true
		}
	}
	names := map[string]bool{}
	for _, image := range images {
		for _, selector := range image.Selectors {
			if !slices.Contains(wheel.Selectors, selector) && !image.Own[selector] {
				names[selector] = true
			}
		}
		for name := range image.Undefined {
			if _, bound := wheel.Undefined[name]; !bound && strings.HasPrefix(name, classPrefix) {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !known[name] {
			unknown = append(unknown, strings.TrimPrefix(name, classPrefix))
		}
	}
	return unknown, len(names)
}

// ofCategory is a method that a category adds to a class, with the first part of its selector.
var ofCategory = regexp.MustCompile(`^[-+]\[\w+\(\w*\) (\w+)`)

// ownMethod begins the names that an overlay's methods of categories have, and nobody else's (renames).
const ownMethod = "mpsforge_"

// symbolNames are those of all that an image defines, local ones included.
func (i *Image) symbolNames() map[string]bool {
	names := map[string]bool{}
	for _, all := range i.names {
		for _, name := range all {
			names[name] = true
		}
	}
	return names
}

// CheckOverlay reads an overlay's library again and holds it against the wheel and what it is to be. checked says what of; the error has a
// line for each thing that is wrong.
func (k *Kit) CheckOverlay(o *Overlay, checkout string) (checked []string, err error) {
	data, err := os.ReadFile(o.File)
	if err != nil {
		return nil, err
	}
	file, err := macho.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.File, err)
	}
	image, err := readImage(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.File, err)
	}
	table, err := apple.Load()
	if err != nil {
		return nil, err
	}
	stamp, err := o.Stamp.Text()
	if err != nil {
		return nil, err
	}
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	k.checkHeader(file, refuse)
	unknown, err := k.unknownNames(image)
	if err != nil {
		return nil, err
	}
	for _, name := range unknown {
		refuse("it needs %s, which none of the libraries that it is linked with provides", name)
	}
	for _, name := range BoundToStock(image) {
		refuse("it binds %s to the wheel's own backend", name)
	}
	if err := k.wheelCode(); err != nil {
		return nil, err
	}
	k.checkCopies(image.code(data), o, refuse)
	k.checkNames(image, o, refuse)
	selectors, _ := NewAPI([]*Image{image}, k.Libraries[0], table)
	for _, name := range selectors {
		refuse("it uses %s, which is neither the wheel's nor in native/apple/api.tsv", name)
	}
	if !bytes.Contains(data, append([]byte(stamp), 0)) {
		refuse("it does not contain its stamp")
	}
	for _, folder := range []string{k.cache, k.Root.Dir(), checkout} {
		if folder != "/" && bytes.Contains(data, []byte(filepath.Clean(folder)+"/")) {
			refuse("it contains the path of the folder %s, in which it was built", folder)
		}
	}
	if err := checkSignature(file, data); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: %w", o.File, errors.Join(problems...))
	}
	return []string{
		fmt.Sprintf("%d names bound to libraries of the wheel and of macOS, none to the wheel's own backend", len(image.Undefined)),
		fmt.Sprintf("%d names exported, none of them weak", len(o.Exports)),
		"casts and handlers of exceptions see one type where either copy compares it",
		"no branch inside libtorch_cpu into what is replaced, but for those known to be harmless",
		fmt.Sprintf("%d selectors, all the wheel's or in Apple's table", len(image.Selectors)),
		fmt.Sprintf("signed ad hoc, for macOS %s, as the wheel is; initializers held back; no path of this machine in it", k.Minimum),
	}, nil
}

// checkNames compares what it exports with its list, and its classes with libtorch_cpu's.
func (k *Kit) checkNames(image *Image, o *Overlay, refuse func(format string, args ...any)) {
	for _, name := range o.Exports {
		if _, found := image.Defined[name]; !found {
			refuse("it does not export %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(image.Defined)) {
		if _, found := slices.BinarySearch(o.Exports, name); !found {
			refuse("it exports %s, which is not in its list", name)
		}
	}
	torch := k.Libraries[0].symbolNames()
	for name := range image.symbolNames() {
		if strings.HasPrefix(name, classPrefix) && torch[name] {
			refuse("it defines the class %s, which libtorch_cpu does, too", strings.TrimPrefix(name, classPrefix))
		} else if method := ofCategory.FindStringSubmatch(name); method != nil && !strings.HasPrefix(method[1], ownMethod) {
			refuse("it changes a class for torch's own copy, too: %s", name)
		}
	}
}

// checkCopies looks at what the two copies have of each other although all symbol pointers are led.
func (k *Kit) checkCopies(own *machineCode, o *Overlay, refuse func(format string, args ...any)) {
	types, divided := own.types(), map[string][]string{}
	for i, theirs := range k.types {
		for _, name := range dividedTypes(types, theirs) {
			divided[name] = append(divided[name], filepath.Base(k.files[i]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(divided)) {
		refuse("casts and handlers of exceptions see two types in its %s and that of %s", name, strings.Join(divided[name], " and "))
	}
	for _, branch := range k.stock.branchesTo(func(name string) bool { _, found := slices.BinarySearch(o.Exports, name); return found }) {
		if !branch.harmless() {
			refuse("%s of libtorch_cpu branches to torch's own %s", branch.from, branch.to)
		}
	}
}

// checkHeader looks at what the dynamic linker reads first.
func (k *Kit) checkHeader(file *macho.File, refuse func(format string, args ...any)) {
	if file.Cpu != macho.CpuArm64 || file.Type != macho.TypeDylib {
		refuse("it is not a library for arm64")
	}
	if file.Flags&macho.FlagTwoLevel == 0 || file.Flags&(macho.FlagWeakDefines|macho.FlagForceFlat) != 0 {
		refuse("it has no two-level namespace (flags %#x)", file.Flags)
	}
	if minimum, _, err := (&Image{file: file}).versions(); err != nil || minimum != k.Minimum {
		refuse("it is for macOS %q, not %s", minimum, k.Minimum)
	}
	if name := loadsOf(file, 0xd); !slices.Equal(name, []string{"@rpath/" + OverlayLibrary}) { // LC_ID_DYLIB
		refuse("its install name is %q", name)
	}
	if paths := loadsOf(file, 0x8000001c); len(paths) > 0 { // LC_RPATH
		refuse("it has the run path %q", paths)
	}
	if again := loadsOf(file, loadAgain); len(again) > 0 {
		refuse("it re-exports %q", again)
	}
	torch, weak := k.Libraries[0].file, loadsOf(file, loadWeak)
	known, wanted := append(librariesOf(torch), "@rpath/libtorch_cpu.dylib"), loadsOf(torch, loadWeak)
	for _, library := range librariesOf(file) {
		if !slices.Contains(known, library) {
			refuse("it is linked with %s, which libtorch_cpu is not", library)
		} else if slices.Contains(weak, library) != slices.Contains(wanted, library) {
			refuse("only one of it and libtorch_cpu is linked weakly with %s", library)
		}
	}
	held := false
	for _, section := range file.Sections {
		if kind := section.Flags & sectionType; kind == initializerPointers || kind == initializerOffsets {
			refuse("the dynamic linker would run the initializers in %s", section.Name)
		}
		held = held || section.Name == heldInitializers && section.Size > 0
	}
	if !held {
		refuse("it has no initializers in %s", heldInitializers)
	}
}

// unknownNames are those that an image needs from a library that is not known to have them: its own reading of what the linker did.
func (k *Kit) unknownNames(image *Image) (names []string, err error) {
	known, err := k.allSymbols()
	if err != nil {
		return nil, err
	}
	for name, library := range image.Undefined {
		if !known[library][name] {
			names = append(names, fmt.Sprintf("%s of %q", name, library))
		}
	}
	slices.Sort(names)
	return names, nil
}

// allSymbols are what libraries of the system and of the wheel have.
func (k *Kit) allSymbols() (stubSymbols, error) {
	all, err := k.systemSymbols()
	if err != nil {
		return nil, err
	}
	for library := range all {
		if library != compilerLibrary {
			if err := all.addStub(library, k.Xcode.stub(library)); err != nil {
				return nil, err
			}
		}
	}
	if err := all.addStub(libSystemName, k.Xcode.stub(libSystemName)); err != nil {
		return nil, err
	}
	for i, library := range k.Libraries {
		for name := range library.Defined {
			all.add("@rpath/"+filepath.Base(k.files[i]), name)
		}
	}
	return all, nil
}

// addStub adds the names in a file of the SDK, in which classes are without what their symbols begin with.
func (s stubSymbols) addStub(library, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the SDK's %s: %w", library, err)
	}
	for name := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return strings.ContainsRune(" ,'[]\n", r) }) {
		s.add(library, name)
		s.add(library, classPrefix+name)
		s.add(library, "_OBJC_METACLASS_$_"+name)
	}
	return nil
}
