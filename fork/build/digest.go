package build

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

func digestOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// filesDigest is a digest of words and of the contents of files.
func filesDigest(words []string, files ...string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q", words)
	for _, path := range files {
		if err := hashFile(hash, path, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// sourcesDigest is Stamp.Sources of the checkout.
func sourcesDigest(checkout string) (string, error) {
	hash := sha256.New()
	for _, folder := range []string{"aten/src/ATen/mps", "aten/src/ATen/native/mps", filepath.Dir(pythonBindings), pythonPackage} {
		if !exists(filepath.Join(checkout, folder)) {
			continue // of a checkout that is part of one; where it is needed, that is told there
		}
		files, err := filesBelow(filepath.Join(checkout, folder))
		if err != nil {
			return "", err
		}
		if err := hashFiles(hash, checkout, files); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// filesBelow lists the files in a folder and in those below it, in order.
func filesBelow(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// hashFiles adds files to a digest, by their paths from a folder, so that the digest is the same wherever that is.
func hashFiles(hash io.Writer, from string, files []string) error {
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
	pythonBindings = "torch/csrc/mps/Module.cpp"
	pythonPackage  = "torch/mps"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readText reads a small file; one that is not there is empty.
func readText(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}
