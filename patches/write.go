package patches

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/internal/fault"
)

// ErrUnfinished is returned, wrapped, for a baseline's folder that a run which was cut off has half rewritten.
var ErrUnfinished = errors.New("a rewrite of the series was cut off")

// A rewrite is made ready in a folder inside the one it changes; the rename from preparedDir to pendingDir commits it,
// and finishing it again does no harm.
const (
	preparedDir = ".prepared"
	pendingDir  = ".pending"
	removedFile = ".removed" // in pendingDir: names of files to remove, one a line
)

func checkFinished(dir fs.FS, baseline string) error {
	if _, err := fs.Stat(dir, pendingDir); err == nil {
		return fmt.Errorf("%s: %w: finish it: mpsforge recover --patches DIR, with the folder that holds %s", baseline, ErrUnfinished, baseline)
	}
	return nil
}

// Rewrite writes files into a folder, by name, and removes others, as one change: a run that is cut off has done
// nothing, or FinishRewrite does the rest. Files that hold the wanted bytes already are not touched. It gives the names
// that changed.
func Rewrite(dir string, files map[string][]byte, remove []string) (changed []string, err error) {
	fail := func(err error) ([]string, error) { return nil, fmt.Errorf("write the series into %s: %w", dir, err) }
	if _, err := FinishRewrite(dir); err != nil {
		return nil, err
	}
	prepared := filepath.Join(dir, preparedDir)
	if err := os.RemoveAll(prepared); err != nil {
		return fail(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if was, err := os.ReadFile(filepath.Join(dir, name)); err == nil && bytes.Equal(was, files[name]) {
			continue
		}
		changed = append(changed, name)
	}
	remove = slices.DeleteFunc(slices.Clone(remove), func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return errors.Is(err, fs.ErrNotExist)
	})
	if len(changed)+len(remove) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(prepared, 0o755); err != nil {
		return fail(err)
	}
	for _, name := range changed {
		if err := os.WriteFile(filepath.Join(prepared, name), files[name], 0o644); err != nil {
			return fail(err)
		}
		fault.Point()
	}
	if err := os.WriteFile(filepath.Join(prepared, removedFile), []byte(strings.Join(remove, "\n")), 0o644); err != nil {
		return fail(err)
	}
	if err := os.Rename(prepared, filepath.Join(dir, pendingDir)); err != nil {
		return fail(err)
	}
	fault.Point()
	_, err = FinishRewrite(dir)
	return append(changed, remove...), err
}

// FinishRewrite carries out a rewrite of the folder that was cut off, and reports whether there was one.
func FinishRewrite(dir string) (bool, error) {
	pending := filepath.Join(dir, pendingDir)
	fail := func(err error) (bool, error) { return false, fmt.Errorf("finish the rewrite of %s: %w", dir, err) }
	entries, err := os.ReadDir(pending)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return fail(err)
	}
	for _, entry := range entries {
		from := filepath.Join(pending, entry.Name())
		fault.Point()
		if entry.Name() != removedFile {
			if err := os.Rename(from, filepath.Join(dir, entry.Name())); err != nil {
				return fail(err)
			}
			continue
		}
		names, err := os.ReadFile(from)
		if err != nil {
			return fail(err)
		}
		for _, name := range strings.Fields(string(names)) {
			if filepath.Base(name) != name || !filepath.IsLocal(name) { // who sends a series may have made the folder
				return fail(fmt.Errorf("%s names %q, which is not a file of the folder", filepath.Join(pendingDir, removedFile), name))
			}
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fail(err)
			}
		}
	}
	if err := os.RemoveAll(pending); err != nil {
		return fail(err)
	}
	return true, nil
}

// FinishRewrites does so for each baseline's folder below dir, and names those that needed it.
func FinishRewrites(dir string) ([]string, error) {
	pending, err := filepath.Glob(filepath.Join(dir, "*", pendingDir))
	if err != nil {
		return nil, fmt.Errorf("look for rewrites that were cut off: %w", err)
	}
	var finished []string
	for _, path := range pending {
		if _, err := FinishRewrite(filepath.Dir(path)); err != nil {
			return finished, err
		}
		finished = append(finished, filepath.Dir(path))
	}
	return finished, nil
}

// Files are the files that a series is made of: patches, the series file, and the baseline's facts. old is the series
// file as it was: its comments stay with their names. digests may be nil: not to be written.
func (s *Series) Files(old string, digests *Digests, blobs Blobs) (map[string][]byte, error) {
	files, err := FactFiles(s.Baseline, digests, blobs)
	if err != nil {
		return nil, err
	}
	files[seriesFile] = []byte(seriesText(old, s.Names()))
	for _, p := range s.Patches {
		files[p.Name+suffix] = p.Raw
	}
	return files, nil
}

// FactFiles are the files of a baseline's facts, by name. digests may be nil: not to be written.
func FactFiles(baseline Baseline, digests *Digests, blobs Blobs) (map[string][]byte, error) {
	facts := map[string]any{BaselineFile: baseline, blobsFile: blobs}
	if digests != nil {
		facts[digestsFile] = digests
	}
	files := map[string][]byte{}
	for name, content := range facts {
		text, err := FileText(name, content)
		if err != nil {
			return nil, err
		}
		files[name] = text
	}
	return files, nil
}

// PatchFile is the file name of a patch.
func PatchFile(name string) string { return name + suffix }

// SeriesText is the series file as it is stored; empty for a series made in memory.
func (s *Series) SeriesText() (string, error) {
	if s.dir == nil {
		return "", nil
	}
	text, err := readFile(s.dir, seriesFile)
	if err != nil {
		return "", fmt.Errorf("baseline %s: read the series: %w", s.Baseline.Name, err)
	}
	return string(text), nil
}

// newSeriesText heads a series file that is written for the first time.
const newSeriesText = "# The series for this baseline, in the order of application: one patch a line. See `mpsforge lint --help`.\n"

// seriesText writes a series file. Comments at the top stay there, others before the name that they preceded.
func seriesText(old string, names []string) string {
	if old == "" {
		old = newSeriesText
	}
	var head, comments strings.Builder
	block := map[string]string{} // a name's line with the comments before it
	first := true
	for line := range strings.Lines(old) {
		line = strings.TrimRight(line, "\n") + "\n"
		name, isPatch := "", false
		if fields := strings.Fields(line); len(fields) > 0 {
			name, isPatch = strings.CutSuffix(fields[0], suffix)
		}
		switch {
		case !isPatch && first:
			head.WriteString(line)
		case !isPatch:
			comments.WriteString(line)
		default:
			first = false
			block[name] = comments.String() + line
			comments.Reset()
		}
	}
	text := head.String()
	for _, name := range names {
		if _, known := block[name]; !known {
			block[name] = name + suffix + "\n"
		}
		text += block[name]
	}
	return text + comments.String()
}
