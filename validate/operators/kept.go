package operators

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
)

// kept are the results of a long form that has not come to its end yet, in a file: a later run with the same seed on the same
// library goes on where it was interrupted.
type kept struct {
	path string
	file *os.File
	have map[string][]outcome // by job
}

// openKept reads the file that belongs to these things, and opens it for more.
func openKept(cache string, of ...any) (*kept, error) {
	sum := sha256.Sum256(fmt.Appendln(nil, of...))
	dir := filepath.Join(cache, "operators")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	k := &kept{path: filepath.Join(dir, hex.EncodeToString(sum[:])[:16]+".jsonl"), have: map[string][]outcome{}}
	data, err := os.ReadFile(k.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1 // a kill may have left half a line
	for number, line := range bytes.Split(data[:whole], []byte{'\n'}) {
		var o outcome
		if len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &o); err != nil {
			return nil, fmt.Errorf("kept results %s, line %d: %w; delete the file to begin anew", k.path, number+1, err)
		}
		k.have[keyOf(o.Job)] = append(k.have[keyOf(o.Job)], o)
	}
	if k.file, err = os.OpenFile(k.path, os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	if err := k.file.Truncate(int64(whole)); err != nil {
		return nil, err
	}
	_, err = k.file.Seek(int64(whole), 0)
	return k, err
}

// keyOf names all of a job but its number in this run.
func keyOf(j job) string {
	j.ID = 0
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // plain data
	}
	return string(text)
}

// split gives the ends that are there, and the jobs that are left.
func (k *kept) split(jobs []job) (ends []outcome, left []job) {
	for _, j := range jobs {
		key := keyOf(j)
		if there := k.have[key]; len(there) > 0 {
			ends, k.have[key] = append(ends, there[0]), there[1:]
			continue
		}
		left = append(left, j)
	}
	return ends, left
}

func (k *kept) add(o outcome) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(line, '\n'))
	return err
}

// finish removes the file: the run came to its end, and its report has the results.
func (k *kept) finish() error { return errors.Join(k.file.Close(), os.Remove(k.path)) }
