// Package atomicfile writes files that are whole at any moment.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"mpsforge/internal/fault"
)

// Write writes a file whole or not at all: a kill, or a full disk, must not cost the file that was there, and whoever has that open
// keeps it. Several processes may write one file. A kill can leave NAME.PID.new. What is no plain file, such as a device, cannot be
// replaced, and is written to.
func Write(name string, mode fs.FileMode, write func(io.Writer) error) error {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return writeFile(name, mode, write)
	}
	made := fmt.Sprintf("%s.%d.new", name, os.Getpid())
	err := writeFile(made, mode, write)
	if err == nil {
		fault.Point()
		err = os.Rename(made, name)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	return nil
}

// WriteBytes is Write with data that is there.
func WriteBytes(name string, mode fs.FileMode, data []byte) error {
	return Write(name, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// writeFile writes a file without all of its text in memory.
func writeFile(name string, mode fs.FileMode, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	if err = write(buffered); err == nil {
		err = buffered.Flush()
	}
	return errors.Join(err, file.Close())
}
