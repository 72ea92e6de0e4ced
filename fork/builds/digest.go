package builds

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
