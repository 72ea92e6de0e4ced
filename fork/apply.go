package fork

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/internal/suggest"
	"mpsforge/internal/words"
	"mpsforge/patches"
)

// Options choose how far Apply and Unapply go.
type Options struct {
	// Until names the last patch that is put on, or, for Unapply, the last that is taken off. Empty means all.
	Until string
	// Check makes the run stop before anything is written.
	Check bool
}

// Change is what Apply or Unapply did.
type Change struct {
	Checkout string   `json:"checkout"`
	Baseline string   `json:"baseline"`
	Patches  []string `json:"patches"` // put on, or taken off, in the order it was done
	Paths    []string `json:"paths"`   // files of the work tree that changed
	From     string   `json:"from"`    // commit that HEAD was at
	To       string   `json:"to"`
	Tree     string   `json:"tree"` // tree id of To
	Check    bool     `json:"check"`
	// Recovered says what was done first about an interrupted run, or is empty.
	Recovered string `json:"recovered,omitempty"`
}

// Apply puts the series on the checkout, each patch as one commit, all or nothing. Patches that are on it already are
// left alone; when all are, nothing happens and the change lists no patches. Where there are more than Until asks for, it is ErrMoreApplied.
func (c *Checkout) Apply(ctx context.Context, series *patches.Series, options Options, sink events.Sink) (*Change, error) {
	sink = events.OrDiscard(sink)
	return c.change(ctx, "apply", series, options, sink, func() (string, []Applied, []string, error) {
		count, err := c.checkApplied(series)
		if err != nil {
			return "", nil, nil, err
		}
		target, err := position(series.Patches, options.Until, func(p *patches.Patch) string { return p.Name })
		if err != nil {
			return "", nil, nil, err
		}
		if count > target {
			return "", nil, nil, fmt.Errorf("%w: %d behind %s, from %s on; apply takes none off: %s does",
				ErrMoreApplied, count-target, series.Patches[target-1].Name, series.Patches[target].Name,
				c.command("unapply", "--until", series.Patches[target].Name))
		}
		applied := c.state.Applied[:count:count]
		var names []string
		head := c.repository.Head
		sink.Emit(events.PartsPlanned{Step: "apply", Names: series.Names()[count:target]})
		for i := count; i < target; i++ {
			sink.Emit(events.StepProgress{Step: "apply", Done: int64(i - count), Total: int64(target - count), Unit: "patches", Note: series.Patches[i].Name})
			head, err = c.commitWithEvents(ctx, head, series.Patches[i], sink)
			if err != nil {
				return "", nil, nil, err
			}
			applied = append(applied, Applied{Name: series.Patches[i].Name, SHA256: series.Patches[i].SHA256, Commit: head, Paths: series.Patches[i].Paths()})
			names = append(names, series.Patches[i].Name)
		}
		if made := int64(len(names)); made > 0 {
			sink.Emit(events.StepProgress{Step: "apply", Done: made, Total: made, Unit: "patches", Note: "write the files"})
		}
		return head, applied, names, nil
	})
}

// commitWithEvents is commitPatch as a part of the step apply.
func (c *Checkout) commitWithEvents(ctx context.Context, parent string, patch *patches.Patch, sink events.Sink) (string, error) {
	finish := events.RunPart(sink, events.Part{Step: "apply", Name: patch.Name})
	head, err := c.commitPatch(ctx, parent, patch)
	if err != nil {
		finish(events.PartFinished{Outcome: events.Failed, Detail: words.FirstLine(err.Error())})
		return "", err
	}
	finish(events.PartFinished{Outcome: events.OK, Detail: counted(len(patch.Files), "file")})
	return head, nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Unapply takes the series off again, last patch first. It needs no patch files: the commits are known.
func (c *Checkout) Unapply(ctx context.Context, series *patches.Series, options Options, sink events.Sink) (*Change, error) {
	sink = events.OrDiscard(sink)
	return c.change(ctx, "unapply", series, options, sink, func() (string, []Applied, []string, error) {
		count := c.applied()
		if count < 0 {
			return "", nil, nil, c.foreignHead()
		}
		applied := c.state.Applied[:count:count]
		first := 0
		if options.Until != "" {
			after, err := position(applied, options.Until, func(a Applied) string { return a.Name })
			if err != nil {
				if _, known := position(series.Patches, options.Until, func(p *patches.Patch) string { return p.Name }); known == nil {
					return c.repository.Head, applied, nil, nil // it is not on the checkout: nothing to do
				}
				return "", nil, nil, err
			}
			first = after - 1
		}
		var names []string
		for i := count - 1; i >= first; i-- {
			names = append(names, applied[i].Name)
		}
		head := c.state.Base
		if first > 0 {
			head = applied[first-1].Commit
		}
		return head, applied[:first:first], names, nil
	})
}

// ErrUnknownPatch is returned, wrapped, for a patch name that is not in the list at hand.
var ErrUnknownPatch = errors.New("no such patch")

// position gives how many elements lead up to the one called name, itself included; all of them when name is empty.
func position[T any](list []T, name string, nameOf func(T) string) (int, error) {
	if name == "" {
		return len(list), nil
	}
	var known []string
	name = strings.TrimSuffix(name, ".patch")
	for i, element := range list {
		if nameOf(element) == name {
			return i + 1, nil
		}
		known = append(known, nameOf(element))
	}
	if len(known) == 0 {
		return 0, fmt.Errorf("%w: %q: no patch is applied", ErrUnknownPatch, name)
	}
	return 0, fmt.Errorf("%w: %q%s", ErrUnknownPatch, name, suggest.Names(name, known))
}

// planner works out what HEAD becomes, which patches are on it then, and which were put on or taken off.
type planner func() (head string, applied []Applied, names []string, err error)

// change is the frame of Apply and Unapply: it holds the lock and the process that moves refs.
func (c *Checkout) change(ctx context.Context, command string, series *patches.Series, options Options, sink events.Sink, plan planner) (*Change, error) {
	finish := events.Step(sink, command)
	defer finish(events.Failed, "")
	if !options.Check {
		unlock, err := c.lock(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
		if c.refs, err = c.repository.StartRefs("mpsforge " + command); err != nil {
			return nil, err
		}
	}
	made, err := c.planAndMove(ctx, command, series, options, sink, plan)
	if c.refs != nil {
		err = errors.Join(err, c.refs.Close())
		c.refs = nil
	}
	if err != nil {
		return nil, err
	}
	detail := "nothing to do"
	if len(made.Patches) > 0 {
		detail = fmt.Sprintf("patches: %d, files: %d", len(made.Patches), len(made.Paths))
	}
	finish(events.OK, detail)
	return made, nil
}

// planAndMove plans in the object store, checks the work tree, moves it once and moves the refs once.
func (c *Checkout) planAndMove(ctx context.Context, command string, series *patches.Series, options Options, sink events.Sink, plan planner) (*Change, error) {
	if operation := c.repository.OperationInProgress(); operation != "" {
		return nil, fmt.Errorf("%w: %s is under way in %s; finish or abort it first (git status shows how)", ErrBusy, operation, c.Dir())
	}
	recovered, err := c.recoverPending(ctx, options.Check)
	if err != nil {
		return nil, err
	}
	if recovered != "" {
		sink.Emit(events.Message{Level: events.Warning, Text: recovered})
	}
	if err := c.ensureBase(ctx, series); err != nil {
		return nil, err
	}
	from := c.repository.Head
	head, applied, names, err := plan()
	if err != nil {
		return nil, err
	}
	result := &Change{Checkout: c.Dir(), Baseline: c.state.Baseline, Patches: names, From: from, To: head, Check: options.Check, Recovered: recovered}
	if result.Patches == nil {
		result.Patches = []string{}
	}
	changes, err := c.between(ctx, from, head, result)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 || options.Check && recovered != "" {
		return result, nil // the files of an interrupted run would be taken for a user's changes
	}
	drifts, err := c.drift(ctx, changes)
	if err != nil {
		return nil, err
	}
	if len(drifts) > 0 {
		return nil, c.dirtyError(ctx, command, drifts)
	}
	if err := c.locked(); err != nil {
		return nil, err
	}
	if !options.Check {
		if err := c.move(ctx, command, head, applied, changes); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// between fills in what differs between two commits and gives it.
func (c *Checkout) between(ctx context.Context, from, to string, result *Change) ([]git.Change, error) {
	result.Paths = []string{}
	old, err := c.objects.Commit(ctx, from)
	if err != nil {
		return nil, err
	}
	target, err := c.objects.Commit(ctx, to)
	if err != nil {
		return nil, err
	}
	result.Tree = target.Tree
	changes, err := c.objects.Diff(ctx, old.Tree, target.Tree)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		result.Paths = append(result.Paths, change.Path)
	}
	return changes, nil
}

func (c *Checkout) dirtyError(ctx context.Context, command string, drifts []Drift) error {
	var lines strings.Builder
	for _, drift := range drifts {
		lines.WriteString("\n  " + drift.String())
	}
	fix := "commit elsewhere, stash (git stash -u) or restore them"
	if sparse, err := c.repository.IsSparse(ctx); err == nil && sparse {
		fix = "the checkout is sparse: bring the folders in (git sparse-checkout disable, or git sparse-checkout add)"
	}
	return fmt.Errorf("%w: %s of %s would overwrite:%s\nnothing was changed; %s, then run %s again", ErrDirty, command, c.Dir(), lines.String(), fix, command)
}

func (c *Checkout) foreignHead() error {
	return fmt.Errorf("%w: HEAD of %s is %s, mpsforge left it at %s; commits of your own on top must be moved away first (git branch mine; git "+
		"reset --keep %s); if you checked out a baseline anew, record it: %s",
		ErrForeign, c.Dir(), c.repository.Head, c.state.Head, c.state.Head, c.command("fetch", "--from", c.Dir()))
}

// checkApplied gives how many patches of the series are on the checkout and makes sure that they are the series' own.
func (c *Checkout) checkApplied(series *patches.Series) (int, error) {
	count := c.applied()
	if count < 0 {
		return 0, c.foreignHead()
	}
	for i, applied := range c.state.Applied[:count] {
		if i >= len(series.Patches) || series.Patches[i].Name != applied.Name {
			return 0, fmt.Errorf("%w: %s has %s as patch %d, and the series has another one there; remove it first: %s", ErrSeriesChanged,
				c.Dir(), applied.Name, i+1, c.command("unapply"))
		}
		if series.Patches[i].SHA256 != applied.SHA256 {
			return 0, fmt.Errorf("%w: %s was changed since it was applied to %s; remove it first: %s", ErrSeriesChanged,
				applied.Name, c.Dir(), c.command("unapply", "--until", applied.Name))
		}
	}
	return count, nil
}

// commitPatch makes the commit of one patch on top of a parent, in memory.
func (c *Checkout) commitPatch(ctx context.Context, parent string, patch *patches.Patch) (string, error) {
	base, err := c.objects.Commit(ctx, parent)
	if err != nil {
		return "", err
	}
	edit := treeEdit{tree: base.Tree, removed: map[string]bool{}, changes: map[string]git.Entry{}}
	for _, file := range patch.Files {
		if file.IsDelete || file.IsRename {
			edit.removed[file.OldName] = true
		}
	}
	for _, file := range patch.Files {
		if err := c.patchFile(ctx, &edit, patch, file); err != nil {
			return "", fmt.Errorf("apply patch %s: %w", patch.Name, err)
		}
	}
	tree, err := c.objects.EditTree(ctx, base.Tree, edit.changes)
	if err != nil {
		return "", fmt.Errorf("apply patch %s: %w", patch.Name, err)
	}
	for _, file := range patch.Files {
		if file.IsDelete || file.NewName == file.OldName && !file.IsNew {
			continue
		}
		if twin, err := c.objects.Twin(ctx, tree, file.NewName); err != nil {
			return "", fmt.Errorf("apply patch %s: %w", patch.Name, err)
		} else if twin != "" {
			return "", fmt.Errorf("apply patch %s: %w: %s and %s would be the same file on file systems that ignore case", patch.Name, ErrPath,
				file.NewName, twin)
		}
	}
	return c.objects.AddCommit(git.Commit{Tree: tree, Parents: []string{parent}, Message: patch.Header.Message(),
		Author: git.Signature{Name: patch.Header.AuthorName, Email: patch.Header.AuthorEmail, When: patch.Header.Date}})
}

// ErrPath is returned, wrapped, for a patch that would change what no patch may.
var ErrPath = errors.New("a patch may not change this path")

// treeEdit collects what one patch does to a tree.
type treeEdit struct {
	tree    string
	removed map[string]bool      // paths that the patch deletes or renames away
	changes map[string]git.Entry // the zero Entry removes
}

// lookUp finds a path that the patch names and refuses those that no patch may change.
func (c *Checkout) lookUp(ctx context.Context, edit *treeEdit, name string) (git.Entry, error) {
	if err := patches.CheckChange(name); err != nil {
		return git.Entry{}, fmt.Errorf("%w: %w", ErrPath, err)
	}
	entry, blocker, err := c.objects.Find(ctx, edit.tree, name)
	switch {
	case err != nil:
		return git.Entry{}, err
	case entry.Mode == git.ModeSubmodule && blocker != "":
		return git.Entry{}, fmt.Errorf("%w: %s lies in the submodule %s; a series changes one repository only", ErrPath, name, blocker)
	case entry.Mode == git.ModeSubmodule:
		return git.Entry{}, fmt.Errorf("%w: %s is a submodule; a series changes one repository only", ErrPath, name)
	case blocker == "":
		return entry, nil
	case edit.removed[blocker]: // the patch itself takes away the file that is where it needs a folder
		return git.Entry{}, nil
	case entry.Mode == git.ModeSymlink:
		return git.Entry{}, fmt.Errorf("%w: %s goes through the symbolic link %s", ErrPath, name, blocker)
	}
	return git.Entry{}, fmt.Errorf("%w: %s needs a folder where %s is a file", ErrPath, name, blocker)
}

// gitMode is the mode of a file in a patch as git writes it in trees.
func gitMode(mode os.FileMode) string { return fmt.Sprintf("%06o", uint32(mode)) }

// patchFile works out what one file of a patch does.
func (c *Checkout) patchFile(ctx context.Context, edit *treeEdit, patch *patches.Patch, file *patches.File) error {
	if gitMode(file.OldMode) == git.ModeSubmodule || gitMode(file.NewMode) == git.ModeSubmodule {
		return fmt.Errorf("%w: the patch makes %s a submodule or changes one; a series changes one repository only", ErrPath, file.Path())
	}
	var old git.Entry
	var content []byte // nil for a file that is not there, as File.Apply wants it
	if file.OldName != "" && !file.IsNew {
		var err error
		if old, err = c.lookUp(ctx, edit, file.OldName); err != nil {
			return err
		}
		if old == (git.Entry{}) || old.Mode == git.ModeFolder {
			return &patches.ConflictError{Patch: patch.Name, Path: file.OldName, Expected: "a file to change", Found: "no such file", Already: file.IsDelete}
		}
		if isLink := old.Mode == git.ModeSymlink; file.OldMode != 0 && isLink != (gitMode(file.OldMode) == git.ModeSymlink) {
			conflict := &patches.ConflictError{Patch: patch.Name, Path: file.OldName, Expected: "a symbolic link", Found: "a file"}
			if isLink {
				conflict.Expected, conflict.Found = conflict.Found, conflict.Expected
			}
			return conflict
		}
		if content, err = c.objects.Blob(ctx, old.ID); err != nil {
			return fmt.Errorf("%s: %w", file.OldName, err)
		}
	}
	if file.NewName != "" && file.NewName != file.OldName {
		existing, err := c.lookUp(ctx, edit, file.NewName)
		if err != nil {
			return err
		}
		if existing != (git.Entry{}) && !edit.removed[file.NewName] {
			conflict := &patches.ConflictError{Patch: patch.Name, Path: file.NewName, Expected: "no such file", Found: "a file is there"}
			if result, err := file.Apply(content); err == nil && existing.ID == git.BlobID(result) {
				conflict.Already = true
			}
			return conflict
		}
	}
	if entry, found := edit.changes[file.NewName]; found && entry != (git.Entry{}) {
		return fmt.Errorf("%w: %s is changed twice by one patch", ErrPath, file.NewName)
	}
	result, err := file.Apply(content)
	if err != nil {
		return err
	}
	if _, found := edit.changes[file.OldName]; edit.removed[file.OldName] && !found {
		edit.changes[file.OldName] = git.Entry{}
	}
	if file.IsDelete {
		return nil
	}
	mode := old.Mode
	if file.NewMode != 0 {
		mode = gitMode(file.NewMode)
	}
	id, err := c.objects.AddBlob(result)
	if err != nil {
		return err
	}
	if want := file.NewID; want != "" && id != want {
		return fmt.Errorf("%s: all hunks fit, and the result is blob %s, but the index line of the patch says %s: the patch's lines and its index "+
			"line do not belong together; mpsforge lint compares both with what was recorded of the exact text", file.NewName, id, want)
	}
	edit.changes[file.NewName] = git.Entry{Mode: mode, ID: id}
	return nil
}

// move changes the work tree and the refs. It cannot be cancelled: it takes milliseconds, and half of it would be
// worse than all of it.
func (c *Checkout) move(ctx context.Context, command, head string, applied []Applied, changes []git.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	begun := *c.state
	begun.Head = c.repository.Head
	if err := c.noteEntries(ctx, &begun, pathsOf(changes)); err != nil {
		return err
	}
	begun.Pending = &Pending{Command: command, To: head, Applied: applied}
	if err := c.record(ctx, command+": begin", &begun, ""); err != nil {
		return fmt.Errorf("%w\nnothing was changed; if another mpsforge ran at the same time, run %s again", err, command)
	}
	return c.finishMove(ctx, command, changes)
}

// finishMove carries out the pending change: the work tree first, then HEAD, then the record.
func (c *Checkout) finishMove(ctx context.Context, command string, changes []git.Change) error {
	pending := c.state.Pending
	if err := c.moveWorkTree(ctx, pending.To, changes); err != nil {
		return c.giveUp(ctx, command, changes, err)
	}
	done := *c.state
	done.Pending, done.Applied, done.Head = nil, pending.Applied, pending.To
	if err := c.noteEntries(ctx, &done, slices.Collect(maps.Keys(c.state.Entries))); err != nil {
		return c.giveUp(ctx, command, changes, err)
	}
	if err := c.record(ctx, command, &done, pending.To); err != nil {
		return c.giveUp(ctx, command, changes, err)
	}
	return nil
}

// giveUp undoes a change that failed, and gives why it did.
func (c *Checkout) giveUp(ctx context.Context, command string, changes []git.Change, failure error) error {
	if err := c.rollBack(ctx, command, changes); err != nil {
		return errors.Join(failure, err)
	}
	return fmt.Errorf("%w\nnothing was changed", failure)
}

// rollBack puts the work tree back to the commit that the change began at, and HEAD, too, and drops the pending change.
func (c *Checkout) rollBack(ctx context.Context, command string, changes []git.Change) error {
	drifts, err := c.drift(ctx, changes)
	if err == nil && len(drifts) > 0 {
		err = c.moveWorkTree(ctx, c.state.Head, changes)
		if err != nil { // git fails on a file that it cannot write, also where it has nothing to write
			if left, leftErr := c.drift(ctx, changes); leftErr == nil && len(left) == 0 {
				err = nil
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %s of %s stopped half-way and could not be undone; fix the cause, then run: %s: %w", ErrInterrupted,
			command, c.Dir(), c.command("recover"), err)
	}
	before := *c.state
	before.Pending = nil
	if err := c.record(ctx, command+": rolled back", &before, before.Head); err != nil {
		return fmt.Errorf("%w: the work tree of %s is as it was, but the record is not; run: %s: %w", ErrInterrupted, c.Dir(),
			c.command("recover"), err)
	}
	return nil
}

// moveWorkTree makes the changed paths of index and work tree what they are in a commit.
func (c *Checkout) moveWorkTree(ctx context.Context, to string, changes []git.Change) error {
	commit, err := c.objects.Commit(ctx, to)
	if err != nil {
		return err
	}
	// git restore refuses paths that neither the commit nor the index has. Such are files of a folder whose place a file
	// takes, which git drops by itself, and files whose removal an interrupted run had finished.
	var paths, absent, gone []string
	for _, change := range changes {
		entry, blocker, err := c.objects.Find(ctx, commit.Tree, change.Path)
		switch {
		case err != nil:
			return err
		case blocker != "":
		case entry == git.Entry{}:
			absent = append(absent, change.Path)
		default:
			paths = append(paths, change.Path)
		}
	}
	index, err := c.repository.IndexEntries(ctx, absent)
	if err != nil {
		return err
	}
	for _, path := range absent {
		if len(index[path]) > 0 {
			paths = append(paths, path)
		} else {
			gone = append(gone, path)
		}
	}
	if err := c.repository.MoveWorkTree(ctx, to, paths); err != nil {
		return err
	}
	return c.repository.RemoveUntracked(ctx, gone)
}

// locked names the locks of git that prevent a change, if there are any.
func (c *Checkout) locked() error {
	locks := c.repository.Locks()
	if len(locks) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s exists; another git command is running in %s, or one was killed; if none is running, run: %s",
		git.ErrLocked, strings.Join(locks, " and "), c.Dir(), c.command("recover", "--remove-locks"))
}

func pathsOf(changes []git.Change) []string {
	paths := make([]string, len(changes))
	for i, change := range changes {
		paths[i] = change.Path
	}
	return paths
}
