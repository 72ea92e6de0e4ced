package patches

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// firstDir has, in a baseline's folder, the series of the first pull request.
const firstDir = "first"

// First shows files of series so that each baseline's series is that of its first pull request: the least that keeps two threads
// alive, by itself, of lines that the whole series has, too. What is known of the baseline is the same; what
// was found about the whole series is not there. Without a folder "first" a baseline is unknown.
func First(files fs.FS) fs.FS { return first{files} }

// ErrNoFirst is returned, wrapped, for a baseline whose folder has no first pull request.
var ErrNoFirst = errors.New("there is no first pull request")

// LoadFirst loads a baseline's first pull request.
func LoadFirst(files fs.FS, baseline string) (*Series, error) {
	if _, err := fs.Stat(files, path.Join(baseline, firstDir, seriesFile)); err != nil {
		return nil, fmt.Errorf("%w for %s: its folder of patches has no %s/%s: %w", ErrNoFirst, baseline, firstDir, seriesFile, err)
	}
	return Load(First(files), baseline)
}

type first struct{ files fs.FS }

func (f first) Open(name string) (fs.File, error) {
	baseline, file, inside := strings.Cut(name, "/")
	facts := []string{BaselineFile, digestsFile, hostFile, macFile, operatorsFile, UpstreamFile}
	switch {
	case inside && !slices.Contains(facts, file):
		return f.files.Open(path.Join(baseline, firstDir, file))
	case !inside && name != ".":
		if dir := path.Join(name, firstDir); fs.ValidPath(dir) {
			if info, err := fs.Stat(f.files, name); err == nil && info.IsDir() {
				return f.files.Open(dir)
			}
		}
	}
	return f.files.Open(name)
}
