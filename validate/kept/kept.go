// Package kept keeps the results of a long run in a file of the cache, so that a later run goes on where this one was stopped. The
// stages operators and upstream use it, and runtime where it leaves patches out.
package kept

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File has one JSON object a line: when it was begun, then the results. It is for one goroutine at a time.
type File[T any] struct {
	Path  string
	Begun time.Time
	file  *os.File
}

// Open opens the file in folder that belongs to all that the results depend on, and gives the results in it; without one it
// begins one. Half a line at its end, which a kill may leave, is cut off; a line that is not a result is an error. The caller closes
// the file or finishes it.
func Open[T any](folder string, depends ...string) (*File[T], []T, error) {
	hash := sha256.New()
	for _, text := range depends {
		fmt.Fprintf(hash, "%d %s\n", len(text), text)
	}
	f := &File[T]{Path: filepath.Join(folder, hex.EncodeToString(hash.Sum(nil))[:24]+".jsonl")}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, nil, fmt.Errorf("kept results: %w", err)
	}
	data, err := os.ReadFile(f.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("kept results: %w", err)
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	results, err := f.parse(data[:whole])
	if err != nil {
		return nil, nil, fmt.Errorf("kept results %s: %w; delete the file to begin again", f.Path, err)
	}
	if f.file, err = os.OpenFile(f.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return nil, nil, fmt.Errorf("kept results: %w", err)
	}
	err = f.file.Truncate(int64(whole))
	if err == nil && whole == 0 {
		f.Begun = time.Now().UTC()
		err = f.write(head{f.Begun})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("kept results: %w", errors.Join(err, f.file.Close()))
	}
	return f, results, nil
}

// head is the first line.
type head struct {
	Begun time.Time `json:"begun"`
}

func (f *File[T]) parse(data []byte) (results []T, err error) {
	for number, line := range bytes.Split(data, []byte{'\n'}) {
		var result T
		var begun head
		switch {
		case len(line) == 0:
			continue
		case f.Begun.IsZero():
			if err = json.Unmarshal(line, &begun); err == nil && begun.Begun.IsZero() {
				err = errors.New("it does not say when it was begun")
			}
			f.Begun = begun.Begun
		default:
			err = json.Unmarshal(line, &result)
			results = append(results, result)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number+1, err)
		}
	}
	return results, nil
}

// Add keeps a result.
func (f *File[T]) Add(result T) error { return f.write(result) }

func (f *File[T]) write(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = f.file.Write(append(line, '\n'))
	return err
}

// Close closes the file; its results stay.
func (f *File[T]) Close() error { return f.file.Close() }

// Finish removes the file: the run came to its end, and its report has the results.
func (f *File[T]) Finish() error { return errors.Join(f.file.Close(), os.Remove(f.Path)) }
