package patches

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Baseline holds the facts about one PyTorch version that a series is for (baseline.json).
type Baseline struct {
	Schema int     `json:"schema"` // always 1
	Name   string  `json:"name"`   // also the name of the directory, v2.9.1
	Tag    string  `json:"tag"`
	Commit string  `json:"commit,omitempty"` // of the tag
	Tree   string  `json:"tree,omitempty"`   // of that commit, where known
	Source *Source `json:"source,omitempty"`
	// Absent lists paths known not to exist in the baseline: a patch may create them.
	Absent []string `json:"absent"`
	// Touched gives, for each path that the series touches, its blob id in the baseline, or nil for an absent path.
	Touched map[string]*string `json:"touched"`
}

// Source names the source package that a baseline can be taken from instead of git.
type Source struct {
	Suite       string `json:"suite"` // of the distribution, such as trixie
	Package     string `json:"package"`
	Version     string `json:"version"`
	File        string `json:"file"`
	Description string `json:"description"` // how to get it, in words
	SHA256      string `json:"sha256"`      // of File
	Size        int64  `json:"size"`        // of File, in bytes
}

// Digests holds the line digests of a baseline's files (digests.json): enough to check a patch, no source text.
type Digests struct {
	Tag        string        `json:"tag"`
	LineDigest string        `json:"line_digest"` // what a line digest is, in words
	Blob       string        `json:"blob"`        // what a blob id is, in words
	Files      []FileDigests `json:"files"`
}

// FileDigests holds the facts of one file of a baseline.
type FileDigests struct {
	Path        string      `json:"path"`
	Mode        string      `json:"mode"` // as git writes it, 100644
	Size        int64       `json:"size"`
	Blob        string      `json:"blob"`
	Lines       int         `json:"lines"`
	EOFNewline  bool        `json:"eof_newline"`
	LineDigests LineDigests `json:"line_digests"`
}

// LineDigests are digests of lines, in their order. In JSON a row has many of them, one behind the other.
type LineDigests []string

const (
	digestSize = 12 // hex digits
	digestRow  = 64 // digests
)

// MarshalJSON gives an array of rows.
func (d LineDigests) MarshalJSON() ([]byte, error) {
	rows := []string{}
	for row := range slices.Chunk(d, digestRow) {
		rows = append(rows, strings.Join(row, ""))
	}
	return json.Marshal(rows)
}

// UnmarshalJSON takes rows of any number of digests.
func (d *LineDigests) UnmarshalJSON(data []byte) error {
	var rows []string
	if err := json.Unmarshal(data, &rows); err != nil {
		return err
	}
	*d = LineDigests{}
	for _, row := range rows {
		if len(row)%digestSize != 0 {
			return fmt.Errorf("a row of line_digests has %d hex digits, which is no multiple of %d", len(row), digestSize)
		}
		for digest := range slices.Chunk([]byte(row), digestSize) {
			*d = append(*d, string(digest))
		}
	}
	return nil
}

// NewDigests makes the digests of no file.
func NewDigests(tag string) Digests {
	return Digests{
		Tag:        tag,
		LineDigest: "first 12 hex digits of the SHA-256 of the line without its newline, 64 lines a row",
		Blob:       "git blob SHA-1 of the whole file",
		Files:      []FileDigests{},
	}
}

// lineDigest is the first 12 hex digits of the SHA-256 of a line without its newline.
func lineDigest(line string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.TrimSuffix(line, "\n"))))[:digestSize]
}

// DigestFile takes the facts of one file. An empty file has no lines and counts as ending in a newline.
func DigestFile(path, mode string, content []byte) FileDigests {
	d := FileDigests{
		Path: path, Mode: mode, Size: int64(len(content)), Blob: blobID(content),
		EOFNewline: len(content) == 0 || content[len(content)-1] == '\n', LineDigests: LineDigests{},
	}
	for line := range strings.Lines(string(content)) {
		d.LineDigests = append(d.LineDigests, lineDigest(line))
	}
	d.Lines = len(d.LineDigests)
	return d
}

// RecordBaseline takes the facts of a baseline from read, which gives a path's git mode and content, or fs.ErrNotExist.
// identity fills every field but Schema, Absent and Touched; touched are the paths of the series, extra further paths
// worth digests. What read does not find is recorded as absent.
func RecordBaseline(identity Baseline, touched, extra []string, read func(path string) (mode string, content []byte, err error)) (Baseline, Digests, error) {
	b := identity
	b.Schema, b.Absent, b.Touched = 1, []string{}, map[string]*string{}
	d := NewDigests(identity.Tag)
	paths := slices.Concat(touched, extra)
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		var blob *string
		switch mode, content, err := read(path); {
		case errors.Is(err, fs.ErrNotExist):
			b.Absent = append(b.Absent, path)
		case err != nil:
			return Baseline{}, Digests{}, fmt.Errorf("record baseline %s: read %s: %w", identity.Name, path, err)
		default:
			f := DigestFile(path, mode, content)
			d.Files = append(d.Files, f)
			blob = &f.Blob
		}
		if slices.Contains(touched, path) {
			b.Touched[path] = blob
		}
	}
	return b, d, nil
}

// FileText is the text of a file of a baseline's folder, such as RunsFile, that holds content, such as Runs: the same content gives the
// same bytes.
func FileText(name string, content any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(content); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return text.Bytes(), nil
}

// readBaseline reads baseline.json from the baseline's own directory.
func readBaseline(dir fs.FS) (b Baseline, err error) {
	err = readJSON(dir, BaselineFile, &b, &b.Schema)
	return b, err
}

// readDigests reads digests.json. A baseline without it is allowed: all its hunks then count as unverified.
func readDigests(dir fs.FS) (d Digests, err error) {
	if err := readJSON(dir, digestsFile, &d, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	for _, f := range d.Files {
		if f.Lines != len(f.LineDigests) {
			return d, fmt.Errorf("%s says that %s has %d lines but gives %d digests; record the baseline again",
				digestsFile, f.Path, f.Lines, len(f.LineDigests))
		}
	}
	return d, nil
}

// writerOf says who writes a file of a baseline's folder.
func writerOf(name string) string {
	switch name {
	case AblationFile, RunsFile, MutantsFile, ControlsFile, CoverageFile:
		return "mpsforge baseline " + strings.TrimSuffix(name, ".json") + " writes it"
	case BaselineFile, digestsFile, blobsFile:
		return "mpsforge baseline record writes it"
	}
	return "it is written by hand"
}

// readJSON reads a file of a baseline's folder. Unknown fields are errors: they are misspelt ones. schema is where the file says its
// version; nil for a file that has none.
func readJSON(dir fs.FS, name string, v any, schema *int) error {
	data, err := readFile(dir, name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("read %s: %w; put back the file as it was: %s", name, err, writerOf(name))
	}
	if schema != nil && *schema != 1 {
		return fmt.Errorf("%s has schema %d, this mpsforge reads schema 1; use the mpsforge that wrote it", name, *schema)
	}
	return nil
}
