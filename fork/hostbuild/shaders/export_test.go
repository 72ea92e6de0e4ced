package shaders

import (
	"context"
	"io/fs"
	"path/filepath"
)

// MakeTranslator makes the program that translates, in dir, and returns its path.
func MakeTranslator(ctx context.Context, tools Tools, native fs.FS, dir string) (string, error) {
	b := builder{Options: Options{Tools: tools, Native: native}, dir: dir}
	if err := b.unpack(); err != nil {
		return "", err
	}
	return filepath.Join(dir, translator), b.makeTranslator(ctx)
}
