package patches

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// CumulativeFile is the change of the whole series as one git diff, which mpsforge export --cumulative writes.
const CumulativeFile = cumulativeName + suffix

const cumulativeName = "cumulative"

// lintCumulative proves, where there is a cumulative diff, that it is the composition of the series: it changes the same
// blobs into the same blobs, and its lines, applied to the baseline's digests, give those that the series gives.
func (l *linter) lintCumulative() {
	const do = "run mpsforge export --cumulative"
	raw, err := readFile(l.dir, CumulativeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var whole *Patch
	if err == nil {
		whole, err = ParseDiff(cumulativeName, raw)
	}
	if err != nil {
		l.add(CumulativeFile, 0, RuleCumulative, SeverityError, do, "%v", err)
		return
	}
	composed := &linter{dir: l.dir, result: LintResult{Baseline: l.result.Baseline}, unread: l.unread, files: newFiles(l.series.Baseline, l.digests)}
	for _, f := range whole.Files {
		composed.lintContext(whole, f)
	}
	l.result.Findings = append(l.result.Findings, composed.result.Of(SeverityError)...)
	have, want := map[string]string{}, l.series.blobs()
	for _, f := range whole.Files {
		if f.OldID != f.NewID {
			have[f.Path()] = f.OldID + ".." + f.NewID
		}
	}
	paths := slices.Concat(unionOfKeys(have, want), l.series.TouchedPaths())
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if have[path] != want[path] {
			l.add(CumulativeFile, 0, RuleCumulative, SeverityError, do, "it changes %s with %q, the series with %q", path, have[path], want[path])
		} else if a, b := l.files[path], composed.files[path]; a != nil && b != nil && !a.same(b) {
			l.add(CumulativeFile, 0, RuleCumulative, SeverityError, do, "its result for %s differs from the series'", path)
		}
	}
}

// blobs gives, for each path that the series as a whole changes, its blob ids before and after.
func (s *Series) blobs() map[string]string {
	type ids struct{ old, new string }
	paths := map[string]ids{}
	set := func(path, old, new string) {
		was, known := paths[path]
		if !known {
			was.old = old
		}
		paths[path] = ids{was.old, new}
	}
	zero := strings.Repeat("0", 40)
	for _, p := range s.Patches {
		for _, f := range p.Files {
			if old, new := f.names(); old == new {
				set(new, f.OldID, f.NewID)
			} else {
				set(old, f.OldID, zero)
				set(new, zero, f.NewID)
			}
		}
	}
	changed := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if id := paths[path]; id.old != id.new {
			changed[path] = fmt.Sprintf("%s..%s", id.old, id.new)
		}
	}
	return changed
}

// same compares two states of a file by mode and lines.
func (s *fileState) same(o *fileState) bool {
	return s.absent == o.absent && s.mode == o.mode && s.broken == "" && o.broken == "" && s.ended == o.ended && slices.Equal(s.digests, o.digests)
}
