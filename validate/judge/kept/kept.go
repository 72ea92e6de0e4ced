// Package kept keeps the results of a long run in files of the cache, so that a later run goes on where this one was stopped. The
// stages operators and upstream use it, and runtime where it leaves patches out.
package kept

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Run is what one stage keeps in one run of the pipeline, and how far it is. A whole run and its shards take over each other's
// results; each writes files of its own, as several may run at the same time.
type Run struct {
	Cache, Stage string
	Shard        string // such as 2-of-8; empty: the whole
	Begin        func() // is called when the stage begins to keep something; nil: nothing is

	mutex    sync.Mutex
	opened   bool // a file
	files    []*os.File
	unit     string
	done, of int64
}

// Reached says how far the stage is, of what it has planned so far.
func (r *Run) Reached(unit string, done, of int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.unit, r.done, r.of = unit, done, of
}

// String says how much is kept, such as "operators 120 of 2345 jobs planned so far"; it is empty where nothing is.
func (r *Run) String() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.opened || r.of == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d of %d %s planned so far", r.Stage, r.done, r.of, r.unit)
}

// Close closes the files; the results stay.
func (r *Run) Close() error { return r.end(false) }

// Finish removes the files: the run came to its end, and its report has the results. A whole run removes those of shards, too.
func (r *Run) Finish() error { return r.end(true) }

func (r *Run) end(remove bool) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var failed error
	for _, file := range r.files {
		failed = errors.Join(failed, file.Close())
		if !remove {
			continue
		}
		folder := filepath.Dir(file.Name())
		if r.Shard == "" {
			failed = errors.Join(failed, os.RemoveAll(folder))
			continue
		}
		if err := os.Remove(file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) { // a whole run may have ended meanwhile
			failed = errors.Join(failed, err)
		}
		_ = os.Remove(folder) // unless another run keeps something there
	}
	r.files = nil
	if failed != nil {
		return fmt.Errorf("kept results: %w", failed)
	}
	return nil
}

// File has one JSON object a line: when it was begun, then the results.
type File[T any] struct {
	Folder string    // has the results of this run and of those before it
	Begun  time.Time // the first of them
	file   *os.File
}

// Open opens a file of the stage for results that depend on all that is named, and gives those that are there, also those that the
// whole run or other shards have kept. Half a line at its end, which a kill may leave, is cut off; a line that is not a result is an
// error. The run closes the file or finishes it.
func Open[T any](r *Run, depends ...string) (*File[T], []T, error) {
	hash := sha256.New()
	for _, text := range depends {
		fmt.Fprintf(hash, "%d %s\n", len(text), text)
	}
	f := &File[T]{Folder: filepath.Join(r.Cache, r.Stage, hex.EncodeToString(hash.Sum(nil))[:24])}
	results, err := f.open(filepath.Join(f.Folder, cmp.Or(r.Shard, "whole")+".jsonl"))
	if err != nil {
		return nil, nil, fmt.Errorf("kept results: %w", err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.opened && r.Begin != nil {
		r.Begin()
	}
	r.opened = true
	r.files = append(r.files, f.file)
	return f, results, nil
}

// open opens the run's own file, and reads it and those beside it.
func (f *File[T]) open(own string) (all []T, err error) {
	if err := os.MkdirAll(f.Folder, 0o755); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(f.Folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	whole := 0 // bytes of its own file that are whole lines
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another run has come to its end
		}
		if err != nil {
			return nil, err
		}
		data = data[:bytes.LastIndexByte(data, '\n')+1]
		if path == own {
			whole = len(data)
		}
		begun, results, err := parse[T](data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; delete the file to begin again", path, err)
		}
		all = append(all, results...)
		if !begun.IsZero() && (f.Begun.IsZero() || begun.Before(f.Begun)) {
			f.Begun = begun
		}
	}
	if f.file, err = os.OpenFile(own, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return nil, err
	}
	err = f.file.Truncate(int64(whole))
	if err == nil && whole == 0 {
		now := time.Now().UTC()
		if f.Begun.IsZero() {
			f.Begun = now
		}
		err = f.write(head{now})
	}
	if err != nil {
		return nil, errors.Join(err, f.file.Close())
	}
	return all, nil
}

// head is the first line.
type head struct {
	Begun time.Time `json:"begun"`
}

// parse reads whole lines.
func parse[T any](data []byte) (begun time.Time, results []T, err error) {
	for number, line := range bytes.Split(data, []byte{'\n'}) {
		var result T
		var first head
		switch {
		case len(line) == 0:
			continue
		case begun.IsZero():
			if err = json.Unmarshal(line, &first); err == nil && first.Begun.IsZero() {
				err = errors.New("it does not say when it was begun")
			}
			begun = first.Begun
		default:
			err = json.Unmarshal(line, &result)
			results = append(results, result)
		}
		if err != nil {
			return begun, nil, fmt.Errorf("line %d: %w", number+1, err)
		}
	}
	return begun, results, nil
}

// Add keeps a result. Several goroutines may: os.File writes one line after the other.
func (f *File[T]) Add(result T) error { return f.write(result) }

func (f *File[T]) write(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = f.file.Write(append(line, '\n'))
	return err
}
