// Package patches holds the patch series of each PyTorch baseline and the code that reads, prints and checks them:
// one mail of git format-patch a file, in the order of a quilt-like series file, against a baseline of which only
// facts (blob ids, line digests) are stored. It reads from an fs.FS and never looks at a checkout.
//
// Load reads a series and parses its patches (Parse does one), Lint checks it against the baseline's facts, LintCompare one
// baseline's series against another's. File.Apply applies a change to a file's content: strictly, with neither fuzz nor
// offset, and a ConflictError says what was expected and found where. Canonical prints a patch in the one form that is
// kept. Embedded holds the series that come with the program.
package patches

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mpsforge/internal/suggest"
	"mpsforge/internal/words"
)

//go:embed LICENSE v[0-9]*
var embedded embed.FS

// Embedded returns the series that this binary carries, one directory a baseline, and PyTorch's LICENSE notice.
func Embedded() fs.FS { return embedded }

// ShippedDigests gives the SHA-256 digests, in hex, of the patch files that come with this program for a baseline; none for
// a baseline that it does not know.
func ShippedDigests(baseline string) ([]string, error) {
	names, err := fs.Glob(embedded, baseline+"/*.patch")
	if err != nil {
		return nil, fmt.Errorf("list the patches of %s that come with mpsforge: %w", baseline, err)
	}
	var digests []string
	for _, name := range names {
		content, err := embedded.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the patch that comes with mpsforge: %w", err)
		}
		digests = append(digests, fmt.Sprintf("%x", sha256.Sum256(content)))
	}
	return digests, nil
}

// DefaultBaseline is the baseline that counts when nothing names another.
const DefaultBaseline = "v2.9.1"

// ErrUnknownBaseline is returned, wrapped, for a name that no series is for.
var ErrUnknownBaseline = errors.New("no such baseline")

// Series is a baseline and the patches that are on it, in the order of application.
type Series struct {
	Baseline Baseline
	Patches  []*Patch
	Parts    []Part // in the order of application; none in a series that is not divided
	dir      fs.FS  // of the baseline; nil for a series made in memory
	all      fs.FS  // that the baseline is one of
}

// Neighbours gives the facts of the baselines that the series was loaded beside, its own first.
func (s *Series) Neighbours() []Baseline {
	if s.all == nil {
		return []Baseline{s.Baseline}
	}
	return append([]Baseline{s.Baseline}, KnownBaselines(s.all)...)
}

// KnownBaselines gives the facts of all baselines below fsys, the newest first. One that cannot be read is left out: no
// tree is recognised by it, and Load says what is wrong with it to those who name it.
func KnownBaselines(fsys fs.FS) []Baseline {
	names, err := Baselines(fsys)
	if err != nil {
		return nil
	}
	var known []Baseline
	for _, name := range slices.Backward(names) {
		if facts, err := LoadBaseline(fsys, name); err == nil {
			known = append(known, facts)
		}
	}
	return known
}

// Digests reads the line digests of the baseline. They are large, and few commands need them.
func (s *Series) Digests() (Digests, error) {
	if s.dir == nil {
		return Digests{}, nil
	}
	digests, err := readDigests(s.dir)
	if err != nil {
		return Digests{}, fmt.Errorf("baseline %s: %w", s.Baseline.Name, err)
	}
	return digests, nil
}

// Baselines lists the baselines below fsys, oldest first: the directories that hold a baseline.json.
func Baselines(fsys fs.FS) ([]string, error) {
	found, err := fs.Glob(fsys, "*/"+BaselineFile)
	if err != nil {
		return nil, fmt.Errorf("list the baselines: %w", err)
	}
	for i, f := range found {
		found[i] = strings.TrimSuffix(f, "/"+BaselineFile)
	}
	// go/version orders go2.9.1 before go2.10.0, which is the order of PyTorch's tags as well.
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(version.Compare("go"+strings.TrimPrefix(a, "v"), "go"+strings.TrimPrefix(b, "v")), cmp.Compare(a, b))
	})
	return found, nil
}

// LoadBaseline reads the facts of a baseline without its patches.
func LoadBaseline(fsys fs.FS, baseline string) (Baseline, error) {
	dir, err := baselineDir(fsys, baseline)
	if err != nil {
		return Baseline{}, err
	}
	facts, err := readBaseline(dir)
	if err != nil {
		return Baseline{}, fmt.Errorf("baseline %s: %w", baseline, err)
	}
	return facts, nil
}

// Load reads a baseline and parses its series; the first fault is the error. It does not check the patches against
// the baseline: Lint does.
func Load(fsys fs.FS, baseline string) (*Series, error) {
	facts, err := LoadBaseline(fsys, baseline)
	if err != nil {
		return nil, err
	}
	dir, err := fs.Sub(fsys, baseline)
	if err != nil {
		return nil, fmt.Errorf("baseline %s: %w", baseline, err)
	}
	if err := checkFinished(dir, baseline); err != nil {
		return nil, err
	}
	s := &Series{Baseline: facts, dir: dir, all: fsys}
	text, err := readFile(dir, seriesFile)
	if err != nil {
		return nil, fmt.Errorf("baseline %s: read the series: %w", baseline, err)
	}
	entries, faults := parseSeries(string(text))
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s/%s:%d: %s; %s", baseline, seriesFile, faults[0].line, faults[0].why, faults[0].do)
	}
	for _, e := range entries {
		raw, err := readFile(dir, e.name+suffix)
		if err != nil {
			return nil, fmt.Errorf("%s/%s:%d: read the listed patch: %w", baseline, seriesFile, e.line, err)
		}
		p, err := Parse(e.name, raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", baseline, err)
		}
		s.Patches = append(s.Patches, p)
	}
	s.Parts = partsOf(entries)
	return s, nil
}

// Part is a part of a series that can be had without those after it, by a line "# part: NAME" before its first patch.
type Part struct {
	Name string
	Last string // its last patch
}

func partsOf(entries []entry) []Part {
	var parts []Part
	for _, e := range entries {
		if e.part == "" {
			continue
		}
		if n := len(parts); n > 0 && parts[n-1].Name == e.part {
			parts[n-1].Last = e.name
		} else {
			parts = append(parts, Part{e.part, e.name})
		}
	}
	return parts
}

// Applied gives, where the names are those of one or more first parts but not of all patches, the series up to there and the last of
// these parts; else the series itself and "".
func (s *Series) Applied(names []string) (*Series, string) {
	for _, part := range s.Parts {
		last := slices.IndexFunc(s.Patches, func(p *Patch) bool { return p.Name == part.Last })
		same := func(p *Patch, name string) bool { return p.Name == name }
		if last < len(s.Patches)-1 && slices.EqualFunc(s.Patches[:last+1], names, same) {
			some := *s
			some.Patches = s.Patches[:last+1]
			return &some, part.Name
		}
	}
	return s, ""
}

// ErrNoPart is returned, wrapped, for the name of a part that the series does not have.
var ErrNoPart = errors.New("the series has no such part")

// UpTo gives the last patch of a part: what is applied up to it is that part, and those before it.
func (s *Series) UpTo(part string) (string, error) {
	var known []string
	for _, one := range s.Parts {
		if one.Name == part {
			return one.Last, nil
		}
		known = append(known, one.Name)
	}
	return "", fmt.Errorf("%w: %q%s", ErrNoPart, part, suggest.Names(part, known))
}

// baselineDir is the directory of a baseline; the name comes from a flag, so it must not lead elsewhere.
func baselineDir(fsys fs.FS, baseline string) (fs.FS, error) {
	if !fs.ValidPath(baseline) || baseline == "." || strings.Contains(baseline, "/") {
		return nil, fmt.Errorf("%w: %q is not the name of one; give one like %s", ErrUnknownBaseline, baseline, DefaultBaseline)
	}
	if info, err := fs.Stat(fsys, baseline); err != nil || !info.IsDir() {
		known, _ := Baselines(fsys)
		return nil, fmt.Errorf("%w: %s%s", ErrUnknownBaseline, baseline, suggest.Names(baseline, known))
	}
	return fs.Sub(fsys, baseline)
}

// Digest identifies what the series does: the SHA-256, in hex, over a line "name NUL sha256-of-the-diff LF" for each patch in order. Of a
// patch it has the diff alone, from the first "diff --git" line on: a message says another thing about the same tree, and what was run on
// that tree stays run.
func (s *Series) Digest() string {
	return s.digest(func(p *Patch) string { return fmt.Sprintf("%x", sha256.Sum256(p.diff())) })
}

// FilesDigest identifies the patch files, messages and all, as Digest does the diffs.
func (s *Series) FilesDigest() string {
	return s.digest(func(p *Patch) string { return p.SHA256 })
}

func (s *Series) digest(of func(p *Patch) string) string {
	h := sha256.New()
	for _, p := range s.Patches {
		fmt.Fprintf(h, "%s\x00%s\n", p.Name, of(p))
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// TouchedPaths lists the paths that the series adds, changes, renames (both names) or deletes, sorted.
func (s *Series) TouchedPaths() []string {
	var paths []string
	for _, p := range s.Patches {
		paths = append(paths, p.Paths()...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// BaselineFile holds the facts of the baseline whose folder it lies in.
const BaselineFile = "baseline.json"

const (
	suffix      = ".patch"
	seriesFile  = "series"
	digestsFile = "digests.json"
)

// mostBytes is the size of the largest file of a series that is read. What is read of a patch takes some thirty times its size.
const mostBytes = 64 << 20

// readFile reads a file of a series, unless its size says that it is none.
func readFile(dir fs.FS, name string) ([]byte, error) {
	info, err := fs.Lstat(dir, name) // fs.Stat of a folder's file may open it, which waits for a writer if it is a named pipe
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		info, err = fs.Stat(dir, name)
	}
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // a device has no size, and may have no end
		return nil, fmt.Errorf("%s is not a plain file", name)
	case info.Size() > mostBytes:
		return nil, fmt.Errorf("%s is too large: %s, at most %s are read", name, words.Size(info.Size()), words.Size(mostBytes))
	}
	return fs.ReadFile(dir, name)
}

// lazy compiles a pattern when it is first used: compiling all of them takes as long as the rest of the program's start.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// entry is one line of a series file; name comes without the suffix.
type entry struct {
	name string
	line int
	part string // that it belongs to; empty: none
}

// seriesFault is a line of a series file that breaks its format.
type seriesFault struct {
	line    int
	why, do string
}

var (
	slug    = lazy(`^[a-z0-9]+(-[a-z0-9]+)*\.patch$`)
	ordinal = lazy(`^[0-9]+(-|\.)`)
	heading = lazy(`^#\s*part:\s*(.*)$`)
)

// parseSeries reads quilt's series format without its options: a name a line, comments, blank lines. The comment "# part: NAME"
// begins a part.
func parseSeries(text string) (entries []entry, faults []seriesFault) {
	seen := map[string]int{}
	begun := map[string]int{}
	part := ""
	n := 0
	for line := range strings.Lines(text) {
		n++
		fields := strings.Fields(line)
		if i := slices.IndexFunc(fields, func(f string) bool { return f[0] == '#' }); i >= 0 {
			fields = fields[:i]
		}
		fault := func(do, why string, args ...any) {
			faults = append(faults, seriesFault{n, fmt.Sprintf(why, args...), do})
		}
		begins := heading().FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case begins != nil && CheckName(begins[1]) != nil:
			fault("name the part in one word of small letters, like fixes", "%q cannot be the name of a part", begins[1])
		case begins != nil && begun[begins[1]] > 0:
			fault("put its patches in one place", "the part %s has begun on line %d already", begins[1], begun[begins[1]])
		case begins != nil && part == "" && len(entries) > 0:
			fault("begin a part before the first patch, too", "the patches before the part %s are in none", begins[1])
		case begins != nil:
			part = begins[1]
			begun[part] = n
		case len(fields) == 0:
		case len(fields) > 1:
			fault("write one file name per line", "%q after the name: quilt's options are not part of this format", fields[1])
		case !slug().MatchString(fields[0]):
			fault("name the file like stream-pool.patch", "%q is not a slug (small letters, digits, single hyphens) ending in .patch", fields[0])
		case ordinal().MatchString(fields[0]):
			fault("drop the number; the series file holds the order", "%q begins with a number", fields[0])
		case fields[0] == CumulativeFile:
			fault("give the patch another name", "%q is the name of the whole change", fields[0])
		case seen[fields[0]] > 0:
			fault("delete one of the two lines", "%q is listed on line %d already", fields[0], seen[fields[0]])
		default:
			seen[fields[0]] = n
			entries = append(entries, entry{strings.TrimSuffix(fields[0], suffix), n, part})
		}
	}
	return entries, faults
}

// blobID is the id that git gives a blob of this content (SHA-1 repositories, as PyTorch's is).
func blobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Names are those of the series' patches, in its order; never nil.
func (s *Series) Names() []string {
	names := make([]string, len(s.Patches))
	for i, p := range s.Patches {
		names[i] = p.Name
	}
	return names
}

// ErrNoPatch is returned, wrapped, for the name of a patch that the series does not have.
var ErrNoPatch = errors.New("the series has no such patch")

// AllPatches means each patch of a series where patches are named.
const AllPatches = "all"

// Named gives the patches of the series by name, all where AllPatches is among the names.
func (s *Series) Named(names []string) ([]*Patch, error) {
	var chosen []*Patch
	for _, name := range names {
		if name == AllPatches {
			continue
		}
		at := slices.IndexFunc(s.Patches, func(p *Patch) bool { return p.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("%w: %s%s", ErrNoPatch, name, suggest.Names(name, append([]string{AllPatches}, s.Names()...)))
		}
		chosen = append(chosen, s.Patches[at])
	}
	if slices.Contains(names, AllPatches) {
		return s.Patches, nil
	}
	return chosen, nil
}
