package apple

import (
	"archive/zip"
	"bytes"
	"debug/macho"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// torchLibrary is the library of a wheel of PyTorch that holds the MPS backend.
const torchLibrary = "libtorch_cpu.dylib"

// Needs is what a library needs of Apple's API, selectors only.
type Needs struct {
	Library   string   `json:"library"`
	Selectors int      `json:"selectors"` // all that it names
	Missing   []string `json:"missing"`   // in Apple's table, and declared nowhere in our headers
	Unknown   []string `json:"unknown"`   // in no table: to be looked up, or the library's own
}

// LibraryNeeds compares the selectors of a Mach-O library, or of libtorch_cpu.dylib in a wheel, with the table.
func LibraryNeeds(file string) (*Needs, error) {
	library, names, err := selectorsOf(file)
	if err != nil {
		return nil, fmt.Errorf("selectors of %s: %w", file, err)
	}
	table, err := Load()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{} // whether it is declared
	for _, found := range table.Types {
		for selector, m := range found.Methods {
			known[selector[1:]] = known[selector[1:]] || !m.Undeclared
		}
	}
	needs := &Needs{Library: library, Selectors: len(names), Missing: []string{}, Unknown: []string{}}
	for _, name := range names {
		switch declared, found := known[name]; {
		case !found:
			needs.Unknown = append(needs.Unknown, name)
		case !declared:
			needs.Missing = append(needs.Missing, name)
		}
	}
	return needs, nil
}

// selectorsOf gives the selectors in order, and where they were read.
func selectorsOf(file string) (library string, names []string, err error) {
	opened, err := os.Open(file)
	if err != nil {
		return "", nil, err
	}
	defer opened.Close()
	if path.Ext(file) != ".whl" {
		names, err = Selectors(opened)
		return file, names, err
	}
	info, err := opened.Stat()
	if err != nil {
		return "", nil, err
	}
	wheel, err := zip.NewReader(opened, info.Size())
	if err != nil {
		return "", nil, err
	}
	for _, entry := range wheel.File {
		if path.Base(entry.Name) != torchLibrary {
			continue
		}
		// The reader of Mach-O goes back and forth, which a compressed entry does not.
		temporary, err := os.CreateTemp("", "mpsforge-*.dylib")
		if err != nil {
			return "", nil, err
		}
		defer os.Remove(temporary.Name())
		defer temporary.Close()
		compressed, err := entry.Open()
		if err != nil {
			return "", nil, err
		}
		_, err = io.Copy(temporary, compressed)
		if err := errors.Join(err, compressed.Close()); err != nil {
			return "", nil, err
		}
		names, err = Selectors(temporary)
		return entry.Name, names, err
	}
	return "", nil, fmt.Errorf("no %s in the wheel: give a wheel of torch for macOS", torchLibrary)
}

// Selectors reads the section __objc_methname of a Mach-O file: the names of all selectors that it sends or defines.
func Selectors(r io.ReaderAt) ([]string, error) {
	file, err := macho.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("not a Mach-O file for one processor: %w", err)
	}
	section := file.Section("__objc_methname")
	if section == nil {
		return nil, errors.New("no section __objc_methname: there is no Objective-C in it")
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, name := range bytes.Split(data, []byte{0}) {
		if len(name) > 0 {
			names[string(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// String is the text of a report.
func (n *Needs) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %d selectors, %d of them not declared in native/objc/include\n", n.Library, n.Selectors, len(n.Missing)+len(n.Unknown))
	for _, group := range []struct {
		names []string
		what  string
	}{{n.Missing, "in Apple's API"}, {n.Unknown, "in no table: to be looked up (docs/dev/howto/apple-api.md), or the library's own"}} {
		for _, name := range group.names {
			fmt.Fprintf(&text, "  %s  %s\n", name, group.what)
		}
	}
	return text.String()
}
