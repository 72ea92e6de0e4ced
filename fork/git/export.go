package git

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Existing gives those of the paths that the commit has.
func (r *Repository) Existing(ctx context.Context, commit string, paths []string) ([]string, error) {
	out, err := runCommand(ctx, r.command(append([]string{"ls-tree", "--full-tree", "-z", "--name-only", commit, "--"}, paths...)...))
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 }), nil
}

// Export writes the files below the paths, as the commit has them, into dir. The work tree plays no part.
func (r *Repository) Export(ctx context.Context, commit string, paths []string, dir string) error {
	reader, writer := io.Pipe()
	command := r.command(append([]string{"archive", "--format=tar", commit, "--"}, paths...)...)
	command.Stdout = writer
	go func() {
		_, err := runCommand(ctx, command)
		writer.CloseWithError(err)
	}()
	err := extract(reader, dir)
	if err != nil {
		reader.CloseWithError(err) // git archive ends with it
		return fmt.Errorf("export %s into %s: %w", commit, dir, err)
	}
	return nil
}

// extract unpacks regular files and folders; nothing else is in a tree that this is used for.
func extract(from io.Reader, dir string) error {
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("%q is outside of the folder", header.Name)
		}
		path := filepath.Join(dir, header.Name)
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, header.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(file, archive)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
}
