package upstream

import (
	"bufio"
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

// kept is a file in the cache with the ends of a long run's tests, a JSON object a line, so that a later run goes on where this
// one was stopped. Its name has the digest of all that the ends depend on.
type kept struct {
	path  string
	file  *os.File
	ends  map[string]ended
	since time.Time // when the first of them was written; zero without any
}

// openKept reads the ends that there are. A nil *kept, of the short form, has none and keeps none. The caller closes it.
func openKept(folder string, depends ...string) (*kept, error) {
	hash := sha256.New()
	for _, text := range depends {
		fmt.Fprintf(hash, "%d %s\n", len(text), text)
	}
	k := &kept{path: filepath.Join(folder, hex.EncodeToString(hash.Sum(nil))[:24]+".jsonl"), ends: map[string]ended{}}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := k.read(); err != nil {
		return nil, fmt.Errorf("kept results: %w", err)
	}
	var err error
	k.file, err = os.OpenFile(k.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return k, err
}

// head is the first line: when the file was begun.
type head struct {
	Begun time.Time `json:"begun"`
}

func (k *kept) read() error {
	file, err := os.Open(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err := json.Marshal(head{Begun: time.Now().UTC()})
		if err != nil {
			return err
		}
		return os.WriteFile(k.path, append(data, '\n'), 0o644)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for first := true; lines.Scan(); first = false {
		var begun head
		var end ended
		switch {
		case first && json.Unmarshal(lines.Bytes(), &begun) == nil:
			k.since = begun.Begun
		case json.Unmarshal(lines.Bytes(), &end) == nil && end.Name != "":
			k.ends[end.Name] = end
		}
		// A line that a kill cut short is a test that runs again.
	}
	if len(k.ends) == 0 {
		k.since = time.Time{}
	}
	return lines.Err()
}

// end gives the kept end of a test.
func (k *kept) end(name string) (ended, bool) {
	if k == nil {
		return ended{}, false
	}
	end, found := k.ends[name]
	return end, found
}

// add keeps an end.
func (k *kept) add(end ended) error {
	if k == nil {
		return nil
	}
	data, err := json.Marshal(end)
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(append([]byte{'\n'}, data...), '\n')) // the first, as a kill may have cut the line before
	return err
}

func (k *kept) close() error {
	if k == nil {
		return nil
	}
	return k.file.Close()
}
