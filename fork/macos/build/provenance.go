package build

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"mpsforge/fork/builds"
)

// kindPyTorch is the Stamp.Kind of PyTorch's own libraries.
const kindPyTorch = "pytorch"

// stampedTargets get the stamp. The MPS backend is in torch_cpu; c10 is what everything else is linked with, small and
// built first, so that it says the same.
var stampedTargets = []string{"c10", mpsTarget}

// stampInclude is the file that cmake includes after project(Torch).
func stampInclude(checkout string) string { return filepath.Join(ownFolder(checkout), "stamp.cmake") }

// writeStamp writes the stamp's source and the file through which cmake comes to it. Files that would not change are left
// alone: ninja goes by their times, and so a new stamp compiles one file and links the stamped libraries again.
func writeStamp(checkout string, stamp builds.Stamp) error {
	source, err := stamp.Source()
	if err != nil {
		return err
	}
	file := filepath.Join(ownFolder(checkout), "stamp.cpp")
	// A target is known at the end of the top folder only, and target_sources may name one of another folder.
	include := "function(mpsforge_add_stamp)\n"
	for _, target := range stampedTargets {
		include += fmt.Sprintf("  if(TARGET %s)\n    target_sources(%s PRIVATE [==[%s]==])\n  endif()\n", target, target, file)
	}
	include += "endfunction()\ncmake_language(DEFER DIRECTORY \"${CMAKE_SOURCE_DIR}\" CALL mpsforge_add_stamp)\n"
	return errors.Join(builds.WriteChanged(file, source), builds.WriteChanged(stampInclude(checkout), []byte(include)))
}

// pyTorchStamp completes what the caller knows of the checkout. It holds no time, no path and no commit, whose words and dates
// build nothing: the same tree and toolchain make the same stamp.
func (p *Plan) pyTorchStamp(identity builds.Stamp, tool string) (builds.Stamp, error) {
	stamp := identity
	stamp.Format, stamp.Kind, stamp.Torch, stamp.Commit = builds.StampFormat, kindPyTorch, p.Recipe.Version, ""
	stamp.Tool, stamp.Toolchain, stamp.Flags = tool, p.Machine.toolchain(), p.flags()
	var err error
	stamp.Sources, err = builds.SourcesDigest(p.Recipe.Checkout)
	return stamp, err
}

// ReadStamp reads the stamp out of a library's file, or out of a wheel's libraries.
func ReadStamp(file string) (builds.Stamp, error) {
	if strings.HasSuffix(file, ".whl") {
		return readWheelStamp(file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return builds.Stamp{}, err
	}
	return findStamp(file, data)
}

func findStamp(name string, data []byte) (builds.Stamp, error) {
	start := bytes.Index(data, []byte(builds.StampMark+"{"))
	if start < 0 {
		return builds.Stamp{}, fmt.Errorf("%s: %w", name, ErrNoStamp)
	}
	text, _, _ := bytes.Cut(data[start:], []byte{0})
	return builds.ParseStamp(string(text))
}

// ErrNoStamp is returned, wrapped, for a file that mpsforge has not built.
var ErrNoStamp = errors.New("no stamp of mpsforge in it")

// readWheelStamp reads the stamp of torch_cpu in a wheel, else that of any library there.
func readWheelStamp(file string) (builds.Stamp, error) {
	wheel, err := zip.OpenReader(file)
	if err != nil {
		return builds.Stamp{}, fmt.Errorf("%s: %w", file, err)
	}
	defer wheel.Close()
	var libraries []*zip.File
	for _, entry := range wheel.File {
		switch base := path.Base(entry.Name); {
		case strings.HasPrefix(base, "lib"+mpsTarget+"."):
			libraries = append([]*zip.File{entry}, libraries...)
		case strings.HasSuffix(base, ".dylib"), strings.Contains(base, ".so"):
			libraries = append(libraries, entry)
		}
	}
	for _, entry := range libraries {
		data, err := readEntry(entry)
		if err != nil {
			return builds.Stamp{}, fmt.Errorf("%s: %s: %w", file, entry.Name, err)
		}
		stamp, err := findStamp(entry.Name, data)
		if !errors.Is(err, ErrNoStamp) {
			return stamp, err
		}
	}
	return builds.Stamp{}, fmt.Errorf("%s, libraries: %d: %w", file, len(libraries), ErrNoStamp)
}

func readEntry(entry *zip.File) ([]byte, error) {
	reader, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}

// stampFile is the copy of a stamp beside a wheel.
func stampFile(wheel string) string { return strings.TrimSuffix(wheel, ".whl") + ".stamp.json" }
