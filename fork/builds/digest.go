package builds

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mpsforge/internal/fault"
)

func Digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// FilesDigest is a digest of words and of the contents of files.
func FilesDigest(words []string, files ...string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q", words)
	for _, path := range files {
		if err := hashFile(hash, path, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// FileSHA256 is a file's checksum.
func FileSHA256(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// SourcesDigest is Stamp.Sources of the checkout.
func SourcesDigest(checkout string) (string, error) {
	hash := sha256.New()
	for _, folder := range []string{"aten/src/ATen/mps", "aten/src/ATen/native/mps", filepath.Dir(PythonBindings), PythonPackage} {
		if !Exists(filepath.Join(checkout, folder)) {
			continue // of a checkout that is part of one; where it is needed, that is reported there
		}
		files, err := FilesBelow(filepath.Join(checkout, folder))
		if err != nil {
			return "", err
		}
		if err := HashFiles(hash, checkout, files); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// FilesBelow lists the files in a folder and in those below it, in order.
func FilesBelow(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// EachFile visits the files in a folder of files and in those below it, in order.
func EachFile(files fs.FS, folder string, visit func(path string, data []byte) error) error {
	return fs.WalkDir(files, folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return visit(path, data)
	})
}

// WriteChanged writes a file, unless it has these bytes already: what depends on it is built again when its time changes.
func WriteChanged(path string, data []byte) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// RemoveOthers removes the files below a folder that are not wanted: a header of an earlier version must not be found instead of another one.
func RemoveOthers(folder string, wanted map[string]bool) error {
	files, err := FilesBelow(folder)
	if err != nil {
		return err
	}
	for _, path := range files {
		if !wanted[path] {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// HashFiles adds files to a digest, by their paths from a folder, so that the digest is the same wherever that is.
func HashFiles(hash io.Writer, from string, files []string) error {
	for _, path := range files {
		relative, err := filepath.Rel(from, path)
		if err == nil {
			err = hashFile(hash, relative, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func hashFile(hash io.Writer, name, path string) error {
	data, err := os.ReadFile(path)
	if err == nil {
		_, err = fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
	}
	return err
}

// What a host build takes of a checkout for Python: its bindings, and the package torch.mps.
const (
	PythonBindings = "torch/csrc/mps/Module.cpp"
	PythonPackage  = "torch/mps"
	PythonLibrary  = "torch/library.py"
)

// MakeFolder makes a folder that is there as a whole or not at all: fill writes into one of another name, which then gets that of dir. What
// is beside that one, in its parent, is scratch. Where another process was faster, its folder stays.
func MakeFolder(dir string, fill func(made string) error) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	made := filepath.Join(temporary, "made")
	if err := os.Mkdir(made, 0o755); err != nil {
		return err
	}
	if err := fill(made); err != nil {
		return err
	}
	fault.Point()
	if err := os.Rename(made, dir); err != nil && !Exists(dir) {
		return err
	}
	return nil
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// ReadText reads a small file; one that is not there is empty.
func ReadText(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}
