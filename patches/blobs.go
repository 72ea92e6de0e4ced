package patches

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// blobsFile holds the blob ids that the patches of the series give, in the baseline's folder.
const blobsFile = "blobs.json"

// Blobs holds what each patch makes of the baseline's files that it changes: their blob ids (blobs.json). A baseline's folder
// has only line digests of them, of which no blob id follows, so an index line could say anything: these ids were taken from
// the exact text. Those of files that the series itself makes follow from the patches.
type Blobs struct {
	Schema  int                          `json:"schema"` // always 1
	Tag     string                       `json:"tag"`
	Patches map[string]map[string]string `json:"patches"` // patch name, path after the patch, blob id
}

// RecordBlobs applies the series to the baseline's text and takes the blob ids of what comes out; those of the patches'
// index lines are not looked at. read gives the exact text of a file of the baseline, or fs.ErrNotExist for one whose exact
// text is not at hand: of such a file nothing is recorded.
func RecordBlobs(s *Series, read func(path string) ([]byte, error)) (Blobs, error) {
	b := Blobs{Schema: 1, Tag: s.Baseline.Tag, Patches: map[string]map[string]string{}}
	now := map[string][]byte{} // as the patches so far leave the baseline's files; nil where no exact text is at hand
	made := map[string]bool{}  // by the series
	for _, p := range s.Patches {
		ids, after := map[string]string{}, map[string][]byte{}
		for _, f := range p.Files {
			made[f.NewName] = f.IsNew || made[f.OldName]
			if made[f.NewName] || f.IsDelete {
				continue
			}
			content, found := now[f.OldName]
			if !found {
				var err error
				if content, err = read(f.OldName); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return Blobs{}, fmt.Errorf("record the blob ids of %s: read %s: %w", p.Name, f.OldName, err)
				}
			}
			if content != nil {
				var err error
				if content, err = f.Apply(content); err != nil {
					return Blobs{}, fmt.Errorf("record the blob ids of %s: %w", p.Name, err)
				}
				ids[f.NewName] = blobID(content)
			}
			after[f.NewName] = content
		}
		maps.Copy(now, after)
		if len(ids) > 0 {
			b.Patches[p.Name] = ids
		}
	}
	return b, nil
}

// readBlobs reads blobs.json. A baseline without it is allowed: no id of its patches has been seen then.
func readBlobs(dir fs.FS) (b Blobs, err error) {
	if err = readJSON(dir, blobsFile, &b, &b.Schema); errors.Is(err, fs.ErrNotExist) {
		return Blobs{}, nil
	}
	return b, err
}

const recordBlobs = "record it from the baseline's exact text: mpsforge baseline record, or mpsforge export"

// lintBlob compares the blob id in a patch's index line with the recorded one, where it does not follow from the patches.
func (l *linter) lintBlob(p *Patch, f *File) {
	state := l.files[f.NewName]
	if f.IsDelete || f.IsBinary || f.IsCopy || f.NewID == "" || l.unread != "" || state != nil && (state.broken != "" || state.text != nil) {
		return
	}
	switch want := l.blobs.Patches[p.Name][f.NewName]; want {
	case f.NewID:
	case "":
		l.error(p, f.Line, RuleBlobs, recordBlobs, "says that %s becomes blob %s; %s has no id for it, so nobody has seen that", f.NewName, f.NewID, blobsFile)
	default:
		l.error(p, f.Line, RuleBlobs, "export the commit again; if the patch is right, "+recordBlobs,
			"says that %s becomes blob %s, with the exact text it became %s", f.NewName, f.NewID, want)
	}
}

// lintBlobsUsed finds recorded ids that belong to no change of the series.
func (l *linter) lintBlobsUsed() {
	if l.blobs.Tag != "" && l.blobs.Tag != l.series.Baseline.Tag {
		l.add(blobsFile, 0, RuleBlobs, SeverityError, recordBlobs, "the ids are of tag %q, the baseline is %q", l.blobs.Tag, l.series.Baseline.Tag)
	}
	if l.unread != "" {
		return // what is not read may use them
	}
	for _, name := range slices.Sorted(maps.Keys(l.blobs.Patches)) {
		at := slices.IndexFunc(l.series.Patches, func(p *Patch) bool { return p.Name == name })
		if at < 0 {
			l.add(blobsFile, 0, RuleBlobs, SeverityError, recordBlobs, "%s is not a patch of the series", name)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(l.blobs.Patches[name])) {
			if !slices.ContainsFunc(l.series.Patches[at].Files, func(f *File) bool { return !f.IsDelete && f.NewName == path }) {
				l.add(blobsFile, 0, RuleBlobs, SeverityError, recordBlobs, "the patch %s does not change %s", name, path)
			}
		}
	}
}
