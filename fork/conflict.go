package fork

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/git"
	"mpsforge/patches"
)

// PortConflict is one file that a merge could not settle.
type PortConflict struct {
	Path    string   `json:"path"`
	Why     string   `json:"why"`
	Regions []Region `json:"regions"`

	text []byte // with conflict markers
	mode string
}

// Region is one place of a conflict, with what is there on each side.
type Region struct {
	Line   int      `json:"line"`   // of the file with markers
	Ours   []string `json:"ours"`   // in the version
	Base   []string `json:"base"`   // before the patch, in the version it comes from
	Theirs []string `json:"theirs"` // with the patch
}

// The marks that git puts around a conflict; a blank and a label follow all but the middle one.
const (
	markOurs   = "<<<<<<<"
	markBase   = "|||||||"
	markMiddle = "======="
	markTheirs = ">>>>>>>"
)

// settle makes the tree of a merge. Conflicts in files whose change the version has already are no conflicts, those of
// a patch whose conflicts were resolved are taken from the edited files.
func (p *porting) settle(ctx context.Context, merge *git.Merge, ours string, patch *patches.Patch, result *PortedPatch) (string, []PortConflict, error) {
	c := p.checkout
	edit := map[string]git.Entry{}
	var conflicts []PortConflict
	for _, found := range merge.Conflicts {
		if slices.Contains(result.Present, found.Path) {
			entry, _, err := c.objects.Find(ctx, ours, found.Path)
			if err != nil {
				return "", nil, err
			}
			edit[found.Path] = entry
			continue
		}
		conflict, err := c.describeConflict(ctx, merge, found, patch)
		if err != nil {
			return "", nil, err
		}
		conflicts = append(conflicts, conflict)
	}
	if len(conflicts) > 0 && p.fixed == patch.Name {
		if err := c.readResolved(patch.Name, conflicts, edit); err != nil {
			return "", nil, err
		}
		conflicts, result.Outcome, p.fixed = nil, PortResolved, ""
	}
	if len(conflicts) > 0 {
		return "", conflicts, nil
	}
	tree, err := c.objects.EditTree(ctx, merge.Tree, edit)
	return tree, nil, err
}

// describeConflict gives the file as it is to be edited, with both sides in it: git leaves no marks where one side lacks
// the file.
func (c *Checkout) describeConflict(ctx context.Context, merge *git.Merge, found git.Conflict, patch *patches.Patch) (PortConflict, error) {
	conflict := PortConflict{Path: found.Path, mode: git.ModeFile, Why: "both change the same lines"}
	switch none := (git.Entry{}); {
	case found.Ours == none && found.Theirs == none:
		conflict.Why = "both moved or removed it, in different ways"
	case found.Ours == none:
		conflict.Why = "the version has no such file"
	case found.Theirs == none:
		conflict.Why = "the patch removes it, and the version changed it"
	case found.Base == none:
		conflict.Why = "both add it"
	}
	for _, side := range []git.Entry{found.Theirs, found.Ours} {
		if side.Mode != "" {
			conflict.mode = side.Mode
		}
	}
	entry, _, err := c.objects.Find(ctx, merge.Tree, found.Path)
	if err != nil {
		return PortConflict{}, err
	}
	if conflict.text, err = c.text(ctx, entry); err != nil {
		return PortConflict{}, err
	}
	if hasMarks(conflict.text) {
		conflict.text = relabel(conflict.text, patch.Name)
	} else if err := c.addMarks(ctx, &conflict, found, patch.Name); err != nil {
		return PortConflict{}, err
	}
	conflict.Regions = regions(conflict.text)
	return conflict, nil
}

// addMarks puts marks around the text of a file that one side lacks, as git puts them around lines.
func (c *Checkout) addMarks(ctx context.Context, conflict *PortConflict, found git.Conflict, patch string) error {
	before, err := c.text(ctx, found.Base)
	if err != nil {
		return err
	}
	ended := func(text []byte) string {
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
			return string(text) + "\n"
		}
		return string(text)
	}
	ours, theirs := ended(conflict.text), ""
	version, change := " the version", " patch "+patch
	if found.Theirs == (git.Entry{}) {
		change += " has no such file"
	} else {
		ours, theirs = theirs, ours
		version += " has no such file"
	}
	conflict.text = []byte(markOurs + version + "\n" + ours + markBase + " before the patch\n" + ended(before) +
		markMiddle + "\n" + theirs + markTheirs + change + "\n")
	return nil
}

// text gives the text of a file; nil for what is none.
func (c *Checkout) text(ctx context.Context, entry git.Entry) ([]byte, error) {
	if entry == (git.Entry{}) || entry.Mode == git.ModeFolder || entry.Mode == git.ModeSubmodule {
		return nil, nil
	}
	return c.objects.Blob(ctx, entry.ID)
}

// relabel names the sides of the marks, which git labels with commit ids.
func relabel(text []byte, patch string) []byte {
	var b bytes.Buffer
	for line := range strings.Lines(string(text)) {
		for mark, label := range map[string]string{markOurs: "the version", markBase: "before the patch", markTheirs: "patch " + patch} {
			if strings.HasPrefix(line, mark+" ") {
				line = mark + " " + label + "\n"
				break
			}
		}
		b.WriteString(line)
	}
	return b.Bytes()
}

func hasMarks(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		for _, mark := range []string{markOurs, markBase, markTheirs} {
			if strings.HasPrefix(line, mark+" ") {
				return true
			}
		}
	}
	return false
}

// middles counts the lines that look like the middle mark: some files have such lines of their own.
func middles(text []byte) (count int) {
	for line := range strings.Lines(string(text)) {
		if strings.TrimSuffix(line, "\n") == markMiddle {
			count++
		}
	}
	return count
}

// regions finds the conflicts of a file with marks.
func regions(text []byte) []Region {
	found := []Region{}
	var current *Region
	var side *[]string
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, markOurs+" "):
			found = append(found, Region{Line: number, Ours: []string{}, Base: []string{}, Theirs: []string{}})
			current = &found[len(found)-1]
			side = &current.Ours
		case current == nil:
		case strings.HasPrefix(line, markBase+" "):
			side = &current.Base
		case line == markMiddle:
			side = &current.Theirs
		case strings.HasPrefix(line, markTheirs+" "):
			current, side = nil, nil
		default:
			*side = append(*side, line)
		}
	}
	return found
}

// fixDir is the folder of the files of a patch that are to be edited.
func (c *Checkout) fixDir(patch string) string {
	return filepath.Join(c.repository.Dir, "mpsforge-port", patch)
}

// writeConflicts puts the conflicting files where they can be edited.
func (c *Checkout) writeConflicts(patch string, conflicts []PortConflict) error {
	dir := c.fixDir(patch)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("write the conflicts to files: %w", err)
	}
	for _, conflict := range conflicts {
		if err := patches.CheckPath(conflict.Path); err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(conflict.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the conflicts to files: %w", err)
		}
		if err := os.WriteFile(path, conflict.text, 0o644); err != nil {
			return fmt.Errorf("write the conflicts to files: %w", err)
		}
	}
	return nil
}

// readResolved takes all files of the folder, those added there too; a conflicting file that is gone is deleted.
func (c *Checkout) readResolved(patch string, conflicts []PortConflict, edit map[string]git.Entry) error {
	dir := c.fixDir(patch)
	written := map[string]PortConflict{}
	for _, conflict := range conflicts {
		edit[conflict.Path] = git.Entry{}
		written[conflict.Path] = conflict
	}
	err := filepath.WalkDir(dir, func(full string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		content, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		was := written[name]
		if hasMarks(content) || len(was.Regions) > 0 && middles(content) > middles(was.text)-len(was.Regions) {
			return fmt.Errorf(
				"%w: %s still has conflict marks; edit it (or delete it if the patched version has no such file), "+
					"then run again: %s", ErrNotResolved, full, c.command("port", "--continue"))
		}
		id, err := c.objects.AddBlob(content)
		if err != nil {
			return err
		}
		edit[name] = git.Entry{Mode: cmp.Or(was.mode, git.ModeFile), ID: id}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the folder %s is gone; begin again: %s", ErrNotResolved, dir, c.command("port", "--abort"))
	}
	return err
}

// removeResolved removes the files of all patches but one.
func (c *Checkout) removeResolved(but string) error {
	parent := filepath.Dir(c.fixDir("any"))
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove resolved files: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == but {
			continue
		}
		if err := os.RemoveAll(filepath.Join(parent, entry.Name())); err != nil {
			return fmt.Errorf("remove resolved files: %w", err)
		}
	}
	if but == "" {
		if err := os.RemoveAll(parent); err != nil {
			return fmt.Errorf("remove resolved files: %w", err)
		}
	}
	return nil
}
